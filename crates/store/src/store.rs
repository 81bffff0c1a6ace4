//! Opens a database, reads from it, and runs units of work.

use crate::conn::{Effect, Failure, Link, Tx, Wakes};
use crate::deadline::Deadline;
use crate::writer::{Job, Writer};
use crate::{Conn, Engine, StoreError, migrate};
use abide_core::Clock;
use abide_core::settings::value::TICK;
use abide_core::settings::{count, duration};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, PgPool, SqlitePool};
use std::ops::{Deref, DerefMut};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

/// Retries of a unit after conflicts before its caller gets the error.
const RETRIES: u32 = 10;

/// Prepared statements cached per connection: more than the store has.
const STATEMENTS: usize = 512;

/// A unit of work ends when it is done; only readers have a time limit.
const WRITE: &str = "BEGIN; SET LOCAL statement_timeout = 0";
const READ_AT_LENGTH: &str = "BEGIN READ ONLY; SET LOCAL statement_timeout = 0";

abide_core::settings! {
    /// Location and limits of the database.
    #[derive(Debug, Clone)]
    pub struct Options in "database" {
        /// Maximum database connections.
        [Common] connections: u32 = "8", count(1..);
        /// Timeout for a database connection or for a lock of another process.
        busy_timeout: Duration = "10s", duration(TICK..);
        /// Time limit of a statement that reads for a page, the API or the relay.
        statement_timeout: Duration = "20s", duration(TICK..);
    }
    with {
        /// `postgres://…`, or `None` for SQLite.
        url: Option<String> = None;
        /// Path of the SQLite file.
        sqlite_file: PathBuf = PathBuf::new();
        /// Most units that SQLite's writer commits together.
        batch: usize = 64;
        /// Most units queued for SQLite's writer; further callers wait.
        queue: usize = 256;
    }
}

impl Options {
    /// Default options, with SQLite in the given file.
    pub fn sqlite(file: impl Into<PathBuf>) -> Self {
        Self { sqlite_file: file.into(), ..Self::default() }
    }

    /// Default options, with PostgreSQL at the given URL.
    pub fn postgres(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::default() }
    }
}

enum Pools {
    Sqlite {
        readers: SqlitePool,
        writer: Writer,
        /// Time limit of reading statements.
        limit: Duration,
    },
    /// With the running units, so that closing can wait for them.
    Postgres { pool: PgPool, units: TaskTracker },
}

/// The database. Clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    pools: Pools,
    clock: Arc<dyn Clock>,
    log_grew: Notify,
    jobs_grew: Notify,
    deliveries_grew: Notify,
}

/// A unit of work: SQL only. It may run more than once, so it must not change anything but `tx`.
pub trait Unit<I, T, E>: for<'t> Fn(&'t mut Tx, &'t I) -> BoxFuture<'t, Result<T, E>> + Send + Sync + 'static {}
impl<I, T, E, F> Unit<I, T, E> for F where
    F: for<'t> Fn(&'t mut Tx, &'t I) -> BoxFuture<'t, Result<T, E>> + Send + Sync + 'static
{
}

impl Store {
    /// Connects, migrates the schema, and starts the writer.
    pub async fn open(options: &Options, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let pools = match &options.url {
            Some(url) => Self::open_postgres(options, url, &*clock).await?,
            None => Self::open_sqlite(options, clock.clone()).await?,
        };
        let inner =
            Inner { pools, clock, log_grew: Notify::new(), jobs_grew: Notify::new(), deliveries_grew: Notify::new() };
        Ok(Self { inner: Arc::new(inner) })
    }

    async fn open_sqlite(options: &Options, clock: Arc<dyn Clock>) -> Result<Pools, StoreError> {
        let read = SqliteConnectOptions::new()
            .filename(&options.sqlite_file)
            .read_only(true)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(options.busy_timeout)
            .statement_cache_capacity(STATEMENTS)
            .disable_statement_logging();
        let write = read.clone().read_only(false).create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
        let mut conn = first_writer(&write, options.busy_timeout).await?;
        migrate::sqlite(&mut conn, clock.now()).await?;
        // Open readers after the writer has created the file and switched it to WAL.
        let readers = SqlitePoolOptions::new()
            .max_connections(options.connections)
            .acquire_timeout(options.busy_timeout)
            .connect_with(read)
            .await?;
        let writer = Writer::start(conn, write, clock, options.batch, options.queue);
        Ok(Pools::Sqlite { readers, writer, limit: options.statement_timeout })
    }

    async fn open_postgres(options: &Options, url: &str, clock: &dyn Clock) -> Result<Pools, StoreError> {
        let connect = PgConnectOptions::from_str(url)?
            .application_name("abide")
            .statement_cache_capacity(STATEMENTS)
            .disable_statement_logging();
        let migrating = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(options.busy_timeout)
            .connect_with(connect.clone())
            .await?;
        migrate::postgres(&migrating, clock.now()).await?;
        migrating.close().await;
        // Units of work lift the limit for their transaction.
        let limit = options.statement_timeout.as_millis().max(1).to_string();
        let connect = connect.options([("statement_timeout", limit)]);
        let pool = PgPoolOptions::new()
            .max_connections(options.connections)
            .acquire_timeout(options.busy_timeout)
            .connect_with(connect)
            .await?;
        Ok(Pools::Postgres { pool, units: TaskTracker::new() })
    }

    /// Engine of this database.
    pub fn engine(&self) -> Engine {
        match self.inner.pools {
            Pools::Sqlite { .. } => Engine::Sqlite,
            Pools::Postgres { .. } => Engine::Postgres,
        }
    }

    /// Clock for the instants of units.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// A connection for reading. Readers never wait for writers. A statement that takes longer than
    /// `database.statement_timeout` ends with [`StoreError::TooSlow`].
    pub async fn read(&self) -> Result<ReadConn, StoreError> {
        let conn = match &self.inner.pools {
            Pools::Sqlite { readers, limit, .. } => {
                let mut reader = readers.acquire().await?;
                let deadline = Deadline::set(&mut reader, *limit).await?;
                Conn::limited(Link::SqliteReader(reader), deadline)
            }
            Pools::Postgres { pool, .. } => Conn::new(Link::Postgres(pool.acquire().await?)),
        };
        Ok(ReadConn(conn))
    }

    /// A connection for reading whose statements may take as long as they need: for checks of the whole database.
    pub async fn read_at_length(&self) -> Result<ReadConn, StoreError> {
        let link = match &self.inner.pools {
            Pools::Sqlite { readers, .. } => {
                let mut reader = readers.acquire().await?;
                Deadline::clear(&mut reader).await?;
                Link::SqliteReader(reader)
            }
            Pools::Postgres { pool, .. } => Link::PostgresTx(pool.begin_with(READ_AT_LENGTH).await?),
        };
        Ok(ReadConn(Conn::new(link)))
    }

    /// Runs a unit of work in a transaction and returns once it is durable.
    ///
    /// An error from the unit rolls it back, and so does a failed statement, even if the unit ignores the failure. Once
    /// started, the unit runs to its end even if the caller stops waiting.
    pub async fn write<I, T, E, U>(&self, input: I, unit: U) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        U: Unit<I, T, E>,
    {
        match &self.inner.pools {
            Pools::Sqlite { writer, .. } => {
                let (job, answer) = Job::new(input, unit, self.clone());
                writer.send(job).await.map_err(E::from)?;
                answer.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
            }
            Pools::Postgres { pool, units } => {
                if units.is_closed() {
                    return Err(StoreError::Closed.into());
                }
                let (pool, store) = (pool.clone(), self.clone());
                let run = async move { postgres_unit(&pool, &store, &input, &unit).await };
                units.spawn(run).await.unwrap_or_else(|_| Err(StoreError::Panicked.into()))
            }
        }
    }

    /// Returns when this process may have added to the logs. A hint: poll as well.
    pub async fn log_grew(&self) {
        self.inner.log_grew.notified().await;
    }

    /// Returns when this process may have added a job. A hint: poll as well.
    pub async fn jobs_grew(&self) {
        self.inner.jobs_grew.notified().await;
    }

    /// Returns when this process may have enqueued a delivery. A hint: poll as well.
    pub async fn deliveries_grew(&self) {
        self.inner.deliveries_grew.notified().await;
    }

    pub(crate) fn wake(&self, wakes: Wakes) {
        if wakes.log {
            self.inner.log_grew.notify_one();
        }
        if wakes.jobs {
            self.inner.jobs_grew.notify_one();
        }
        if wakes.deliveries {
            self.inner.deliveries_grew.notify_one();
        }
    }

    /// Accepts no more units, lets queued and running ones finish, and closes every connection.
    pub async fn close(&self) {
        match &self.inner.pools {
            Pools::Sqlite { readers, writer, .. } => writer.close(readers).await,
            Pools::Postgres { pool, units } => {
                units.close();
                units.wait().await;
                pool.close().await;
            }
        }
    }
}

/// Opens the file and switches a fresh one to WAL. SQLite does not wait for the lock of that switch while another
/// process does the same, so this does.
async fn first_writer(options: &SqliteConnectOptions, patience: Duration) -> Result<Conn, StoreError> {
    let deadline = Instant::now() + patience;
    loop {
        match options.connect().await.map_err(StoreError::from) {
            Ok(conn) => return Ok(Conn::new(Link::SqliteWriter(Box::new(conn)))),
            Err(error) if error.is_retryable() && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

async fn postgres_unit<I, T, E, U>(pool: &PgPool, store: &Store, input: &I, unit: &U) -> Result<T, E>
where
    I: Sync,
    E: From<StoreError>,
    U: Unit<I, T, E>,
{
    let mut tries = 0;
    loop {
        let begun = pool.begin_with(WRITE).await.map_err(StoreError::from)?;
        let mut tx = Tx { conn: Conn::new(Link::PostgresTx(begun)), now: store.clock().now(), wakes: Wakes::default() };
        let outcome = unit(&mut tx, input).await;
        let Tx { conn: Conn { link, failed, .. }, wakes, .. } = tx;
        let Link::PostgresTx(begun) = link else { unreachable!("the link was made three lines above") };
        let conflict = match finished(outcome, failed) {
            (Ok(value), _) => match begun.commit().await.map_err(StoreError::from) {
                Ok(()) => {
                    store.wake(wakes);
                    return Ok(value);
                }
                Err(error) if error.is_retryable() => E::from(error),
                Err(error) => return Err(error.into()),
            },
            (Err(error), effect) => {
                // A failed rollback closes the connection, which also rolls back.
                let _ = begun.rollback().await;
                if effect != Effect::Retry {
                    return Err(error);
                }
                error
            }
        };
        tries += 1;
        if tries > RETRIES {
            return Err(conflict);
        }
        // Spread the contenders; the exact wait does not matter, only that they differ.
        static TURN: AtomicU64 = AtomicU64::new(0);
        let turn = TURN.fetch_add(1, Ordering::Relaxed) % 7 + u64::from(std::process::id() % 5);
        let wait = Duration::from_millis(u64::from(tries) * 3 + turn);
        tokio::time::sleep(wait).await;
    }
}

/// Runs one unit and turns a panic into an error, so that other units are not affected.
pub(crate) async fn guarded<I, T, E, U>(unit: &U, tx: &mut Tx, input: &I) -> Result<T, E>
where
    E: From<StoreError>,
    U: Unit<I, T, E>,
{
    AssertUnwindSafe(unit(tx, input)).catch_unwind().await.unwrap_or_else(|_| Err(StoreError::Panicked.into()))
}

/// Result of a unit that ran. PostgreSQL answers the COMMIT of a transaction with a failed statement with a silent
/// rollback, and SQLite may have rolled back already: a unit that ignored the failure has failed all the same.
pub(crate) fn finished<T, E: From<StoreError>>(
    result: Result<T, E>,
    failed: Option<Failure>,
) -> (Result<T, E>, Effect) {
    match (result, failed) {
        (Ok(_), Some(Failure { error, effect })) => (Err(error.into()), effect),
        (result, failed) => (result, failed.map_or(Effect::Refused, |failure| failure.effect)),
    }
}

/// A connection from the read pool.
pub struct ReadConn(Conn);

impl Deref for ReadConn {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.0
    }
}

impl DerefMut for ReadConn {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.0
    }
}
