//! Time limit of a reading statement on SQLite, which has none of its own.
//!
//! SQLite calls a progress handler every few thousand instructions; a handler that says no ends the statement with
//! `SQLITE_INTERRUPT` and leaves the connection usable. On PostgreSQL, `statement_timeout` does the same.

use sqlx::SqliteConnection;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Instructions between two looks at the clock: well below a millisecond.
const INSTRUCTIONS: i32 = 10_000;

static START: LazyLock<Instant> = LazyLock::new(now);

#[allow(clippy::disallowed_methods, reason = "the limit is on real time")]
fn now() -> Instant {
    Instant::now()
}

fn milliseconds() -> u64 {
    let since = now().saturating_duration_since(*START);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The instant at which the running statement of one connection ends.
#[derive(Debug)]
pub(crate) struct Deadline {
    limit: Duration,
    at: Arc<AtomicU64>,
}

impl Deadline {
    /// Limits the statements of a connection, until another limit is set.
    pub(crate) async fn set(conn: &mut SqliteConnection, limit: Duration) -> Result<Self, sqlx::Error> {
        let at = Arc::new(AtomicU64::new(u64::MAX));
        let seen = at.clone();
        let goes_on = move || milliseconds() < seen.load(Ordering::Relaxed);
        conn.lock_handle().await?.set_progress_handler(INSTRUCTIONS, goes_on);
        Ok(Self { limit, at })
    }

    /// Removes the limit of a connection that has been lent before.
    pub(crate) async fn clear(conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        conn.lock_handle().await?.remove_progress_handler();
        Ok(())
    }

    /// A statement starts.
    pub(crate) fn renew(&self) {
        let limit = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        self.at.store(milliseconds().saturating_add(limit), Ordering::Relaxed);
    }
}
