//! Database errors, grouped by what the caller or the operator can do about them.

use sqlx::error::ErrorKind;

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
    /// No connection, or the server ended it.
    #[error("the database cannot be reached: {0}; check that it runs and that the settings name it")]
    Unavailable(#[source] sqlx::Error),
    /// The database accepts no writes: a file system mounted read-only, another user's file, or a PostgreSQL standby.
    #[error("the database is read-only: {0}; check the file's owner and mount, or connect to the primary server")]
    ReadOnly(#[source] sqlx::Error),
    /// The file or an index is damaged, or the file is not a database.
    #[error("the database is damaged: {0}; stop the server and restore the last backup")]
    Corrupt(#[source] sqlx::Error),
    /// The operating system failed to read or write.
    #[error("the database could not read or write its files: {0}; check the disk and the system log")]
    Io(#[source] sqlx::Error),
    /// Memory or connection slots of the database ran out.
    #[error("the database ran out of memory or connections: {0}; free some, or lower database.connections")]
    Exhausted(#[source] sqlx::Error),
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
    /// A rule of the schema refused the row: a missing value, or one that a check forbids.
    #[error("the database refused a row that breaks a rule of the schema: {0}; please report this as a bug")]
    Constraint(#[source] sqlx::Error),
    /// A statement that does not fit the schema or its parameters, or an answer that does not fit the statement.
    #[error("the database refused a statement: {0}; please report this as a bug")]
    Statement(#[source] sqlx::Error),
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
            Self::ReadOnly(error) => Self::ReadOnly(said(error)),
            Self::Corrupt(error) => Self::Corrupt(said(error)),
            Self::Io(error) => Self::Io(said(error)),
            Self::Exhausted(error) => Self::Exhausted(said(error)),
            Self::TooSlow(error) => Self::TooSlow(said(error)),
            Self::Closed => Self::Closed,
            Self::Panicked => Self::Panicked,
            Self::Unreadable { column, reason } => Self::Unreadable { column, reason: reason.clone() },
            Self::Schema(text) => Self::Schema(text.clone()),
            Self::LeaseLost(name) => Self::LeaseLost(name.clone()),
            Self::Constraint(error) => Self::Constraint(said(error)),
            Self::Statement(error) => Self::Statement(said(error)),
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
                _ => Self::Statement(error),
            };
        };
        match database.kind() {
            ErrorKind::UniqueViolation => return Self::Unique,
            ErrorKind::ForeignKeyViolation => return Self::Missing,
            ErrorKind::NotNullViolation | ErrorKind::CheckViolation => return Self::Constraint(error),
            _ => {}
        }
        let code = database.code().unwrap_or_default();
        match sqlite_result(&code) {
            // BUSY, LOCKED, PROTOCOL (lost the race for a lock too often).
            Some(5 | 6 | 15) => Self::Conflict(error),
            Some(13) => Self::Full(error),
            // INTERRUPT: the progress handler of `deadline.rs` said no.
            Some(9) => Self::TooSlow(error),
            // NOMEM.
            Some(7) => Self::Exhausted(error),
            Some(8) => Self::ReadOnly(error),
            // IOERR.
            Some(10) => Self::Io(error),
            // CORRUPT, NOTADB.
            Some(11 | 26) => Self::Corrupt(error),
            // CANTOPEN.
            Some(14) => Self::Unavailable(error),
            Some(_) => Self::Statement(error),
            None => match (code.get(..2), &*code) {
                // Serialization failure, deadlock, lock not available.
                (_, "40001" | "40P01" | "55P03") => Self::Conflict(error),
                (_, "53100") => Self::Full(error),
                // read_only_sql_transaction: a standby.
                (_, "25006") => Self::ReadOnly(error),
                // data_corrupted, index_corrupted.
                (_, "XX001" | "XX002") => Self::Corrupt(error),
                // query_canceled: `statement_timeout`.
                (_, "57014") => Self::TooSlow(error),
                // Insufficient resources.
                (Some("53"), _) => Self::Exhausted(error),
                // System errors, external to PostgreSQL.
                (Some("58"), _) => Self::Io(error),
                (Some("08"), _) => Self::Unavailable(error),
                // Operator intervention: the server stops or starts.
                _ if code.starts_with("57P") => Self::Unavailable(error),
                _ => Self::Statement(error),
            },
        }
    }
}

/// SQLite's primary result code: the low byte of the decimal code from the driver. `None` for PostgreSQL, whose codes
/// have five characters; SQLite's have at most four.
fn sqlite_result(code: &str) -> Option<i64> {
    if code.len() < 5 { code.parse::<i64>().ok().map(|code| code & 0xff) } else { None }
}
