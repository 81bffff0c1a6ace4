//! Access tokens. Only a hash is stored.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::scope::Scopes;
use abide_core::{Redacted, Timestamp, UserId};

/// Columns of [`Token`].
macro_rules! columns {
    () => {
        "id, user_id, label, hint, scopes, created_at, expires_at, last_used_at, revoked_at"
    };
}

statements! {
    INSERT = "INSERT INTO tokens (user_id, label, hash, hint, scopes, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id";
    BY_HASH = concat!("SELECT ", columns!(), " FROM tokens WHERE hash = $1");
    LIST = concat!("SELECT ", columns!(), " FROM tokens WHERE user_id = $1 ORDER BY id LIMIT $2");
    COUNT_LIVE = "SELECT count(*) AS n FROM tokens
        WHERE user_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)";
    REVOKE = "UPDATE tokens SET revoked_at = $3 WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL";
    TOUCH = "UPDATE tokens SET last_used_at = $2 WHERE id = $1";
}

/// A token, without its secret.
#[derive(Debug, Clone)]
pub struct Token {
    pub id: i64,
    pub user_id: UserId,
    /// Label chosen by the owner.
    pub label: String,
    /// Last characters of the secret, to recognise it by.
    pub hint: String,
    pub scopes: Scopes,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// Last use, to the minute.
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl Token {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.int("id")?,
            user_id: UserId::new(row.int("user_id")?),
            label: row.text("label")?,
            hint: row.text("hint")?,
            scopes: Scopes::parse(&row.text("scopes")?).unwrap_or_default(),
            created_at: row.time("created_at")?,
            expires_at: row.opt_time("expires_at")?,
            last_used_at: row.opt_time("last_used_at")?,
            revoked_at: row.opt_time("revoked_at")?,
        })
    }

    /// Whether it is neither revoked nor expired.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// Values of a new token.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub user_id: UserId,
    /// Label chosen by the owner.
    pub label: String,
    /// SHA-256 of the secret: it has 256 random bits, so nothing slower is needed.
    pub hash: Redacted<[u8; 32]>,
    /// Last characters of the secret.
    pub hint: String,
    pub scopes: Scopes,
    pub expires_at: Option<Timestamp>,
}

/// Adds a token.
pub async fn insert(tx: &mut Tx, new: &NewToken) -> Result<i64, StoreError> {
    let now = tx.now();
    let values = params![
        new.user_id,
        new.label.as_str(),
        new.hash.expose().as_slice(),
        new.hint.as_str(),
        new.scopes.to_string(),
        now,
        new.expires_at
    ];
    tx.only(&INSERT, values).await?.int("id")
}

/// The token with this hash, live or not.
pub async fn by_hash(conn: &mut Conn, hash: &[u8; 32]) -> Result<Option<Token>, StoreError> {
    conn.one(&BY_HASH, params![hash.as_slice()]).await?.as_ref().map(Token::from_row).transpose()
}

/// A user's tokens.
pub async fn list(conn: &mut Conn, user: UserId, limit: i64) -> Result<Vec<Token>, StoreError> {
    conn.all(&LIST, params![user, limit]).await?.iter().map(Token::from_row).collect()
}

/// Number of live tokens of a user.
pub async fn count_live(tx: &mut Tx, user: UserId) -> Result<i64, StoreError> {
    let now = tx.now();
    tx.only(&COUNT_LIVE, params![user, now]).await?.int("n")
}

/// Revokes a token of this user; `false` if there was nothing to revoke.
pub async fn revoke(tx: &mut Tx, user: UserId, id: i64) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&REVOKE, params![id, user, now]).await? > 0)
}

/// Records a use.
pub async fn touch(tx: &mut Tx, id: i64) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&TOUCH, params![id, now]).await.map(drop)
}
