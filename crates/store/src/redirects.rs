//! Old names of repositories. Each leads to an identity, never to another name, so they do not chain.
//!
//! [`crate::repos::by_slug`] follows them; a live repository of the same name wins.

use crate::repos::owner;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{Handle, RedirectId, RepoId, RepoName, Timestamp, UserId, UserName};
use std::time::Duration;

statements! {
    POINT = "INSERT INTO repo_redirects (old_owner_id, old_name, repo_id, created_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (old_owner_id, old_name)
        DO UPDATE SET repo_id = excluded.repo_id, created_at = excluded.created_at, last_used_at = NULL";
    CLAIM = "DELETE FROM repo_redirects WHERE old_owner_id = $1 AND old_name = $2 RETURNING repo_id";
    LIST = "SELECT d.id, COALESCE(u.name, u.npub) AS owner_name, d.old_name, d.created_at, d.last_used_at
        FROM repo_redirects d JOIN users u ON u.id = d.old_owner_id
        WHERE d.repo_id = $1 ORDER BY d.id DESC LIMIT $2";
    REMOVE = "DELETE FROM repo_redirects WHERE repo_id = $1 AND id = $2 RETURNING old_owner_id, old_name";
    /// The old name under which someone came, if it is an old one. $1 may itself be an old name of the owner.
    USED = concat!("SELECT d.id, d.last_used_at FROM repo_redirects d
        WHERE d.repo_id = $3 AND d.old_name = $2 AND d.old_owner_id = ", owner!());
    TOUCH = "UPDATE repo_redirects SET last_used_at = $2 WHERE id = $1";
    /// Those that a live repository hides: there should be none.
    SHADOWED = "SELECT d.id FROM repo_redirects d
        JOIN repos r ON r.owner_id = d.old_owner_id AND r.name = d.old_name AND r.deleted_at IS NULL
        ORDER BY d.id LIMIT $1";
}

/// How many old names of a repository are listed at most.
const MAX: i64 = 1000;

/// An old name.
#[derive(Debug, Clone)]
pub struct Redirect {
    /// Its number.
    pub id: RedirectId,
    /// What the owner of that time is called now.
    pub owner: Option<Handle>,
    /// The name of that time.
    pub name: RepoName,
    /// Since when it is an old one.
    pub since: Timestamp,
    /// When somebody last came by it, to the hour.
    pub last_used: Option<Timestamp>,
}

/// Lets an old name lead to a repository.
pub async fn point(tx: &mut Tx, owner: UserId, name: &RepoName, repo: RepoId) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&POINT, params![owner, name.as_str(), repo, now]).await.map(drop)
}

/// Takes a name that may be an old one of something, which it then no longer leads to. Returns where it led.
pub async fn claim(tx: &mut Tx, owner: UserId, name: &RepoName) -> Result<Option<RepoId>, StoreError> {
    tx.one(&CLAIM, params![owner, name.as_str()]).await?.map(|row| row.int("repo_id").map(RepoId::new)).transpose()
}

/// A repository's old names, the latest first.
pub async fn list(conn: &mut Conn, repo: RepoId) -> Result<Vec<Redirect>, StoreError> {
    let redirect = |row: &Row| {
        Ok(Redirect {
            id: RedirectId::new(row.int("id")?),
            owner: row.opt_text("owner_name")?.map(Handle::from_stored),
            name: RepoName::from_stored(row.text("old_name")?),
            since: row.time("created_at")?,
            last_used: row.opt_time("last_used_at")?,
        })
    };
    conn.all(&LIST, params![repo, MAX]).await?.iter().map(redirect).collect()
}

/// Releases an old name of a repository: it leads nowhere. Returns whose it was and what it said.
pub async fn remove(tx: &mut Tx, repo: RepoId, id: RedirectId) -> Result<Option<(UserId, RepoName)>, StoreError> {
    let removed = |row: Row| Ok((UserId::new(row.int("old_owner_id")?), RepoName::from_stored(row.text("old_name")?)));
    tx.one(&REMOVE, params![repo, id]).await?.map(removed).transpose()
}

/// The old name by which somebody came to a repository, if its last use was not noted after `before`.
pub async fn to_note(
    conn: &mut Conn,
    owner: &UserName,
    name: &RepoName,
    repo: RepoId,
    before: Timestamp,
) -> Result<Option<RedirectId>, StoreError> {
    let Some(row) = conn.one(&USED, params![owner.as_str(), name.as_str(), repo]).await? else { return Ok(None) };
    let fresh = row.opt_time("last_used_at")?.is_some_and(|at| at > before);
    Ok(if fresh { None } else { Some(RedirectId::new(row.int("id")?)) })
}

/// How exactly the last use is noted.
pub const GRAIN: Duration = Duration::from_secs(3600);

/// Notes that an old name was used.
pub async fn touch(tx: &mut Tx, id: RedirectId) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&TOUCH, params![id, now]).await.map(drop)
}

/// Old names that a live repository hides, which should not be.
pub async fn shadowed(conn: &mut Conn, limit: i64) -> Result<Vec<RedirectId>, StoreError> {
    let rows = conn.all(&SHADOWED, params![limit]).await?;
    rows.iter().map(|row| row.int("id").map(RedirectId::new)).collect()
}
