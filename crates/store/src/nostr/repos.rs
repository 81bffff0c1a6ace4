//! Repositories governed by signed states: look-up by key and identifier.

use crate::nostr::purgatory::Bytes32;
use crate::repos::{self, Repo, columns};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::{RepoId, UserId};

statements! {
    INSERT = "INSERT INTO nostr_repos (repo_id, pubkey, identifier) VALUES ($1, $2, $3)";
    /// Deleted or not; a live one first.
    BY_COORDINATE = concat!("SELECT ", columns!(), ", c.role AS role
        FROM nostr_repos n
        JOIN repos r ON r.id = n.repo_id
        JOIN users u ON u.id = r.owner_id
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $3
        WHERE n.identifier = $2 AND n.pubkey = $1");
    OF_IDENTIFIER = concat!("SELECT ", columns!(), ", CAST(NULL AS TEXT) AS role, n.pubkey AS pubkey
        FROM nostr_repos n
        JOIN repos r ON r.id = n.repo_id
        JOIN users u ON u.id = r.owner_id
        WHERE n.identifier = $1 ORDER BY r.id LIMIT $2");
    OF_OWNER = "SELECT n.repo_id FROM repos r JOIN nostr_repos n ON n.repo_id = r.id
        WHERE r.owner_id = $1 AND r.deleted_at IS NULL ORDER BY n.repo_id";
    ID_OF = "SELECT repo_id FROM nostr_repos WHERE identifier = $2 AND pubkey = $1";
    COORDINATE = "SELECT pubkey, identifier FROM nostr_repos WHERE repo_id = $1";
    USER_OF_KEY = "SELECT id FROM users WHERE npub = $1";
    INSERT_USER = "INSERT INTO users (name, display_name, password_hash, site_admin, npub, created_at, updated_at)
        VALUES (NULL, NULL, NULL, FALSE, $1, $2, $2) RETURNING id";
}

/// Registers a repository under a key and identifier.
pub async fn insert(tx: &mut Tx, repo: RepoId, pubkey: &Bytes32, identifier: &str) -> Result<(), StoreError> {
    tx.execute(&INSERT, params![repo, &pubkey[..], identifier]).await.map(drop)
}

/// The repository of a key and identifier, deleted or not, with the viewer's role in it.
pub async fn by_coordinate(
    conn: &mut Conn,
    pubkey: &Bytes32,
    identifier: &str,
    viewer: Option<UserId>,
) -> Result<Option<Repo>, StoreError> {
    let row = conn.one(&BY_COORDINATE, params![&pubkey[..], identifier, viewer]).await?;
    row.as_ref().map(Repo::from_row).transpose()
}

/// Id of the repository of a key and identifier, deleted or not.
pub async fn id_of(conn: &mut Conn, pubkey: &Bytes32, identifier: &str) -> Result<Option<RepoId>, StoreError> {
    let row = conn.one(&ID_OF, params![&pubkey[..], identifier]).await?;
    row.map(|row| row.int("repo_id").map(RepoId::new)).transpose()
}

/// As [`by_coordinate`] without a viewer, locking the row until the unit ends.
pub async fn lock(tx: &mut Tx, pubkey: &Bytes32, identifier: &str) -> Result<Option<Repo>, StoreError> {
    match id_of(tx, pubkey, identifier).await? {
        Some(id) => repos::lock(tx, id, None).await,
        None => Ok(None),
    }
}

/// Repositories with this identifier and their keys, including deleted ones, by id.
pub async fn of_identifier(conn: &mut Conn, identifier: &str, limit: i64) -> Result<Vec<(Bytes32, Repo)>, StoreError> {
    let rows = conn.all(&OF_IDENTIFIER, params![identifier, limit]).await?;
    rows.iter().map(|row| Ok((row.bytes32("pubkey")?, Repo::from_row(row)?))).collect()
}

/// Repositories of an account that signed states govern, by id, without deleted ones.
pub async fn of_owner(conn: &mut Conn, owner: UserId) -> Result<Vec<RepoId>, StoreError> {
    conn.all(&OF_OWNER, params![owner]).await?.iter().map(|row| row.int("repo_id").map(RepoId::new)).collect()
}

/// Key and identifier of a repository; `None` if no signed state governs it.
pub async fn coordinate(conn: &mut Conn, repo: RepoId) -> Result<Option<(Bytes32, String)>, StoreError> {
    let row = conn.one(&COORDINATE, params![repo]).await?;
    row.map(|row| Ok((row.bytes32("pubkey")?, row.text("identifier")?))).transpose()
}

/// Account of an npub.
pub async fn user_of(conn: &mut Conn, npub: &str) -> Result<Option<UserId>, StoreError> {
    let row = conn.one(&USER_OF_KEY, params![npub]).await?;
    row.map(|row| row.int("id").map(UserId::new)).transpose()
}

/// Account of an npub, created if there is none: without a username until its holder logs in and picks one.
pub async fn user_for(tx: &mut Tx, npub: &str) -> Result<UserId, StoreError> {
    if let Some(user) = user_of(tx, npub).await? {
        return Ok(user);
    }
    let now = tx.now();
    tx.only(&INSERT_USER, params![npub, now]).await?.int("id").map(UserId::new)
}
