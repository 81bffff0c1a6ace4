//! Database errors, grouped by what the caller can do about them.

/// A failed statement, transaction or connection.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A unique index refused the row: the name, key or slot is taken.
    #[error("a row with the same unique value exists already")]
    Unique,
    /// A foreign key refused the row: its target does not exist.
    #[error("a row that this one refers to does not exist")]
    Missing,
    /// Two transactions conflicted; running the unit again may succeed.
    #[error("the database is busy with a conflicting transaction; try again")]
    Conflict(#[source] sqlx::Error),
    /// The disk or the quota is full. Nothing was written.
    #[error("the database has no room left; free some disk space and try again")]
    Full(#[source] sqlx::Error),
    /// The connection failed.
    #[error("the database cannot be reached: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// A reading statement exceeded its time limit. The connection is well; the question costs too much.
    #[error("the database stopped a statement that took longer than database.statement_timeout")]
    TooSlow(#[source] sqlx::Error),
    /// The store was closed, because the process is shutting down.
    #[error("the database is closed: the process is shutting down")]
    Closed,
    /// A unit of work panicked; it was rolled back.
    #[error("a unit of work panicked and was rolled back")]
    Panicked,
    /// A stored value that this version cannot parse.
    #[error("column {column} holds a value that cannot be read: {reason}")]
    Unreadable { column: &'static str, reason: String },
    /// The schema is incompatible with this version.
    #[error("{0}")]
    Schema(String),
    /// The lease that guarded this write was lost.
    #[error("the lease {0} was lost to another holder")]
    LeaseLost(String),
    /// Any other database error.
    #[error("the database refused a statement: {0}")]
    Other(#[source] sqlx::Error),
}

impl StoreError {
    /// Whether running the same unit again can succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Conflict(_))
    }

    /// A copy of the error, for a further recipient.
    pub(crate) fn again(&self) -> Self {
        let said = |error: &sqlx::Error| sqlx::Error::Protocol(error.to_string());
        match self {
            Self::Unique => Self::Unique,
            Self::Missing => Self::Missing,
            Self::Conflict(error) => Self::Conflict(said(error)),
            Self::Full(error) => Self::Full(said(error)),
            Self::Unavailable(error) => Self::Unavailable(said(error)),
            Self::TooSlow(error) => Self::TooSlow(said(error)),
            Self::Closed => Self::Closed,
            Self::Panicked => Self::Panicked,
            Self::Unreadable { column, reason } => Self::Unreadable { column, reason: reason.clone() },
            Self::Schema(text) => Self::Schema(text.clone()),
            Self::LeaseLost(name) => Self::LeaseLost(name.clone()),
            Self::Other(error) => Self::Other(said(error)),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let Some(database) = error.as_database_error() else {
            return match error {
                sqlx::Error::PoolClosed => Self::Closed,
                sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => {
                    Self::Unavailable(error)
                }
                _ => Self::Other(error),
            };
        };
        if database.is_unique_violation() {
            return Self::Unique;
        }
        if database.is_foreign_key_violation() {
            return Self::Missing;
        }
        let code = database.code().unwrap_or_default();
        match sqlite_result(&code) {
            // BUSY, LOCKED, PROTOCOL (lost the race for a lock too often).
            Some(5 | 6 | 15) => Self::Conflict(error),
            Some(13) => Self::Full(error),
            // INTERRUPT: the progress handler of `deadline.rs` said no.
            Some(9) => Self::TooSlow(error),
            // NOMEM, READONLY, IOERR, CORRUPT, CANTOPEN, NOTADB.
            Some(7 | 8 | 10 | 11 | 14 | 26) => Self::Unavailable(error),
            Some(_) => Self::Other(error),
            None => match (code.get(..2), &*code) {
                // Serialization failure, deadlock, lock not available.
                (_, "40001" | "40P01" | "55P03") => Self::Conflict(error),
                (_, "53100") => Self::Full(error),
                // Connection, resources, operator intervention, system; a standby that accepts no writes.
                (Some("08" | "53" | "58"), _) | (_, "25006") => Self::Unavailable(error),
                // query_canceled: `statement_timeout`.
                (_, "57014") => Self::TooSlow(error),
                _ if code.starts_with("57P") => Self::Unavailable(error),
                _ => Self::Other(error),
            },
        }
    }
}

/// SQLite's primary result code: the low byte of the decimal code from the driver. `None` for PostgreSQL, whose codes
/// have five characters; SQLite's have at most four.
fn sqlite_result(code: &str) -> Option<i64> {
    if code.len() < 5 { code.parse::<i64>().ok().map(|code| code & 0xff) } else { None }
}
