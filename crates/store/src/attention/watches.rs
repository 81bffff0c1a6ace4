//! Watches: a user's watch level per repository. Triggers keep `repos.watcher_count`.
//!
//! No row means no choice: see [`WatchLevel::current`]. Suspended accounts are neither listed nor counted.

use crate::attention::lists::{Kept, Part, Person, person_columns};
use crate::repos::{Viewer, columns, id_list, visible};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::{RepoId, UserId, WatchLevel};
use std::collections::HashMap;

/// Watchers of a repository: one predicate for list and count.
macro_rules! watchers {
    ($repo:literal) => {
        concat!(
            " FROM watches w JOIN users u ON u.id = w.user_id
        WHERE w.level <> 'ignore' AND u.suspended_at IS NULL AND w.repo_id = ",
            $repo
        )
    };
}

/// Repositories that $1 watches and a viewer may see: $2 is the viewer, $3 whether they read everything.
macro_rules! watched {
    () => {
        concat!(
            " FROM watches w
        JOIN repos r ON r.id = w.repo_id
        JOIN users u ON u.id = r.owner_id
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $2
        WHERE w.user_id = $1 AND w.level <> 'ignore' AND ",
            visible!("$2", "$3")
        )
    };
}

statements! {
    LEVEL = "SELECT level, updated_at FROM watches WHERE user_id = $1 AND repo_id = $2";
    SET = "INSERT INTO watches (user_id, repo_id, level, updated_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (user_id, repo_id) DO UPDATE SET level = excluded.level, updated_at = excluded.updated_at
        WHERE watches.level <> excluded.level";
    /// Keeps an existing choice.
    SUGGEST = "INSERT INTO watches (user_id, repo_id, level, updated_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (user_id, repo_id) DO NOTHING";
    AMONG = "SELECT repo_id, level FROM watches WHERE user_id = $1 AND repo_id ",
        sqlite "IN (SELECT value FROM json_each('[' || $2 || ']'))",
        postgres "= ANY (CAST(string_to_array($2, ',') AS BIGINT[]))";
    REMOVE = "DELETE FROM watches WHERE user_id = $1 AND repo_id = $2";

    OF_REPO = concat!("SELECT ", person_columns!(), ", w.updated_at AS since", watchers!("$1"), "
        AND (w.updated_at, w.user_id) < ($2, $3)
        ORDER BY w.updated_at DESC, w.user_id DESC LIMIT $4 OFFSET $5");
    COUNT_OF_REPO = concat!("SELECT count(*) AS n", watchers!("$1"));
    /// Repositories with a wrong counter: there should be none.
    MISCOUNTED = concat!("SELECT r.id FROM repos r WHERE r.watcher_count <> (SELECT count(*)", watchers!("r.id"), ")
        ORDER BY r.id LIMIT $1");
    RECOUNT = concat!("UPDATE repos SET watcher_count = (SELECT count(*)", watchers!("$1"), ") WHERE id = $1");

    OF_USER = concat!("SELECT ", columns!(), ", c.role AS role, w.updated_at AS since", watched!(), "
        AND (w.updated_at, w.repo_id) < ($4, $5)
        ORDER BY w.updated_at DESC, w.repo_id DESC LIMIT $6 OFFSET $7");
    COUNT_OF_USER = concat!("SELECT count(*) AS n", watched!());
}

/// A user's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub level: WatchLevel,
    pub at: abide_core::Timestamp,
}

/// A user's choices for several repositories; repositories without a choice are omitted.
pub async fn among(conn: &mut Conn, user: UserId, repos: &[RepoId]) -> Result<HashMap<RepoId, WatchLevel>, StoreError> {
    let rows = conn.all(&AMONG, params![user, id_list(repos)]).await?;
    rows.iter().map(|row| Ok((RepoId::new(row.int("repo_id")?), row.parsed("level")?))).collect()
}

/// A user's choice for a repository, if any.
pub async fn choice(conn: &mut Conn, user: UserId, repo: RepoId) -> Result<Option<Choice>, StoreError> {
    let row = conn.one(&LEVEL, params![user, repo]).await?;
    row.map(|row| Ok(Choice { level: row.parsed("level")?, at: row.time("updated_at")? })).transpose()
}

/// Effective level of a user for a repository, chosen or default.
pub async fn current_level(conn: &mut Conn, user: UserId, repo: RepoId) -> Result<WatchLevel, StoreError> {
    Ok(WatchLevel::current(choice(conn, user, repo).await?.map(|choice| choice.level)))
}

/// Stores a user's choice; `false` if it was the same before.
pub async fn set(tx: &mut Tx, user: UserId, repo: RepoId, level: WatchLevel) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&SET, params![user, repo, level.as_str(), now]).await? > 0)
}

/// Sets a level for a user without a choice; `false` if they have one.
pub async fn suggest(tx: &mut Tx, user: UserId, repo: RepoId, level: WatchLevel) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&SUGGEST, params![user, repo, level.as_str(), now]).await? > 0)
}

/// Removes a user's choice; `false` if there was none.
pub async fn remove(tx: &mut Tx, user: UserId, repo: RepoId) -> Result<bool, StoreError> {
    Ok(tx.execute(&REMOVE, params![user, repo]).await? > 0)
}

/// Watchers of a repository, latest first.
pub async fn of_repo(conn: &mut Conn, repo: RepoId, part: Part) -> Result<Vec<Person>, StoreError> {
    Person::list(conn, &OF_REPO, repo, part).await
}

/// Repositories whose counter differs from the number of watchers, which should not happen.
pub async fn miscounted(conn: &mut Conn, limit: i64) -> Result<Vec<RepoId>, StoreError> {
    let rows = conn.all(&MISCOUNTED, params![limit]).await?;
    rows.iter().map(|row| row.int("id").map(RepoId::new)).collect()
}

/// Corrects a repository's counter. The unit holds the row.
pub async fn recount(tx: &mut Tx, repo: RepoId) -> Result<(), StoreError> {
    tx.execute(&RECOUNT, params![repo]).await.map(drop)
}

/// Number of watchers of a repository, which its counter should equal.
pub async fn count_of_repo(conn: &mut Conn, repo: RepoId) -> Result<i64, StoreError> {
    conn.only(&COUNT_OF_REPO, params![repo]).await?.int("n")
}

/// A user's watched repositories that the viewer may read, latest first, and their total number.
pub async fn of_user(
    conn: &mut Conn,
    user: UserId,
    viewer: Viewer,
    part: Part,
) -> Result<(Vec<Kept>, i64), StoreError> {
    Kept::list(conn, [&OF_USER, &COUNT_OF_USER], user, viewer, part).await
}
