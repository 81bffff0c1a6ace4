//! Watches: how much someone wants to be told about a repository. Triggers keep `repos.watcher_count`.
//!
//! No row means that nobody chose: see [`WatchLevel::current`]. Suspended accounts are neither listed nor counted.

use crate::lists::{Kept, Part, Person, person_columns};
use crate::repos::{Viewer, columns, id_list, visible};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::{RepoId, UserId, WatchLevel};
use std::collections::HashMap;

/// Who watches a repository: one predicate for list and count.
macro_rules! watchers {
    ($repo:literal) => {
        concat!(
            " FROM watches w JOIN users u ON u.id = w.user_id
        WHERE w.level <> 'ignore' AND u.suspended_at IS NULL AND w.repo_id = ",
            $repo
        )
    };
}

/// What $1 watches, as far as a viewer may know: $2 is the viewer, $3 whether they read everything.
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
    /// Whoever has chosen keeps their choice.
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
    /// Repositories whose counter is wrong: there should be none.
    MISCOUNTED = concat!("SELECT r.id FROM repos r WHERE r.watcher_count <> (SELECT count(*)", watchers!("r.id"), ")
        ORDER BY r.id LIMIT $1");
    RECOUNT = concat!("UPDATE repos SET watcher_count = (SELECT count(*)", watchers!("$1"), ") WHERE id = $1");

    OF_USER = concat!("SELECT ", columns!(), ", c.role AS role, w.updated_at AS since", watched!(), "
        AND (w.updated_at, w.repo_id) < ($4, $5)
        ORDER BY w.updated_at DESC, w.repo_id DESC LIMIT $6 OFFSET $7");
    COUNT_OF_USER = concat!("SELECT count(*) AS n", watched!());
}

/// What someone chose, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// What.
    pub level: WatchLevel,
    /// When.
    pub at: abide_core::Timestamp,
}

/// What a user chose for several repositories; those without a choice are not in it.
pub async fn among(conn: &mut Conn, user: UserId, repos: &[RepoId]) -> Result<HashMap<RepoId, WatchLevel>, StoreError> {
    let rows = conn.all(&AMONG, params![user, id_list(repos)]).await?;
    rows.iter().map(|row| Ok((RepoId::new(row.int("repo_id")?), row.parsed("level")?))).collect()
}

/// What a user chose for a repository; `None` if nothing.
pub async fn choice(conn: &mut Conn, user: UserId, repo: RepoId) -> Result<Option<Choice>, StoreError> {
    let row = conn.one(&LEVEL, params![user, repo]).await?;
    row.map(|row| Ok(Choice { level: row.parsed("level")?, at: row.time("updated_at")? })).transpose()
}

/// The level that holds for a user and a repository, whether or not they chose one.
pub async fn current_level(conn: &mut Conn, user: UserId, repo: RepoId) -> Result<WatchLevel, StoreError> {
    Ok(WatchLevel::current(choice(conn, user, repo).await?.map(|choice| choice.level)))
}

/// Notes what a user chose; `false` if they had chosen that before.
pub async fn set(tx: &mut Tx, user: UserId, repo: RepoId, level: WatchLevel) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&SET, params![user, repo, level.as_str(), now]).await? > 0)
}

/// Chooses for a user who has chosen nothing; `false` if they have.
pub async fn suggest(tx: &mut Tx, user: UserId, repo: RepoId, level: WatchLevel) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&SUGGEST, params![user, repo, level.as_str(), now]).await? > 0)
}

/// Forgets what a user chose; `false` if there was nothing.
pub async fn remove(tx: &mut Tx, user: UserId, repo: RepoId) -> Result<bool, StoreError> {
    Ok(tx.execute(&REMOVE, params![user, repo]).await? > 0)
}

/// Who watches a repository, the latest first.
pub async fn of_repo(conn: &mut Conn, repo: RepoId, part: Part) -> Result<Vec<Person>, StoreError> {
    Person::list(conn, &OF_REPO, repo, part).await
}

/// Repositories whose rows say another number than there are, which should not be.
pub async fn miscounted(conn: &mut Conn, limit: i64) -> Result<Vec<RepoId>, StoreError> {
    let rows = conn.all(&MISCOUNTED, params![limit]).await?;
    rows.iter().map(|row| row.int("id").map(RepoId::new)).collect()
}

/// Counts again what a repository's row should say. The unit holds the row.
pub async fn recount(tx: &mut Tx, repo: RepoId) -> Result<(), StoreError> {
    tx.execute(&RECOUNT, params![repo]).await.map(drop)
}

/// How many watch a repository: what its row should say.
pub async fn count_of_repo(conn: &mut Conn, repo: RepoId) -> Result<i64, StoreError> {
    conn.only(&COUNT_OF_REPO, params![repo]).await?.int("n")
}

/// What a user watches and the viewer may read, the latest first, and how many that are in all.
pub async fn of_user(
    conn: &mut Conn,
    user: UserId,
    viewer: Viewer,
    part: Part,
) -> Result<(Vec<Kept>, i64), StoreError> {
    Kept::list(conn, [&OF_USER, &COUNT_OF_USER], user, viewer, part).await
}
