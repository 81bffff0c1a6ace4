//! Collaborators of a repository.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::repo::Role;
use abide_core::{Handle, RepoId, UserId};

statements! {
    ROLE = "SELECT role FROM repo_collaborators WHERE repo_id = $1 AND user_id = $2";
    SET = "INSERT INTO repo_collaborators (repo_id, user_id, role, created_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (repo_id, user_id) DO UPDATE SET role = excluded.role";
    REMOVE = "DELETE FROM repo_collaborators WHERE repo_id = $1 AND user_id = $2";
    LIST = "SELECT c.user_id, c.role, COALESCE(u.name, u.npub) AS name, u.site_admin
        FROM repo_collaborators c JOIN users u ON u.id = c.user_id
        WHERE c.repo_id = $1 ORDER BY u.name LIMIT $2 OFFSET $3";
    COUNT = "SELECT count(*) AS n FROM repo_collaborators WHERE repo_id = $1";
}

#[derive(Debug, Clone)]
pub struct Collaborator {
    pub user_id: UserId,
    pub name: Option<Handle>,
    pub site_admin: bool,
    pub role: Role,
}

/// A user's role, if they have one.
pub async fn role(conn: &mut Conn, repo: RepoId, user: UserId) -> Result<Option<Role>, StoreError> {
    conn.one(&ROLE, params![repo, user]).await?.map(|row| row.parsed("role")).transpose()
}

/// Sets a user's role, replacing the previous one.
pub async fn set(tx: &mut Tx, repo: RepoId, user: UserId, role: Role) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SET, params![repo, user, role.as_str(), now]).await.map(drop)
}

/// Removes a user's role; `false` if they had none.
pub async fn remove(tx: &mut Tx, repo: RepoId, user: UserId) -> Result<bool, StoreError> {
    Ok(tx.execute(&REMOVE, params![repo, user]).await? > 0)
}

/// A page of collaborators by name, and their total number.
pub async fn list(
    conn: &mut Conn,
    repo: RepoId,
    page: crate::repos::Page,
) -> Result<(Vec<Collaborator>, i64), StoreError> {
    let rows = conn.all(&LIST, params![repo, page.limit, page.offset]).await?;
    let total = conn.only(&COUNT, params![repo]).await?.int("n")?;
    let people = rows
        .iter()
        .map(|row| {
            Ok(Collaborator {
                user_id: UserId::new(row.int("user_id")?),
                name: row.opt_text("name")?.map(Handle::from_stored),
                site_admin: row.bool("site_admin")?,
                role: row.parsed("role")?,
            })
        })
        .collect::<Result<_, StoreError>>()?;
    Ok((people, total))
}
