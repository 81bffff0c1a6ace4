//! Nostr keys of accounts, and used proofs of a key.

use crate::accounts::users::{User, user_columns};
use crate::repos::{Repo, columns};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{RepoName, Timestamp, UserId};
use serde_json::Value as Json;
use std::collections::{HashMap, HashSet};

statements! {
    BY_NPUB = concat!("SELECT ", user_columns!(), " FROM users u
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary WHERE u.npub = $1");
    /// Accounts of these npubs.
    ACCOUNTS = "SELECT u.id, u.npub, u.name IS NOT NULL AS named, u.suspended_at IS NOT NULL AS suspended
        FROM users u WHERE u.npub ",
        sqlite "IN (SELECT value FROM json_each($1))",
        postgres "= ANY (ARRAY (SELECT value FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))";
    /// Which of these npubs are barred.
    BARRED = "SELECT b.npub FROM barred_keys b WHERE b.npub ",
        sqlite "IN (SELECT value FROM json_each($1))",
        postgres "= ANY (ARRAY (SELECT value FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))";
    BAR = "INSERT INTO barred_keys (npub, created_at) VALUES ($1, $2) ON CONFLICT (npub) DO NOTHING";
    READMIT = "DELETE FROM barred_keys WHERE npub = $1";
    SET = "UPDATE users SET npub = $2, updated_at = $3 WHERE id = $1";
    /// Whether signed states govern any repository of an account, including deleted ones.
    GOVERNS = "SELECT 1 AS n WHERE EXISTS
        (SELECT 1 FROM repos r JOIN nostr_repos d ON d.repo_id = r.id WHERE r.owner_id = $1)";
    /// A live repository of a key by its forge name.
    REPO_BY_NAME = concat!("SELECT ", columns!(), ", c.role AS role
        FROM users u
        JOIN repos r ON r.owner_id = u.id AND r.name = $2 AND r.deleted_at IS NULL
        LEFT JOIN repo_collaborators c ON c.repo_id = r.id AND c.user_id = $3
        WHERE u.npub = $1");
    USE_PROOF = "INSERT INTO nostr_proofs (id, until) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
    PRUNE = "DELETE FROM nostr_proofs WHERE until <= $1";
}

/// Account of an npub.
pub async fn by_npub(conn: &mut Conn, npub: &str) -> Result<Option<User>, StoreError> {
    conn.one(&BY_NPUB, params![npub]).await?.as_ref().map(User::from_row).transpose()
}

/// Account of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyAccount {
    pub id: UserId,
    /// Whether it has a username.
    pub named: bool,
    pub suspended: bool,
}

/// Accounts of many npubs, in one statement. Keys without an account are omitted.
pub async fn accounts(conn: &mut Conn, npubs: &[String]) -> Result<HashMap<String, KeyAccount>, StoreError> {
    if npubs.is_empty() {
        return Ok(HashMap::new());
    }
    let list = Json::from(npubs.to_vec()).to_string();
    let account = |row: &Row| {
        let account = KeyAccount {
            id: UserId::new(row.int("id")?),
            named: row.bool("named")?,
            suspended: row.bool("suspended")?,
        };
        Ok((row.text("npub")?, account))
    };
    conn.all(&ACCOUNTS, params![list]).await?.iter().map(account).collect()
}

/// Which of these npubs belong to an account that was deleted while suspended.
pub async fn barred(conn: &mut Conn, npubs: &[String]) -> Result<HashSet<String>, StoreError> {
    if npubs.is_empty() {
        return Ok(HashSet::new());
    }
    let list = Json::from(npubs.to_vec()).to_string();
    conn.all(&BARRED, params![list]).await?.iter().map(|row| row.text("npub")).collect()
}

/// Bars a key permanently: its account is deleted while suspended.
pub async fn bar(tx: &mut Tx, npub: &str) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&BAR, params![npub, now]).await.map(drop)
}

/// Readmits a barred key; `false` if it was not barred.
pub async fn readmit(tx: &mut Tx, npub: &str) -> Result<bool, StoreError> {
    Ok(tx.execute(&READMIT, params![npub]).await? > 0)
}

/// Links or unlinks the key of an account; [`StoreError::Unique`] if another account has it.
pub async fn set(tx: &mut Tx, user: UserId, npub: Option<&str>) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&SET, params![user, npub, now]).await.map(drop)
}

/// Whether signed states govern any repository of an account.
pub async fn governs(conn: &mut Conn, user: UserId) -> Result<bool, StoreError> {
    Ok(conn.one(&GOVERNS, params![user]).await?.is_some())
}

/// The live repository of a key with this forge name, with the viewer's role in it.
pub async fn repo_by_name(
    conn: &mut Conn,
    npub: &str,
    name: &RepoName,
    viewer: Option<UserId>,
) -> Result<Option<Repo>, StoreError> {
    let row = conn.one(&REPO_BY_NAME, params![npub, name.as_str(), viewer]).await?;
    row.as_ref().map(Repo::from_row).transpose()
}

/// Records the use of a proof or a challenge; `false` if it was used before. Of two concurrent callers, one succeeds.
pub async fn use_proof(tx: &mut Tx, id: &[u8; 32], until: Timestamp) -> Result<bool, StoreError> {
    Ok(tx.execute(&USE_PROOF, params![&id[..], until]).await? > 0)
}

/// Removes expired proofs; returns their number.
pub async fn prune(tx: &mut Tx) -> Result<u64, StoreError> {
    let now = tx.now();
    tx.execute(&PRUNE, params![now]).await
}
