//! Public keys for SSH.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{Timestamp, UserId};

/// Columns of [`SshKey`].
macro_rules! columns {
    () => {
        "id, user_id, title, fingerprint, public_key, created_at, last_used_at"
    };
}

statements! {
    INSERT = "INSERT INTO ssh_keys (user_id, title, fingerprint, public_key, created_at)
        VALUES ($1, $2, $3, $4, $5) RETURNING id";
    BY_FINGERPRINT = concat!("SELECT ", columns!(), " FROM ssh_keys WHERE fingerprint = $1");
    BY_ID = concat!("SELECT ", columns!(), " FROM ssh_keys WHERE id = $1 AND user_id = $2");
    LIST = concat!("SELECT ", columns!(), " FROM ssh_keys WHERE user_id = $1 ORDER BY id LIMIT $2 OFFSET $3");
    COUNT = "SELECT count(*) AS n FROM ssh_keys WHERE user_id = $1";
    REMOVE = "DELETE FROM ssh_keys WHERE id = $1 AND user_id = $2";
    TOUCH = "UPDATE ssh_keys SET last_used_at = $2 WHERE id = $1";
}

#[derive(Debug, Clone)]
pub struct SshKey {
    pub id: i64,
    pub user_id: UserId,
    /// Title chosen by the owner.
    pub title: String,
    /// `SHA256:…` as OpenSSH prints it.
    pub fingerprint: String,
    /// Algorithm and base64, without a comment.
    pub public_key: String,
    pub created_at: Timestamp,
    /// Last use, to the minute.
    pub last_used_at: Option<Timestamp>,
}

impl SshKey {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.int("id")?,
            user_id: UserId::new(row.int("user_id")?),
            title: row.text("title")?,
            fingerprint: row.text("fingerprint")?,
            public_key: row.text("public_key")?,
            created_at: row.time("created_at")?,
            last_used_at: row.opt_time("last_used_at")?,
        })
    }
}

/// Values of a new key.
#[derive(Debug, Clone)]
pub struct NewSshKey {
    pub user_id: UserId,
    /// Title chosen by the owner.
    pub title: String,
    /// `SHA256:…`.
    pub fingerprint: String,
    /// Algorithm and base64.
    pub public_key: String,
}

/// Adds a key; [`StoreError::Unique`] if any account has it.
pub async fn insert(tx: &mut Tx, new: &NewSshKey) -> Result<i64, StoreError> {
    let now = tx.now();
    let values = params![new.user_id, new.title.as_str(), new.fingerprint.as_str(), new.public_key.as_str(), now];
    tx.only(&INSERT, values).await?.int("id")
}

/// The key with this fingerprint.
pub async fn by_fingerprint(conn: &mut Conn, fingerprint: &str) -> Result<Option<SshKey>, StoreError> {
    conn.one(&BY_FINGERPRINT, params![fingerprint]).await?.as_ref().map(SshKey::from_row).transpose()
}

/// The user's key with this id.
pub async fn by_id(conn: &mut Conn, user: UserId, id: i64) -> Result<Option<SshKey>, StoreError> {
    conn.one(&BY_ID, params![id, user]).await?.as_ref().map(SshKey::from_row).transpose()
}

/// A page of a user's keys.
pub async fn list(conn: &mut Conn, user: UserId, limit: i64, offset: i64) -> Result<Vec<SshKey>, StoreError> {
    conn.all(&LIST, params![user, limit, offset]).await?.iter().map(SshKey::from_row).collect()
}

/// Number of keys of a user.
pub async fn count(conn: &mut Conn, user: UserId) -> Result<i64, StoreError> {
    conn.only(&COUNT, params![user]).await?.int("n")
}

/// Removes the user's key; `false` if there was none.
pub async fn remove(tx: &mut Tx, user: UserId, id: i64) -> Result<bool, StoreError> {
    Ok(tx.execute(&REMOVE, params![id, user]).await? > 0)
}

/// Records a use.
pub async fn touch(tx: &mut Tx, id: i64) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&TOUCH, params![id, now]).await.map(drop)
}
