//! Forks: repositories that started as a copy of another.

use crate::repos::{Page, Repo, Viewer, columns, id_list, visible};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError};
use abide_core::{RepoId, UserId};
use std::collections::HashMap;

statements! {
    OF_OWNER = "SELECT r.id FROM repos r
        WHERE r.fork_of_repo_id = $1 AND r.owner_id = $2 AND r.deleted_at IS NULL ORDER BY r.id LIMIT 1";

    /// Forks of a repository that a viewer may read, latest first.
    LIST = concat!("SELECT ", columns!(), ", c.role AS role
        FROM repos r
        JOIN users u ON u.id = r.owner_id
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $2
        WHERE r.fork_of_repo_id = $1 AND ", visible!("$2", "$3"), "
        ORDER BY r.id DESC LIMIT $4 OFFSET $5");
    COUNT = concat!("SELECT count(*) AS n
        FROM repos r
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $2
        WHERE r.fork_of_repo_id = $1 AND ", visible!("$2", "$3"));
    /// Fork counts for a page of repositories at once.
    COUNTS = concat!("SELECT r.fork_of_repo_id AS source, count(*) AS n
        FROM repos r
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $2
        WHERE ", visible!("$2", "$3"), " AND r.fork_of_repo_id "),
        sqlite "IN (SELECT value FROM json_each('[' || $1 || ']')) GROUP BY r.fork_of_repo_id",
        postgres "= ANY (CAST(string_to_array($1, ',') AS BIGINT[])) GROUP BY r.fork_of_repo_id";
}

/// The live fork of a repository that this owner has.
pub async fn of_owner(conn: &mut Conn, source: RepoId, owner: UserId) -> Result<Option<RepoId>, StoreError> {
    conn.one(&OF_OWNER, params![source, owner]).await?.map(|row| row.int("id").map(RepoId::new)).transpose()
}

/// A page of forks that the viewer may read, latest first, and their total number.
pub async fn list(conn: &mut Conn, source: RepoId, viewer: Viewer, page: Page) -> Result<(Vec<Repo>, i64), StoreError> {
    let Viewer { user, reads_everything } = viewer;
    let rows = conn.all(&LIST, params![source, user, reads_everything, page.limit, page.offset]).await?;
    let total = conn.only(&COUNT, params![source, user, reads_everything]).await?.int("n")?;
    Ok((rows.iter().map(Repo::from_row).collect::<Result<_, _>>()?, total))
}

/// Number of readable forks of each repository; repositories without forks are omitted.
pub async fn counts(conn: &mut Conn, sources: &[RepoId], viewer: Viewer) -> Result<HashMap<RepoId, i64>, StoreError> {
    let rows = conn.all(&COUNTS, params![id_list(sources), viewer.user, viewer.reads_everything]).await?;
    rows.iter().map(|row| Ok((RepoId::new(row.int("source")?), row.int("n")?))).collect()
}
