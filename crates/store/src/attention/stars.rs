//! Stars. Triggers keep `repos.star_count`.
//!
//! Stars of suspended accounts are kept, but neither listed nor counted. Lists omit a repository that is deleted or
//! that the viewer may not read; its stars come back with it.

use crate::attention::lists::{Kept, Part, Person, person_columns};
use crate::repos::search::anywhere;
use crate::repos::{Page, Viewer, columns, id_list, visible};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::attention::StarOrder;
use abide_core::{RepoId, UserId};
use std::collections::HashSet;

/// Public stargazers of a repository: one predicate for list and count.
macro_rules! stargazers {
    ($repo:literal) => {
        concat!(
            " FROM stars s JOIN users u ON u.id = s.user_id WHERE s.repo_id = ",
            $repo,
            " AND u.suspended_at IS NULL"
        )
    };
}

/// A user's stars that a viewer may see: $2 is the viewer, $3 whether they read everything.
macro_rules! starred_in {
    ($source:expr) => {
        concat!(
            " FROM (",
            $source,
            ") kept
        JOIN repos r ON r.id = kept.repo_id
        JOIN users u ON u.id = r.owner_id
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $2
        WHERE ",
            visible!("$2", "$3")
        )
    };
}

/// As [`starred_in`], searching the latest $4 stars for text ($5, a lower-case pattern).
macro_rules! found {
    () => {
        concat!(
            starred_in!(
                "SELECT t.repo_id, t.starred_at FROM stars t WHERE t.user_id = $1
            ORDER BY t.starred_at DESC, t.repo_id DESC LIMIT $4"
            ),
            " AND (r.name LIKE $5 ESCAPE '!' OR COALESCE(u.name, u.npub) LIKE $5 ESCAPE '!' OR lower(r.description) LIKE $5 ESCAPE '!')"
        )
    };
}

statements! {
    ADD = "INSERT INTO stars (user_id, repo_id, starred_at) VALUES ($1, $2, $3)
        ON CONFLICT (user_id, repo_id) DO NOTHING";
    REMOVE = "DELETE FROM stars WHERE user_id = $1 AND repo_id = $2";
    HAS = "SELECT user_id FROM stars WHERE user_id = $1 AND repo_id = $2";
    /// Which of a page of repositories a user stars.
    AMONG = "SELECT repo_id FROM stars WHERE user_id = $1 AND repo_id ",
        sqlite "IN (SELECT value FROM json_each('[' || $2 || ']'))",
        postgres "= ANY (CAST(string_to_array($2, ',') AS BIGINT[]))";

    OF_REPO = concat!("SELECT ", person_columns!(), ", s.starred_at AS since", stargazers!("$1"), "
        AND (s.starred_at, s.user_id) < ($2, $3)
        ORDER BY s.starred_at DESC, s.user_id DESC LIMIT $4 OFFSET $5");
    COUNT_OF_REPO = concat!("SELECT count(*) AS n", stargazers!("$1"));
    /// Repositories with a wrong counter: there should be none.
    MISCOUNTED = concat!("SELECT r.id FROM repos r WHERE r.star_count <> (SELECT count(*)", stargazers!("r.id"), ")
        ORDER BY r.id LIMIT $1");
    RECOUNT = concat!("UPDATE repos SET star_count = (SELECT count(*)", stargazers!("$1"), ") WHERE id = $1");

    OF_USER = concat!("SELECT ", columns!(), ", c.role AS role, kept.starred_at AS since",
        starred_in!("SELECT t.repo_id, t.starred_at FROM stars t WHERE t.user_id = $1"), "
        AND (kept.starred_at, kept.repo_id) < ($4, $5)
        ORDER BY kept.starred_at DESC, kept.repo_id DESC LIMIT $6 OFFSET $7");
    COUNT_OF_USER = concat!("SELECT count(*) AS n",
        starred_in!("SELECT t.repo_id, t.starred_at FROM stars t WHERE t.user_id = $1"));

    /// $6 is the order.
    FOUND_OF_USER = concat!("SELECT ", columns!(), ", c.role AS role, kept.starred_at AS since", found!(), "
        ORDER BY
            CASE WHEN $6 = 'name' THEN r.name ELSE '' END,
            CASE $6 WHEN 'stars' THEN r.star_count WHEN 'updated' THEN r.updated_at WHEN 'oldest' THEN -kept.starred_at
                ELSE kept.starred_at END DESC,
            kept.repo_id DESC
        LIMIT $7 OFFSET $8");
    COUNT_FOUND_OF_USER = concat!("SELECT count(*) AS n", found!());
}

/// Stars a repository; `false` if it was already starred.
pub async fn add(tx: &mut Tx, user: UserId, repo: RepoId) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&ADD, params![user, repo, now]).await? > 0)
}

/// Removes a star; `false` if there was none.
pub async fn remove(tx: &mut Tx, user: UserId, repo: RepoId) -> Result<bool, StoreError> {
    Ok(tx.execute(&REMOVE, params![user, repo]).await? > 0)
}

/// Whether a user stars a repository.
pub async fn has(conn: &mut Conn, user: UserId, repo: RepoId) -> Result<bool, StoreError> {
    Ok(conn.one(&HAS, params![user, repo]).await?.is_some())
}

/// Which of these repositories a user stars.
pub async fn among(conn: &mut Conn, user: UserId, repos: &[RepoId]) -> Result<HashSet<RepoId>, StoreError> {
    let rows = conn.all(&AMONG, params![user, id_list(repos)]).await?;
    rows.iter().map(|row| row.int("repo_id").map(RepoId::new)).collect()
}

/// Stargazers of a repository, latest first.
pub async fn of_repo(conn: &mut Conn, repo: RepoId, part: Part) -> Result<Vec<Person>, StoreError> {
    Person::list(conn, &OF_REPO, repo, part).await
}

/// Repositories whose counter differs from the number of stars, which should not happen.
pub async fn miscounted(conn: &mut Conn, limit: i64) -> Result<Vec<RepoId>, StoreError> {
    let rows = conn.all(&MISCOUNTED, params![limit]).await?;
    rows.iter().map(|row| row.int("id").map(RepoId::new)).collect()
}

/// Corrects a repository's counter. The unit holds the row.
pub async fn recount(tx: &mut Tx, repo: RepoId) -> Result<(), StoreError> {
    tx.execute(&RECOUNT, params![repo]).await.map(drop)
}

/// Number of stars of a repository, which its counter should equal.
pub async fn count_of_repo(conn: &mut Conn, repo: RepoId) -> Result<i64, StoreError> {
    conn.only(&COUNT_OF_REPO, params![repo]).await?.int("n")
}

/// A user's stars that the viewer may read, latest first, and their total number.
pub async fn of_user(
    conn: &mut Conn,
    user: UserId,
    viewer: Viewer,
    part: Part,
) -> Result<(Vec<Kept>, i64), StoreError> {
    Kept::list(conn, [&OF_USER, &COUNT_OF_USER], user, viewer, part).await
}

/// Search among a user's stars.
#[derive(Debug, Clone)]
pub struct Search {
    /// Lower-case text in the name, the owner's name or the description.
    pub text: String,
    pub order: StarOrder,
    /// Most stars to read, latest first.
    pub scan: i64,
}

/// As [`of_user`], with a text search and another order.
pub async fn found_of_user(
    conn: &mut Conn,
    user: UserId,
    viewer: Viewer,
    search: &Search,
    page: Page,
) -> Result<(Vec<Kept>, i64), StoreError> {
    let Viewer { user: by, reads_everything } = viewer;
    let pattern = anywhere(&search.text);
    let values = params![
        user,
        by,
        reads_everything,
        search.scan,
        pattern.as_str(),
        search.order.as_str(),
        page.limit,
        page.offset
    ];
    let rows = conn.all(&FOUND_OF_USER, values).await?;
    let total = conn.only(&COUNT_FOUND_OF_USER, params![user, by, reads_everything, search.scan, pattern]).await?;
    Ok((rows.iter().map(Kept::from_row).collect::<Result<_, _>>()?, total.int("n")?))
}
