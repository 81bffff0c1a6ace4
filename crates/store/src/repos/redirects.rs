//! Redirects: old names of repositories. Each leads to a repo id, never to another name, so they do not chain.
//!
//! A name keeps every repository that had it, with the time when it left the name. [`crate::repos::by_slug`] follows
//! redirects: the live repository with the name wins, else the last one to leave it that the viewer may read. So a
//! repository that takes a name hides the redirects of that name while it has it, and removes none.

use crate::repos::{Viewer, owner, redirected};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{Handle, RedirectId, RepoId, RepoName, Timestamp, UserId, UserName};
use std::time::Duration;

statements! {
    LEAVE = "INSERT INTO repo_redirects (old_owner_id, old_name, repo_id, left_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (old_owner_id, old_name, repo_id) DO UPDATE SET left_at = excluded.left_at";
    /// Names beyond the limit that a repository left first.
    TRIM_REPO = "DELETE FROM repo_redirects WHERE id IN (
        SELECT id FROM repo_redirects WHERE repo_id = $1 ORDER BY left_at DESC, id DESC LIMIT 1000 OFFSET $2)";
    /// The same for the names below one owner.
    TRIM_OWNER = "DELETE FROM repo_redirects WHERE id IN (
        SELECT id FROM repo_redirects WHERE old_owner_id = $1 ORDER BY left_at DESC, id DESC LIMIT 1000 OFFSET $2)";
    COUNT_OF_OWNER = "SELECT count(*) AS n FROM repo_redirects WHERE old_owner_id = $1";
    /// The repository that the name leads a viewer ($3, $4) to while no repository has the name.
    LEADS_TO = redirected!("$1");
    TAKE = "DELETE FROM repo_redirects WHERE old_owner_id = $1 AND old_name = $2 AND repo_id = $3";
    LIST = "SELECT d.id, COALESCE(u.name, u.npub) AS owner_name, d.old_name, d.left_at, d.last_used_at
        FROM repo_redirects d JOIN users u ON u.id = d.old_owner_id
        WHERE d.repo_id = $1 ORDER BY d.left_at DESC, d.id DESC LIMIT $2";
    REMOVE = "DELETE FROM repo_redirects WHERE repo_id = $1 AND id = $2 RETURNING old_owner_id, old_name";
    /// The redirect that was used, if the name is an old one. $1 may be an old name of the owner.
    USED = concat!("SELECT d.id, d.last_used_at FROM repo_redirects d
        WHERE d.repo_id = $3 AND d.old_name = $2 AND d.old_owner_id = ", owner!());
    TOUCH = "UPDATE repo_redirects SET last_used_at = $2 WHERE id = $1";
    /// Redirects to the repository that has the name itself: there should be none.
    IDLE = "SELECT d.id FROM repo_redirects d
        JOIN repos r ON r.id = d.repo_id AND r.owner_id = d.old_owner_id AND r.name = d.old_name AND r.deleted_at IS NULL
        ORDER BY d.id LIMIT $1";
}

/// Most old names per repository.
pub const PER_REPO: i64 = 200;
/// Most old names below one owner.
pub const PER_OWNER: i64 = 10_000;

/// An old name.
#[derive(Debug, Clone)]
pub struct Redirect {
    pub id: RedirectId,
    /// Current name of the owner at that time.
    pub owner: Option<Handle>,
    /// Name at that time.
    pub name: RepoName,
    /// When the repository left it.
    pub since: Timestamp,
    /// Last use, to the hour.
    pub last_used: Option<Timestamp>,
}

/// Records that a repository left a name at an instant. Beyond the limits, the names left first are removed.
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

/// Records that a repository has a name, so that it is no longer a redirect of its own. Returns the other repository
/// that the name led the viewer to until now, which becomes hidden.
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

/// A repository's old names, latest first.
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

/// Releases an old name of a repository, so that it leads nowhere. Returns its owner and name.
pub async fn remove(tx: &mut Tx, repo: RepoId, id: RedirectId) -> Result<Option<(UserId, RepoName)>, StoreError> {
    let removed = |row: Row| Ok((UserId::new(row.int("old_owner_id")?), RepoName::from_stored(row.text("old_name")?)));
    tx.one(&REMOVE, params![repo, id]).await?.map(removed).transpose()
}

/// The redirect that was used to reach a repository, if its last recorded use is not after `before`.
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

/// Precision of the last use.
pub const GRAIN: Duration = Duration::from_secs(3600);

/// Records the use of a redirect.
pub async fn touch(tx: &mut Tx, id: RedirectId) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&TOUCH, params![id, now]).await.map(drop)
}

/// Redirects to the repository that has the name itself, which should not exist.
pub async fn idle(conn: &mut Conn, limit: i64) -> Result<Vec<RedirectId>, StoreError> {
    let rows = conn.all(&IDLE, params![limit]).await?;
    rows.iter().map(|row| row.int("id").map(RedirectId::new)).collect()
}
