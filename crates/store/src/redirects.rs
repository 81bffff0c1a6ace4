//! Old names of repositories. Each leads to an identity, never to another name, so they do not chain.
//!
//! A name keeps every repository that bore it, with the instant at which it left the name. [`crate::repos::by_slug`]
//! follows them: the live bearer wins, else the one that left last and that the viewer may read. So a repository that
//! takes a name hides the redirects of that name for as long as it bears it, and removes none.

use crate::repos::{Viewer, owner, redirected};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{Handle, RedirectId, RepoId, RepoName, Timestamp, UserId, UserName};
use std::time::Duration;

statements! {
    LEAVE = "INSERT INTO repo_redirects (old_owner_id, old_name, repo_id, left_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (old_owner_id, old_name, repo_id) DO UPDATE SET left_at = excluded.left_at";
    /// The names that a repository left first, beyond the bound.
    TRIM_REPO = "DELETE FROM repo_redirects WHERE id IN (
        SELECT id FROM repo_redirects WHERE repo_id = $1 ORDER BY left_at DESC, id DESC LIMIT 1000 OFFSET $2)";
    /// The same of the names below one owner.
    TRIM_OWNER = "DELETE FROM repo_redirects WHERE id IN (
        SELECT id FROM repo_redirects WHERE old_owner_id = $1 ORDER BY left_at DESC, id DESC LIMIT 1000 OFFSET $2)";
    COUNT_OF_OWNER = "SELECT count(*) AS n FROM repo_redirects WHERE old_owner_id = $1";
    /// Where the name leads a viewer ($3, $4) while nobody bears it.
    LEADS_TO = redirected!("$1");
    TAKE = "DELETE FROM repo_redirects WHERE old_owner_id = $1 AND old_name = $2 AND repo_id = $3";
    LIST = "SELECT d.id, COALESCE(u.name, u.npub) AS owner_name, d.old_name, d.left_at, d.last_used_at
        FROM repo_redirects d JOIN users u ON u.id = d.old_owner_id
        WHERE d.repo_id = $1 ORDER BY d.left_at DESC, d.id DESC LIMIT $2";
    REMOVE = "DELETE FROM repo_redirects WHERE repo_id = $1 AND id = $2 RETURNING old_owner_id, old_name";
    /// The old name under which someone came, if it is an old one. $1 may itself be an old name of the owner.
    USED = concat!("SELECT d.id, d.last_used_at FROM repo_redirects d
        WHERE d.repo_id = $3 AND d.old_name = $2 AND d.old_owner_id = ", owner!());
    TOUCH = "UPDATE repo_redirects SET last_used_at = $2 WHERE id = $1";
    /// Those that lead to the repository which bears the name: there should be none.
    IDLE = "SELECT d.id FROM repo_redirects d
        JOIN repos r ON r.id = d.repo_id AND r.owner_id = d.old_owner_id AND r.name = d.old_name AND r.deleted_at IS NULL
        ORDER BY d.id LIMIT $1";
}

/// How many old names a repository keeps.
pub const PER_REPO: i64 = 200;
/// How many old names lead away from below one owner.
pub const PER_OWNER: i64 = 10_000;

/// An old name.
#[derive(Debug, Clone)]
pub struct Redirect {
    /// Its number.
    pub id: RedirectId,
    /// What the owner of that time is called now.
    pub owner: Option<Handle>,
    /// The name of that time.
    pub name: RepoName,
    /// When the repository left it.
    pub since: Timestamp,
    /// When somebody last came by it, to the hour.
    pub last_used: Option<Timestamp>,
}

/// Notes that a repository left a name at an instant. Beyond the bounds the names that were left first go.
pub async fn leave(
    tx: &mut Tx,
    owner: UserId,
    name: &RepoName,
    repo: RepoId,
    left_at: Timestamp,
) -> Result<(), StoreError> {
    tx.execute(&LEAVE, params![owner, name.as_str(), repo, left_at]).await?;
    tx.execute(&TRIM_REPO, params![repo, PER_REPO]).await?;
    if tx.only(&COUNT_OF_OWNER, params![owner]).await?.int("n")? > PER_OWNER {
        tx.execute(&TRIM_OWNER, params![owner, PER_OWNER]).await?;
    }
    Ok(())
}

/// Notes that a repository bears a name, so that the name is no old one of its own. Returns the other repository to
/// which the name led the viewer until now, which it hides.
pub async fn take(
    tx: &mut Tx,
    owner: UserId,
    name: &RepoName,
    repo: RepoId,
    viewer: Viewer,
) -> Result<Option<RepoId>, StoreError> {
    let values = params![owner, name.as_str(), viewer.user, viewer.reads_everything];
    let led_to = tx.one(&LEADS_TO, values).await?.map(|row| row.int("repo_id").map(RepoId::new)).transpose()?;
    tx.execute(&TAKE, params![owner, name.as_str(), repo]).await?;
    Ok(led_to.filter(|other| *other != repo))
}

/// A repository's old names, the latest first.
pub async fn list(conn: &mut Conn, repo: RepoId) -> Result<Vec<Redirect>, StoreError> {
    let redirect = |row: &Row| {
        Ok(Redirect {
            id: RedirectId::new(row.int("id")?),
            owner: row.opt_text("owner_name")?.map(Handle::from_stored),
            name: RepoName::from_stored(row.text("old_name")?),
            since: row.time("left_at")?,
            last_used: row.opt_time("last_used_at")?,
        })
    };
    conn.all(&LIST, params![repo, PER_REPO]).await?.iter().map(redirect).collect()
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

/// Old names that lead to the repository which bears the name, which should not be.
pub async fn idle(conn: &mut Conn, limit: i64) -> Result<Vec<RedirectId>, StoreError> {
    let rows = conn.all(&IDLE, params![limit]).await?;
    rows.iter().map(|row| row.int("id").map(RedirectId::new)).collect()
}
