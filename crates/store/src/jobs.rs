//! Background jobs: enqueued in the caller's transaction, run under a hold, retried on failure.

use crate::holds::{self, expire_holds, renew_hold};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx, leases};
use abide_core::Timestamp;
use serde_json::Value as Json;
use std::time::Duration;

/// Columns of [`Job`].
macro_rules! columns {
    () => {
        "id, kind, payload, state, priority, run_at, attempts, max_attempts, token, holder, last_error, created_at,
            finished_at"
    };
}

statements! {
    ENQUEUE = "INSERT INTO jobs (kind, payload, unique_key, priority, state, run_at, max_attempts, created_at)
        VALUES ($1, $2, $3, $4, 'waiting', $5, $6, $7)
        ON CONFLICT (unique_key) WHERE state IN ('waiting', 'running') DO NOTHING
        RETURNING id";
    /// The most urgent due job. Skips jobs that another runner is claiming right now.
    PICK = "SELECT id FROM jobs WHERE state = 'waiting' AND run_at <= $1
        ORDER BY priority, run_at, id LIMIT 1", postgres " FOR UPDATE SKIP LOCKED";
    /// A check without a write lock: a job is due, or a hold has expired.
    ANYTHING = "SELECT 1 AS n WHERE EXISTS (SELECT 1 FROM jobs WHERE state = 'waiting' AND run_at <= $1)
        OR EXISTS (SELECT 1 FROM jobs WHERE state = 'running' AND expires_at <= $2)";
    START = concat!("UPDATE jobs SET state = 'running', attempts = attempts + 1, token = token + 1, holder = $2, expires_at = $3
        WHERE id = $1 AND state = 'waiting' RETURNING ", columns!());
    /// Jobs whose runner is gone. This does not count as an attempt of the job, because another job may have stopped
    /// the server. The job waits again, without delay the first time and longer each time after. After $3 crashes it
    /// fails.
    REAP = "UPDATE jobs SET
            state = CASE WHEN crashes + 1 >= $3 THEN 'failed' ELSE 'waiting' END,
            finished_at = CASE WHEN crashes + 1 >= $3 THEN CAST($2 AS BIGINT) ELSE NULL END,
            run_at = CASE WHEN crashes = 0 THEN run_at ELSE CAST($2 AS BIGINT) + crashes * 30000000 END,
            attempts = attempts - 1, crashes = crashes + 1,
            last_error = 'the server stopped while the job ran, ' || (crashes + 1) || ' times so far',
            holder = NULL, expires_at = NULL
        WHERE state = 'running' AND expires_at <= $1";
    EXPIRE_OF = expire_holds!("jobs", "state = 'running'");
    RENEW = renew_hold!("jobs");
    FINISH = "UPDATE jobs SET state = 'done', finished_at = $3, last_error = NULL, holder = NULL, expires_at = NULL
        WHERE id = $1 AND token = $2 AND state = 'running'";
    RETRY_LATER = "UPDATE jobs SET state = 'waiting', run_at = $3, last_error = $4, holder = NULL, expires_at = NULL
        WHERE id = $1 AND token = $2 AND state = 'running'";
    GIVE_UP = "UPDATE jobs SET state = 'failed', finished_at = $3, last_error = $4, holder = NULL, expires_at = NULL
        WHERE id = $1 AND token = $2 AND state = 'running'";
    /// A draining runner returns its job without an attempt.
    HAND_BACK = "UPDATE jobs SET state = 'waiting', attempts = attempts - 1, holder = NULL, expires_at = NULL
        WHERE id = $1 AND token = $2 AND state = 'running'";
    /// A job that waits for something else is no attempt.
    POSTPONE = "UPDATE jobs SET state = 'waiting', attempts = attempts - 1, run_at = $3, last_error = $4, holder = NULL,
            expires_at = NULL
        WHERE id = $1 AND token = $2 AND state = 'running'";
    AGAIN = "UPDATE jobs SET state = 'waiting', attempts = 0, crashes = 0, run_at = $2, finished_at = NULL
        WHERE id = $1 AND state IN ('failed', 'done')
            AND NOT EXISTS (SELECT 1 FROM jobs other WHERE other.unique_key = jobs.unique_key
                AND other.state IN ('waiting', 'running'))";
    BY_ID = concat!("SELECT ", columns!(), " FROM jobs WHERE id = $1");
    LIST = concat!("SELECT ", columns!(), " FROM jobs WHERE ($1 = '' OR state = $1) AND id < $2
        ORDER BY id DESC LIMIT $3");
    COUNT = "SELECT state, count(*) AS n FROM jobs GROUP BY state";
    PRUNE = "DELETE FROM jobs WHERE state IN ('done', 'failed') AND finished_at < $1";
    SCHEDULE = "INSERT INTO schedules (name, next_run_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    NOT_DUE = "SELECT 1 AS n FROM schedules WHERE name = $1 AND next_run_at > $2";
    DUE = "UPDATE schedules SET next_run_at = $3 WHERE name = $1 AND next_run_at <= $2";
}

/// A job to enqueue.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// Selects the handler.
    pub kind: &'static str,
    pub payload: Json,
    /// At most one waiting or running job has this key.
    pub unique_key: Option<String>,
    /// Smaller is more urgent.
    pub priority: i64,
    /// Earliest start.
    pub run_at: Timestamp,
    pub max_attempts: i64,
}

/// A job row.
#[derive(Debug, Clone)]
pub struct Job {
    pub id: i64,
    /// Selects the handler.
    pub kind: String,
    /// JSON.
    pub payload: String,
    /// `waiting`, `running`, `done` or `failed`.
    pub state: String,
    /// Smaller is more urgent.
    pub priority: i64,
    /// Earliest start.
    pub run_at: Timestamp,
    /// Attempts, including the running one; crashes do not count.
    pub attempts: i64,
    pub max_attempts: i64,
    /// Fencing token of this start.
    pub token: i64,
    /// Runner of the job.
    pub holder: Option<String>,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

impl Job {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.int("id")?,
            kind: row.text("kind")?,
            payload: row.text("payload")?,
            state: row.text("state")?,
            priority: row.int("priority")?,
            run_at: row.time("run_at")?,
            attempts: row.int("attempts")?,
            max_attempts: row.int("max_attempts")?,
            token: row.int("token")?,
            holder: row.opt_text("holder")?,
            last_error: row.opt_text("last_error")?,
            created_at: row.time("created_at")?,
            finished_at: row.opt_time("finished_at")?,
        })
    }
}

/// Enqueues a job in the caller's transaction; `None` if one with the same key waits or runs.
pub async fn enqueue(tx: &mut Tx, new: &NewJob) -> Result<Option<i64>, StoreError> {
    let now = tx.now();
    let values = params![
        new.kind,
        new.payload.to_string(),
        new.unique_key.as_deref(),
        new.priority,
        new.run_at,
        new.max_attempts,
        now
    ];
    let id = tx.one(&ENQUEUE, values).await?.map(|row| row.int("id")).transpose()?;
    tx.wake_jobs();
    Ok(id)
}

/// Whether a runner would find work.
pub async fn anything_to_do(conn: &mut Conn, local: Timestamp) -> Result<bool, StoreError> {
    let now = leases::now(conn, local).await?;
    Ok(conn.one(&ANYTHING, params![local, now]).await?.is_some())
}

/// Claims the most urgent due job.
pub async fn claim(tx: &mut Tx, holder: &str, ttl: Duration) -> Result<Option<Job>, StoreError> {
    let now = tx.now();
    let Some(row) = tx.one(&PICK, params![now]).await? else { return Ok(None) };
    start(tx, row.int("id")?, holder, ttl).await.map(Some)
}

/// Starts one job, due or not; [`StoreError::Missing`] if it is not waiting.
pub async fn start(tx: &mut Tx, id: i64, holder: &str, ttl: Duration) -> Result<Job, StoreError> {
    let expires_at = holds::end(tx, ttl).await?;
    Job::from_row(&tx.only(&START, params![id, holder, expires_at]).await?)
}

/// A job that was running at this many crashes may be their cause, so it fails.
pub const MAX_CRASHES: i64 = 10;

/// Frees jobs whose runner is gone; returns their number.
pub async fn reap(tx: &mut Tx) -> Result<u64, StoreError> {
    let local = tx.now();
    let now = leases::now(tx, local).await?;
    let reaped = tx.execute(&REAP, params![now, local, MAX_CRASHES]).await?;
    if reaped > 0 {
        tx.wake_jobs();
    }
    Ok(reaped)
}

/// Expires the holds of every runner whose name starts with `prefix`, except this one: those processes are gone.
pub async fn expire_of(tx: &mut Tx, prefix: &str, except: &str) -> Result<u64, StoreError> {
    holds::expire_of(tx, &EXPIRE_OF, prefix, except).await
}

/// Extends the hold of a running job; `false` if it was lost.
pub async fn renew(tx: &mut Tx, job: &Job, ttl: Duration) -> Result<bool, StoreError> {
    let expires_at = holds::end(tx, ttl).await?;
    Ok(tx.execute(&RENEW, params![job.id, job.token, expires_at]).await? > 0)
}

/// Marks a job as done; `false` if the hold was lost.
pub async fn finish(tx: &mut Tx, job: &Job) -> Result<bool, StoreError> {
    let now = tx.now();
    Ok(tx.execute(&FINISH, params![job.id, job.token, now]).await? > 0)
}

/// Records a failed attempt: retried at `retry_at`, or failed for good.
pub async fn fail(tx: &mut Tx, job: &Job, error: &str, retry_at: Option<Timestamp>) -> Result<bool, StoreError> {
    let now = tx.now();
    let changed = match retry_at {
        Some(at) => tx.execute(&RETRY_LATER, params![job.id, job.token, at, error]).await?,
        None => tx.execute(&GIVE_UP, params![job.id, job.token, now, error]).await?,
    };
    Ok(changed > 0)
}

/// Returns a job without an attempt, because the runner is stopping.
pub async fn hand_back(tx: &mut Tx, job: &Job) -> Result<(), StoreError> {
    tx.execute(&HAND_BACK, params![job.id, job.token]).await.map(drop)
}

/// Returns a job without an attempt, because something else is in its way until `at`; `false` if the hold was lost.
pub async fn postpone(tx: &mut Tx, job: &Job, reason: &str, at: Timestamp) -> Result<bool, StoreError> {
    Ok(tx.execute(&POSTPONE, params![job.id, job.token, at, reason]).await? > 0)
}

/// Queues an ended job anew, with all its tries; `false` if it has not ended, or if a job with the same key is queued.
pub async fn again(tx: &mut Tx, id: i64) -> Result<bool, StoreError> {
    let now = tx.now();
    let changed = tx.execute(&AGAIN, params![id, now]).await? > 0;
    tx.wake_jobs();
    Ok(changed)
}

pub async fn by_id(conn: &mut Conn, id: i64) -> Result<Option<Job>, StoreError> {
    conn.one(&BY_ID, params![id]).await?.as_ref().map(Job::from_row).transpose()
}

/// Jobs, newest first, before the job `before`; in any state if none is given.
pub async fn list(
    conn: &mut Conn,
    state: Option<&str>,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<Job>, StoreError> {
    let values = params![state.unwrap_or(""), before.unwrap_or(i64::MAX), limit];
    conn.all(&LIST, values).await?.iter().map(Job::from_row).collect()
}

/// Number of jobs in each state.
pub async fn counts(conn: &mut Conn) -> Result<Vec<(String, i64)>, StoreError> {
    conn.all(&COUNT, &[]).await?.iter().map(|row| Ok((row.text("state")?, row.int("n")?))).collect()
}

/// Removes jobs that finished before an instant.
pub async fn prune(tx: &mut Tx, before: Timestamp) -> Result<u64, StoreError> {
    tx.execute(&PRUNE, params![before]).await
}

/// Whether a cron entry may be due; a check without a write lock.
pub async fn schedule_is_due(conn: &mut Conn, name: &str, now: Timestamp) -> Result<bool, StoreError> {
    Ok(conn.one(&NOT_DUE, params![name, now]).await?.is_none())
}

/// Advances a cron entry if it is due; `true` for the one caller in the cluster that should enqueue its job.
///
/// A new entry is due at `next`.
pub async fn schedule_due(tx: &mut Tx, name: &str, next: Timestamp) -> Result<bool, StoreError> {
    let now = tx.now();
    tx.execute(&SCHEDULE, params![name, next]).await?;
    Ok(tx.execute(&DUE, params![name, now, next]).await? > 0)
}
