//! Who is logged in on the pages. Only a hash of the cookie is kept.

use crate::sql::statements;
use crate::users::{User, user_columns};
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{Timestamp, UserId};
use std::time::Duration;

/// The columns of [`Session`]; named apart from those of [`User`].
macro_rules! columns {
    () => {
        "s.hash AS session_hash, s.ip AS session_ip, s.agent AS session_agent, s.created_at AS session_began,
            s.last_seen_at AS session_seen, s.expires_at AS session_ends,
            COALESCE(s.confirmed_at, s.created_at) AS session_confirmed"
    };
}

statements! {
    INSERT = "INSERT INTO sessions (hash, user_id, ip, agent, created_at, last_seen_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $5, $6)";
    /// All but the $2 last used. A login more must not make the table grow for ever.
    END_OLDEST = "DELETE FROM sessions WHERE user_id = $1 AND hash NOT IN
        (SELECT hash FROM sessions WHERE user_id = $1 ORDER BY last_seen_at DESC, created_at DESC, hash LIMIT $2)";
    /// The login with who is logged in: one statement per request.
    OPEN = concat!("SELECT ", columns!(), ", ", user_columns!(), "
        FROM sessions s
        JOIN users u ON u.id = s.user_id
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary
        WHERE s.hash = $1 AND s.expires_at > $2 AND u.suspended_at IS NULL");
    OF_USER = concat!("SELECT ", columns!(), " FROM sessions s
        WHERE s.user_id = $1 AND s.expires_at > $2 ORDER BY s.last_seen_at DESC, s.hash LIMIT $3");
    TOUCH = "UPDATE sessions SET last_seen_at = $2, expires_at = $3, ip = $4 WHERE hash = $1 AND last_seen_at < $2";
    CONFIRM = "UPDATE sessions SET confirmed_at = $3 WHERE hash = $1 AND user_id = $2";
    END = "DELETE FROM sessions WHERE hash = $1 AND user_id = $2";
    END_BY_HASH = "DELETE FROM sessions WHERE hash = $1 RETURNING user_id";
    END_ALL = "DELETE FROM sessions WHERE user_id = $1";
    END_OTHERS = "DELETE FROM sessions WHERE user_id = $1 AND hash <> $2";
    PRUNE = "DELETE FROM sessions WHERE expires_at <= $1";
}

/// A login.
#[derive(Debug, Clone)]
pub struct Session {
    /// SHA-256 of the cookie.
    pub hash: Vec<u8>,
    /// From where it was last used.
    pub ip: Option<String>,
    /// With which browser, shortened.
    pub agent: String,
    /// Since when.
    pub created_at: Timestamp,
    /// When last used, to ten minutes.
    pub last_seen_at: Timestamp,
    /// Until when, if it is not used again.
    pub expires_at: Timestamp,
    /// When its owner last proved that it is them.
    pub confirmed_at: Timestamp,
}

impl Session {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            hash: row.bytes("session_hash")?,
            ip: row.opt_text("session_ip")?,
            agent: row.text("session_agent")?,
            created_at: row.time("session_began")?,
            last_seen_at: row.time("session_seen")?,
            expires_at: row.time("session_ends")?,
            confirmed_at: row.time("session_confirmed")?,
        })
    }
}

/// A login to be remembered.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// SHA-256 of the cookie.
    pub hash: [u8; 32],
    /// Whose.
    pub user_id: UserId,
    /// From where.
    pub ip: Option<String>,
    /// With which browser, shortened.
    pub agent: String,
    /// Until when.
    pub expires_at: Timestamp,
}

/// Remembers a login; of the user's older ones, the `keep` last used stay, this one included.
pub async fn insert(tx: &mut Tx, new: &NewSession, keep: i64) -> Result<(), StoreError> {
    let now = tx.now();
    let values = params![new.hash.as_slice(), new.user_id, new.ip.as_deref(), new.agent.as_str(), now, new.expires_at];
    tx.execute(&INSERT, values).await?;
    tx.execute(&END_OLDEST, params![new.user_id, keep]).await.map(drop)
}

/// The login of that cookie and who it is, unless it has ended or they are suspended.
pub async fn open(conn: &mut Conn, hash: &[u8; 32], now: Timestamp) -> Result<Option<(Session, User)>, StoreError> {
    let Some(row) = conn.one(&OPEN, params![hash.as_slice(), now]).await? else { return Ok(None) };
    Ok(Some((Session::from_row(&row)?, User::from_row(&row)?)))
}

/// A user's logins, the last used first.
pub async fn of_user(conn: &mut Conn, user: UserId, now: Timestamp, limit: i64) -> Result<Vec<Session>, StoreError> {
    conn.all(&OF_USER, params![user, now, limit]).await?.iter().map(Session::from_row).collect()
}

/// Notes that it was used, and lets it live for so long from then. One that has ended meanwhile stays ended, and what is
/// noted late does not undo a later use.
pub async fn touch(
    tx: &mut Tx,
    hash: &[u8],
    ip: Option<&str>,
    seen: Timestamp,
    ttl: Duration,
) -> Result<(), StoreError> {
    tx.execute(&TOUCH, params![hash, seen, seen.plus(ttl), ip]).await.map(drop)
}

/// Notes that the owner of a login has just proved that it is them.
pub async fn confirm(tx: &mut Tx, user: UserId, hash: &[u8]) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&CONFIRM, params![hash, user, now]).await.map(drop)
}

/// Ends one login of a user; `false` if they have no such login.
pub async fn end(tx: &mut Tx, user: UserId, hash: &[u8]) -> Result<bool, StoreError> {
    Ok(tx.execute(&END, params![hash, user]).await? > 0)
}

/// Ends the login of a cookie and tells whose it was; `None` if there is none.
pub async fn end_by_hash(tx: &mut Tx, hash: &[u8; 32]) -> Result<Option<UserId>, StoreError> {
    tx.one(&END_BY_HASH, params![hash.as_slice()]).await?.map(|row| row.int("user_id").map(UserId::new)).transpose()
}

/// Ends every login of a user; returns how many.
pub async fn end_all(tx: &mut Tx, user: UserId) -> Result<u64, StoreError> {
    tx.execute(&END_ALL, params![user]).await
}

/// Ends every login of a user but this one; returns how many.
pub async fn end_others(tx: &mut Tx, user: UserId, hash: &[u8]) -> Result<u64, StoreError> {
    tx.execute(&END_OTHERS, params![user, hash]).await
}

/// Forgets logins that have ended; returns how many.
pub async fn prune(tx: &mut Tx) -> Result<u64, StoreError> {
    let now = tx.now();
    tx.execute(&PRUNE, params![now]).await
}
