//! Consumers of the event log: cursors, retries, and events set aside.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::Timestamp;

statements! {
    /// A new consumer starts at the end of the log: earlier events do not concern it.
    REGISTER = "INSERT INTO event_consumers (name, cursor, moved_at)
        SELECT $1, seq, $2 FROM log_heads WHERE name = 'events'
        ON CONFLICT (name) DO NOTHING";
    GET = "SELECT c.name, c.cursor, c.tries, c.last_error, c.retry_at, c.moved_at, h.seq AS head, CAST(0 AS BIGINT) AS failures
        FROM event_consumers c JOIN log_heads h ON h.name = 'events' WHERE c.name = $1";
    EVERY = "SELECT c.name, c.cursor, c.tries, c.last_error, c.retry_at, c.moved_at, h.seq AS head,
            (SELECT count(*) FROM event_failures f WHERE f.consumer = c.name) AS failures
        FROM event_consumers c JOIN log_heads h ON h.name = 'events' ORDER BY c.name";
    LOCK = "SELECT cursor FROM event_consumers WHERE name = $1", postgres " FOR UPDATE";
    MOVE = "UPDATE event_consumers SET cursor = $2, tries = 0, last_error = NULL, retry_at = NULL, moved_at = $3
        WHERE name = $1";
    FAILED = "UPDATE event_consumers SET tries = tries + 1, last_error = $2, retry_at = $3 WHERE name = $1";
    SET_ASIDE = "INSERT INTO event_failures (consumer, seq, kind, error, tries, failed_at) VALUES ($1, $2, $3, $4, $5, $6)";
    FAILURES = "SELECT consumer, seq, kind, error, tries, failed_at FROM event_failures
        WHERE seq < $1 ORDER BY seq DESC, consumer DESC LIMIT $2";
    SETTLE = "DELETE FROM event_failures WHERE consumer = $1 AND seq = $2";
    REMOVE = "DELETE FROM event_consumers WHERE name = $1";
    REMOVE_FAILURES = "DELETE FROM event_failures WHERE consumer = $1";
}

/// State of a consumer.
#[derive(Debug, Clone)]
pub struct Progress {
    pub name: String,
    /// Last event that was consumed, set aside or skipped.
    pub cursor: i64,
    /// Last event in the log.
    pub head: i64,
    /// Failed attempts of the event after the cursor.
    pub tries: i64,
    pub last_error: Option<String>,
    /// Time of the next attempt.
    pub retry_at: Option<Timestamp>,
    /// Time of the last cursor move.
    pub moved_at: Timestamp,
    /// Number of events set aside; counted by [`all`] only.
    pub failures: i64,
}

impl Progress {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            name: row.text("name")?,
            cursor: row.int("cursor")?,
            head: row.int("head")?,
            tries: row.int("tries")?,
            last_error: row.opt_text("last_error")?,
            retry_at: row.opt_int("retry_at")?.map(Timestamp::from_micros),
            moved_at: row.time("moved_at")?,
            failures: row.int("failures")?,
        })
    }

    /// Number of events behind the head of the log.
    pub fn lag(&self) -> i64 {
        (self.head - self.cursor).max(0)
    }
}

/// An event that a consumer could not process.
#[derive(Debug, Clone)]
pub struct Failure {
    pub consumer: String,
    /// Position in the event log.
    pub seq: i64,
    pub kind: String,
    pub error: String,
    /// Number of attempts.
    pub tries: i64,
    /// Time when it was set aside.
    pub failed_at: Timestamp,
}

impl Failure {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            consumer: row.text("consumer")?,
            seq: row.int("seq")?,
            kind: row.text("kind")?,
            error: row.text("error")?,
            tries: row.int("tries")?,
            failed_at: row.time("failed_at")?,
        })
    }
}

/// Registers a consumer at the end of the log; does nothing if it exists.
pub async fn register(tx: &mut Tx, name: &str) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&REGISTER, params![name, now]).await.map(drop)
}

/// State of a consumer.
pub async fn get(conn: &mut Conn, name: &str) -> Result<Option<Progress>, StoreError> {
    conn.one(&GET, params![name]).await?.map(|row| Progress::from_row(&row)).transpose()
}

/// State of every consumer, by name.
pub async fn all(conn: &mut Conn) -> Result<Vec<Progress>, StoreError> {
    conn.all(&EVERY, &[]).await?.iter().map(Progress::from_row).collect()
}

/// Cursor of a consumer, locked until the unit ends.
pub async fn lock(tx: &mut Tx, name: &str) -> Result<Option<i64>, StoreError> {
    tx.one(&LOCK, params![name]).await?.map(|row| row.int("cursor")).transpose()
}

/// Moves the cursor and resets the retry state.
pub async fn advance(tx: &mut Tx, name: &str, cursor: i64) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&MOVE, params![name, cursor, now]).await.map(drop)
}

/// Records a failed attempt of the event after the cursor.
pub async fn failed(tx: &mut Tx, name: &str, error: &str, retry_at: Timestamp) -> Result<(), StoreError> {
    tx.execute(&FAILED, params![name, error, retry_at]).await.map(drop)
}

/// Records an event as set aside.
pub async fn set_aside(tx: &mut Tx, failure: &Failure) -> Result<(), StoreError> {
    let Failure { consumer, seq, kind, error, tries, failed_at } = failure;
    let values = params![consumer.as_str(), *seq, kind.as_str(), error.as_str(), *tries, *failed_at];
    tx.execute(&SET_ASIDE, values).await.map(drop)
}

/// Events set aside before a log position, latest first.
pub async fn failures(conn: &mut Conn, before: i64, limit: i64) -> Result<Vec<Failure>, StoreError> {
    conn.all(&FAILURES, params![before, limit]).await?.iter().map(Failure::from_row).collect()
}

/// Removes an event from those set aside; `false` if it is not there.
pub async fn settle(tx: &mut Tx, name: &str, seq: i64) -> Result<bool, StoreError> {
    Ok(tx.execute(&SETTLE, params![name, seq]).await? > 0)
}

/// Removes a consumer that this version no longer has, with its events set aside, so that the log need not be kept for
/// it.
pub async fn forget(tx: &mut Tx, name: &str) -> Result<bool, StoreError> {
    tx.execute(&REMOVE_FAILURES, params![name]).await?;
    Ok(tx.execute(&REMOVE, params![name]).await? > 0)
}
