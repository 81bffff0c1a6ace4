//! Identifiers whose events wait for git data. One row per identifier, held by one task in the cluster at a time.

use crate::holds::{self, expire_holds, renew_hold};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx, leases};
use abide_core::Timestamp;
use std::time::Duration;

/// Columns of [`Entry`].
macro_rules! columns {
    () => {
        "id, identifier, next_attempt, attempts, notices, ran_at, token, expires_at, created_at"
    };
}

/// `next_attempt` of a held row that no event has asked for yet.
const NEVER: Timestamp = Timestamp::from_micros(i64::MAX);

statements! {
    /// As `core::sync::attempts::Attempts::noticed`; a test compares both.
    NOTICE = "INSERT INTO sync_queue (identifier, next_attempt, created_at) VALUES ($1, $2, $3)
        ON CONFLICT (identifier) DO UPDATE SET attempts = 0, notices = sync_queue.notices + 1,
            next_attempt = CASE WHEN sync_queue.next_attempt > excluded.next_attempt THEN excluded.next_attempt
                ELSE sync_queue.next_attempt END
        RETURNING id";
    /// A new event is new evidence: objects that completed nothing before may complete something now.
    FORGET_FETCHED = "UPDATE sync_sources SET fetched = NULL WHERE queue_id = $1 AND fetched IS NOT NULL";
    /// A check without a write lock: an identifier is due, or a hold has expired.
    ANYTHING = "SELECT 1 AS n WHERE
        (SELECT next_attempt FROM sync_queue WHERE expires_at IS NULL ORDER BY next_attempt LIMIT 1) <= $1
        OR (SELECT expires_at FROM sync_queue WHERE expires_at IS NOT NULL ORDER BY expires_at LIMIT 1) <= $2";
    /// Of the identifiers that are due, the one that ran longest ago.
    PICK = "SELECT id FROM sync_queue WHERE expires_at IS NULL AND next_attempt <= $1
        ORDER BY ran_at, next_attempt, id LIMIT 1", postgres " FOR UPDATE SKIP LOCKED";
    START = concat!("UPDATE sync_queue SET token = token + 1, holder = $2, expires_at = $3, ran_at = $4, next_attempt = $5
        WHERE id = $1 AND expires_at IS NULL RETURNING ", columns!());
    RENEW = renew_hold!("sync_queue");
    /// A task that is gone: its identifier is due at once.
    REAP = "UPDATE sync_queue SET holder = NULL, expires_at = NULL, next_attempt = $2
        WHERE expires_at IS NOT NULL AND expires_at <= $1";
    EXPIRE_OF = expire_holds!("sync_queue", "expires_at IS NOT NULL");
    /// Nothing waits, and no event came meanwhile.
    DONE = "DELETE FROM sync_queue WHERE id = $1 AND token = $2 AND notices = $3 AND expires_at IS NOT NULL";
    AGAIN = "UPDATE sync_queue SET holder = NULL, expires_at = NULL,
            next_attempt = CASE WHEN next_attempt < $3 THEN next_attempt ELSE $3 END,
            attempts = CASE WHEN notices = $5 THEN CAST($4 AS BIGINT) ELSE 0 END
        WHERE id = $1 AND token = $2 AND expires_at IS NOT NULL";
    /// An identifier whose turn at a domain has come, or that the operator wants tried.
    HURRY = "UPDATE sync_queue SET next_attempt = $2 WHERE id = $1 AND next_attempt > $2 AND expires_at IS NULL";
    REMOVE = "DELETE FROM sync_queue WHERE id = $1 AND expires_at IS NULL";
    OF_IDENTIFIER = concat!("SELECT ", columns!(), " FROM sync_queue WHERE identifier = $1");
    BY_ID = concat!("SELECT ", columns!(), " FROM sync_queue WHERE id = $1");
    PAGE = concat!("SELECT ", columns!(), " FROM sync_queue WHERE id > $1 ORDER BY id LIMIT $2");
    COUNTS = "SELECT count(*) AS n, CAST(COALESCE(sum(CASE WHEN expires_at IS NOT NULL THEN 1 ELSE 0 END), 0) AS BIGINT) AS running
        FROM sync_queue";
}

/// An identifier in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: i64,
    pub identifier: String,
    /// Time of the next attempt; `None` while a task runs and no event has asked for another.
    pub next_attempt: Option<Timestamp>,
    /// Attempts since the last event.
    pub attempts: u32,
    /// Events that asked for an attempt. A change during a task means that it has to run again.
    pub notices: i64,
    /// Begin of the last attempt.
    pub ran_at: Option<Timestamp>,
    /// Fencing token of the task.
    pub token: i64,
    pub running: bool,
    pub created_at: Timestamp,
}

impl Entry {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let epoch = Timestamp::from_micros(0);
        Ok(Self {
            id: row.int("id")?,
            identifier: row.text("identifier")?,
            next_attempt: Some(row.time("next_attempt")?).filter(|at| *at != NEVER),
            attempts: u32::try_from(row.int("attempts")?).unwrap_or(u32::MAX),
            notices: row.int("notices")?,
            ran_at: Some(row.time("ran_at")?).filter(|at| *at != epoch),
            token: row.int("token")?,
            running: row.opt_time("expires_at")?.is_some(),
            created_at: row.time("created_at")?,
        })
    }
}

/// Queues an identifier in the transaction that lets an event wait, or moves its attempt earlier. Returns its number.
pub async fn notice(tx: &mut Tx, identifier: &str, delay: Duration) -> Result<i64, StoreError> {
    let now = tx.now();
    let id = tx.only(&NOTICE, params![identifier, now.plus(delay), now]).await?.int("id")?;
    tx.execute(&FORGET_FETCHED, params![id]).await?;
    Ok(id)
}

/// Whether a task would find work.
pub async fn anything_to_do(conn: &mut Conn, local: Timestamp) -> Result<bool, StoreError> {
    let now = leases::now(conn, local).await?;
    Ok(conn.one(&ANYTHING, params![local, now]).await?.is_some())
}

/// Claims the due identifier that ran longest ago. Identifiers of tasks that are gone are due again.
pub async fn claim(tx: &mut Tx, holder: &str, ttl: Duration) -> Result<Option<Entry>, StoreError> {
    let local = tx.now();
    let now = leases::now(tx, local).await?;
    tx.execute(&REAP, params![now, local]).await?;
    let Some(row) = tx.one(&PICK, params![local]).await? else { return Ok(None) };
    let expires_at = holds::end(tx, ttl).await?;
    let row = tx.only(&START, params![row.int("id")?, holder, expires_at, local, NEVER]).await?;
    Entry::from_row(&row).map(Some)
}

/// Extends the hold of a task; `false` if it was lost.
pub async fn renew(tx: &mut Tx, entry: &Entry, ttl: Duration) -> Result<bool, StoreError> {
    let expires_at = holds::end(tx, ttl).await?;
    Ok(tx.execute(&RENEW, params![entry.id, entry.token, expires_at]).await? > 0)
}

/// Expires the holds of every process whose name starts with `prefix`, except this one: those processes are gone.
pub async fn expire_of(tx: &mut Tx, prefix: &str, except: &str) -> Result<u64, StoreError> {
    holds::expire_of(tx, &EXPIRE_OF, prefix, except).await
}

/// Removes an identifier for which nothing waits. If an event came during the task, it is due when that event asks, and
/// at the latest at `otherwise`.
pub async fn done(tx: &mut Tx, entry: &Entry, otherwise: Timestamp) -> Result<(), StoreError> {
    if tx.execute(&DONE, params![entry.id, entry.token, entry.notices]).await? == 0 {
        again(tx, entry, otherwise, 0).await?;
    }
    Ok(())
}

/// Ends a task after which something still waits. An event that came meanwhile starts the count of attempts anew.
pub async fn again(tx: &mut Tx, entry: &Entry, next: Timestamp, attempts: u32) -> Result<bool, StoreError> {
    let values = params![entry.id, entry.token, next, i64::from(attempts), entry.notices];
    Ok(tx.execute(&AGAIN, values).await? > 0)
}

/// Makes an identifier due now, unless a task holds it.
pub async fn hurry(tx: &mut Tx, id: i64) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&HURRY, params![id, now]).await? > 0)
}

/// Removes an identifier that no task holds; the next event queues it anew.
pub async fn remove(tx: &mut Tx, id: i64) -> Result<bool, StoreError> {
    Ok(tx.execute(&REMOVE, params![id]).await? > 0)
}

/// The entry of an identifier.
pub async fn of_identifier(conn: &mut Conn, identifier: &str) -> Result<Option<Entry>, StoreError> {
    conn.one(&OF_IDENTIFIER, params![identifier]).await?.as_ref().map(Entry::from_row).transpose()
}

pub async fn by_id(conn: &mut Conn, id: i64) -> Result<Option<Entry>, StoreError> {
    conn.one(&BY_ID, params![id]).await?.as_ref().map(Entry::from_row).transpose()
}

/// Entries in the order in which they were queued, after the entry `after`.
pub async fn page(conn: &mut Conn, after: i64, limit: i64) -> Result<Vec<Entry>, StoreError> {
    conn.all(&PAGE, params![after, limit]).await?.iter().map(Entry::from_row).collect()
}

/// Number of queued identifiers, and of those that a task holds.
pub async fn counts(conn: &mut Conn) -> Result<(i64, i64), StoreError> {
    let row = conn.only(&COUNTS, &[]).await?;
    Ok((row.int("n")?, row.int("running")?))
}
