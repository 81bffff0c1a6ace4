//! Purged repositories whose directories still have to be removed.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::RepoId;

statements! {
    INSERT = "INSERT INTO repo_purges (repo_id, slug, created_at) VALUES ($1, $2, $3)";
    PAGE = "SELECT repo_id FROM repo_purges WHERE repo_id > $1 ORDER BY repo_id LIMIT $2";
    REMOVE = "DELETE FROM repo_purges WHERE repo_id = $1";
    COUNT = "SELECT count(*) AS n FROM repo_purges";
    KNOWN = "SELECT repo_id FROM repo_purges WHERE repo_id = $1";
}

/// Records that a directory must be removed.
pub async fn insert(tx: &mut Tx, repo: RepoId, slug: &str) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&INSERT, params![repo, slug, now]).await.map(drop)
}

/// A page of repositories whose directory must be removed, by id.
pub async fn page(conn: &mut Conn, after: RepoId, limit: i64) -> Result<Vec<RepoId>, StoreError> {
    let rows = conn.all(&PAGE, params![after, limit]).await?;
    rows.iter().map(|row| row.int("repo_id").map(RepoId::new)).collect()
}

/// Records that a directory was removed.
pub async fn remove(tx: &mut Tx, repo: RepoId) -> Result<(), StoreError> {
    tx.execute(&REMOVE, params![repo]).await.map(drop)
}

/// Number of directories to remove.
pub async fn count(conn: &mut Conn) -> Result<i64, StoreError> {
    conn.only(&COUNT, &[]).await?.int("n")
}

/// Whether the directory of this repository must be removed.
pub async fn known(conn: &mut Conn, repo: RepoId) -> Result<bool, StoreError> {
    Ok(conn.one(&KNOWN, params![repo]).await?.is_some())
}
