//! Web sessions. Only a hash of the cookie is stored.

use crate::accounts::users::{User, user_columns};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{Redacted, Timestamp, UserId};
use std::time::Duration;

/// Columns of [`Session`], with names distinct from those of [`User`].
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
    /// All but the $2 last used, so that logins do not grow the table forever.
    END_OLDEST = "DELETE FROM sessions WHERE user_id = $1 AND hash NOT IN
        (SELECT hash FROM sessions WHERE user_id = $1 ORDER BY last_seen_at DESC, created_at DESC, hash LIMIT $2)";
    /// The session with its user: one statement per request.
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

#[derive(Debug, Clone)]
pub struct Session {
    /// SHA-256 of the cookie.
    pub hash: Redacted<Vec<u8>>,
    /// Address of the last use.
    pub ip: Option<String>,
    /// User agent, shortened.
    pub agent: String,
    pub created_at: Timestamp,
    /// Last use, to ten minutes.
    pub last_seen_at: Timestamp,
    /// Expiry without further use.
    pub expires_at: Timestamp,
    /// Time of the last confirmation of identity.
    pub confirmed_at: Timestamp,
}

impl Session {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            hash: row.bytes("session_hash")?.into(),
            ip: row.opt_text("session_ip")?,
            agent: row.text("session_agent")?,
            created_at: row.time("session_began")?,
            last_seen_at: row.time("session_seen")?,
            expires_at: row.time("session_ends")?,
            confirmed_at: row.time("session_confirmed")?,
        })
    }
}

/// A session to store.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// SHA-256 of the cookie.
    pub hash: Redacted<[u8; 32]>,
    pub user_id: UserId,
    pub ip: Option<String>,
    /// User agent, shortened.
    pub agent: String,
    pub expires_at: Timestamp,
}

/// Stores a session; keeps the user's `keep` last used sessions, including this one.
pub async fn insert(tx: &mut Tx, new: &NewSession, keep: i64) -> Result<(), StoreError> {
    let now = tx.now();
    let values =
        params![new.hash.expose().as_slice(), new.user_id, new.ip.as_deref(), new.agent.as_str(), now, new.expires_at];
    tx.execute(&INSERT, values).await?;
    tx.execute(&END_OLDEST, params![new.user_id, keep]).await.map(drop)
}

/// The session of a cookie and its user, unless it has expired or the user is suspended.
pub async fn open(conn: &mut Conn, hash: &[u8; 32], now: Timestamp) -> Result<Option<(Session, User)>, StoreError> {
    let Some(row) = conn.one(&OPEN, params![hash.as_slice(), now]).await? else { return Ok(None) };
    Ok(Some((Session::from_row(&row)?, User::from_row(&row)?)))
}

/// A user's sessions, last used first.
pub async fn of_user(conn: &mut Conn, user: UserId, now: Timestamp, limit: i64) -> Result<Vec<Session>, StoreError> {
    conn.all(&OF_USER, params![user, now, limit]).await?.iter().map(Session::from_row).collect()
}

/// Records a use and extends the expiry. An ended session stays ended, and a late record does not undo a later use.
pub async fn touch(
    tx: &mut Tx,
    hash: &[u8],
    ip: Option<&str>,
    seen: Timestamp,
    ttl: Duration,
) -> Result<(), StoreError> {
    tx.execute(&TOUCH, params![hash, seen, seen.plus(ttl), ip]).await.map(drop)
}

/// Records that the user has just confirmed their identity.
pub async fn confirm(tx: &mut Tx, user: UserId, hash: &[u8]) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&CONFIRM, params![hash, user, now]).await.map(drop)
}

/// Ends one session of a user; `false` if it does not exist.
pub async fn end(tx: &mut Tx, user: UserId, hash: &[u8]) -> Result<bool, StoreError> {
    Ok(tx.execute(&END, params![hash, user]).await? > 0)
}

/// Ends the session of a cookie and returns its user; `None` if there is none.
pub async fn end_by_hash(tx: &mut Tx, hash: &[u8; 32]) -> Result<Option<UserId>, StoreError> {
    tx.one(&END_BY_HASH, params![hash.as_slice()]).await?.map(|row| row.int("user_id").map(UserId::new)).transpose()
}

/// Ends every session of a user; returns their number.
pub async fn end_all(tx: &mut Tx, user: UserId) -> Result<u64, StoreError> {
    tx.execute(&END_ALL, params![user]).await
}

/// Ends every session of a user except this one; returns their number.
pub async fn end_others(tx: &mut Tx, user: UserId, hash: &[u8]) -> Result<u64, StoreError> {
    tx.execute(&END_OTHERS, params![user, hash]).await
}

/// Removes expired sessions; returns their number.
pub async fn prune(tx: &mut Tx) -> Result<u64, StoreError> {
    let now = tx.now();
    tx.execute(&PRUNE, params![now]).await
}
