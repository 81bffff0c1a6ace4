//! A database with a clock to turn, a raw connection beside the store, and a few rows to start from.

use abide_core::repo::{Governance, Visibility};
use abide_core::{RepoId, Timestamp, UserId};
use abide_store::accounts::users;
use abide_store::accounts::users::NewUser;
use abide_store::repos::NewRepo;
use abide_store::{Conn, Options, Row, Sql, Store, StoreError, leases, migrate, params, repos};
use abide_testkit::{Engine, TestClock, TestDatabase};
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection, Row as _, SqliteConnection};
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr as _;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine; reached only by a test that fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a unit of work whose body is written in place: `unit!(store, input, |tx, input| body)`.
macro_rules! unit {
    ($store:expr, $input:expr, |$tx:ident, $in:pat_param| $body:expr) => {
        $store.write($input, move |$tx: &mut abide_store::Tx, $in| Box::pin(async move { $body }))
    };
}
pub(crate) use unit;

/// A fresh database with an open store.
pub struct World {
    pub store: Store,
    pub clock: TestClock,
    options: Options,
    pub database: TestDatabase,
}

impl World {
    pub async fn new(engine: Engine) -> Self {
        Self::with(engine, |_| {}).await
    }

    /// As [`World::new`], with other options than the usual ones.
    pub async fn with(engine: Engine, change: impl FnOnce(&mut Options)) -> Self {
        let database = migrated(engine).await;
        let mut options = options(&database);
        change(&mut options);
        let clock = TestClock::new();
        let store = Store::open(&options, Arc::new(clock.clone())).await.unwrap();
        Self { store, clock, options, database }
    }

    /// Another store on the same database, as another process would open it.
    pub async fn another_store(&self) -> Store {
        Store::open(&self.options, Arc::new(self.clock.clone())).await.unwrap()
    }

    /// A connection that the store knows nothing of.
    pub async fn raw(&self) -> Raw {
        raw(&self.database).await
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Lets the time that leases go by pass: turns the clock on SQLite, waits for the database's on PostgreSQL.
    pub async fn pass(&self, time: Duration) {
        let start = self.lease_time().await;
        self.clock.advance(time);
        eventually(async || self.lease_time().await >= start.plus(time)).await;
    }

    pub async fn lease_time(&self) -> Timestamp {
        let local = abide_core::Clock::now(&self.clock);
        leases::now(&mut self.store.read().await.unwrap(), local).await.unwrap()
    }
}

/// A database with the schema of today and nothing in it.
async fn migrated(engine: Engine) -> TestDatabase {
    let stamp = migrate::fingerprint();
    if let Some(copy) = TestDatabase::copied(engine, &stamp) {
        return copy;
    }
    let database = TestDatabase::new(engine);
    Store::open(&options(&database), Arc::new(TestClock::new())).await.unwrap().close().await;
    database.keep(&stamp);
    TestDatabase::copied(engine, &stamp).expect("it was just kept")
}

/// The options for a store on this database.
pub fn options(database: &TestDatabase) -> Options {
    match database.url() {
        Some(url) => Options::postgres(url),
        None => Options::sqlite(database.data_dir().join("abide.db")),
    }
}

/// A connection to the database beside the store, and to a database that has no store.
pub async fn raw(database: &TestDatabase) -> Raw {
    match database.url() {
        Some(url) => Raw::Postgres(PgConnectOptions::from_str(url).unwrap().connect().await.unwrap()),
        None => {
            let file = database.data_dir().join("abide.db");
            let options = SqliteConnectOptions::new().filename(file).busy_timeout(PATIENCE);
            Raw::Sqlite(options.connect().await.unwrap())
        }
    }
}

/// A connection without the store around it.
pub enum Raw {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Raw {
    pub async fn execute(&mut self, text: &str) {
        self.try_execute(text).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    pub async fn try_execute(&mut self, text: &str) -> Result<(), sqlx::Error> {
        let query = sqlx::raw_sql(AssertSqlSafe(text.to_owned()));
        match self {
            Self::Sqlite(conn) => query.execute(conn).await.map(drop),
            Self::Postgres(conn) => query.execute(conn).await.map(drop),
        }
    }

    /// The first column of every row, which the statement gives as text.
    pub async fn texts(&mut self, text: &str) -> Vec<String> {
        let query = sqlx::raw_sql(AssertSqlSafe(text.to_owned()));
        match self {
            Self::Sqlite(conn) => {
                let rows = query.fetch_all(conn).await.unwrap_or_else(|error| panic!("{text}: {error}"));
                rows.iter().map(|row| row.try_get(0).unwrap()).collect()
            }
            Self::Postgres(conn) => {
                let rows = query.fetch_all(conn).await.unwrap_or_else(|error| panic!("{text}: {error}"));
                rows.iter().map(|row| row.try_get(0).unwrap()).collect()
            }
        }
    }

    pub async fn number(&mut self, text: &str) -> i64 {
        self.texts(&format!("SELECT CAST(({text}) AS TEXT)")).await[0].parse().unwrap()
    }
}

/// The same text for both engines.
pub const fn sql(text: &'static str) -> Sql {
    Sql::new("test", "TEST", text, text)
}

/// A small table with a unique column, to try units of work on.
pub const NOTE: Sql = sql("INSERT INTO schedules (name, next_run_at) VALUES ($1, $2)");
pub const NOTES: Sql = sql("SELECT name FROM schedules ORDER BY next_run_at, name");

/// The notes that a reader sees.
pub async fn notes(store: &Store) -> Vec<String> {
    let mut conn = store.read().await.unwrap();
    conn.all(&NOTES, &[]).await.unwrap().iter().map(|row| row.text("name").unwrap()).collect()
}

/// Writes a note in a unit of its own.
pub async fn note(store: &Store, name: &str) -> Result<(), StoreError> {
    unit!(store, name.to_owned(), |tx, name| tx.execute(&NOTE, abide_store::params![name, 0_i64]).await.map(drop)).await
}

/// Runs a statement in a unit of its own and returns its rows.
pub async fn run(store: &Store, statement: Sql, values: Vec<abide_store::Value>) -> Result<Vec<Row>, StoreError> {
    unit!(store, (statement, values), |tx, (statement, values)| tx.all(statement, values).await).await
}

/// Adds an account.
pub async fn user(store: &Store, name: &str) -> UserId {
    unit!(store, new_user(name), |tx, new| users::insert(tx, new).await).await.unwrap()
}

/// Stored payload of the event at a position, which only tests read.
pub async fn stored_json(conn: &mut Conn, seq: i64) -> String {
    const STORED: Sql = sql("SELECT payload FROM domain_events WHERE seq = $1");
    conn.only(&STORED, params![seq]).await.unwrap().text("payload").unwrap()
}

pub fn new_user(name: &str) -> NewUser {
    NewUser {
        name: name.parse().unwrap(),
        email: format!("{name}@example.org"),
        password_hash: "$argon2id$".into(),
        site_admin: false,
    }
}

/// Adds a public repository.
pub async fn repo(store: &Store, owner: UserId, name: &str) -> RepoId {
    unit!(store, new_repo(owner, name), |tx, new| repos::insert(tx, new).await).await.unwrap()
}

pub fn new_repo(owner: UserId, name: &str) -> NewRepo {
    NewRepo {
        owner_id: owner,
        name: name.parse().unwrap(),
        description: String::new(),
        visibility: Visibility::Public,
        governance: Governance::Account,
        default_branch: "refs/heads/main".parse().unwrap(),
    }
}

/// Waits for a condition instead of sleeping.
#[track_caller]
pub fn eventually(mut condition: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let start = Instant::now();
        while !condition().await {
            assert!(start.elapsed() < PATIENCE, "the condition at {caller} did not come true");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Polls a future once and keeps it. A write is in the writer's queue afterwards, and answers only once it is awaited.
pub async fn started<F: Future + Send + 'static>(future: F) -> Pin<Box<F>> {
    let mut future = Box::pin(future);
    std::future::poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending(), "ended at once");
        Poll::Ready(())
    })
    .await;
    // Each turn may only do so much before the runtime holds it back; this begins another.
    tokio::task::yield_now().await;
    future
}

/// The result of a task.
pub async fn joined<T>(task: tokio::task::JoinHandle<T>) -> T {
    tokio::time::timeout(PATIENCE, task).await.expect("the task takes too long").expect("the task panicked")
}
