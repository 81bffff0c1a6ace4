//! The same statements on connections of our own, with nothing around them: what the engine itself can do.

use super::seed::Seed;
use super::{failed, per_second};
use crate::failure::Failure;
use abide_core::Clock as _;
use abide_core::time::SystemClock;
use abide_store::{Engine, all_statements};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Where to connect to, and the connections that there are already.
pub(super) struct Bare {
    at: At,
    links: Vec<Arc<Mutex<Link>>>,
}

enum At {
    Sqlite(Box<SqliteConnectOptions>),
    Postgres(Box<PgConnectOptions>),
}

enum Link {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Bare {
    pub(super) fn sqlite(file: PathBuf) -> Self {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .disable_statement_logging();
        Self { at: At::Sqlite(Box::new(options)), links: Vec::new() }
    }

    pub(super) fn postgres(url: &str) -> Result<Self, Failure> {
        let options = PgConnectOptions::from_str(url).map_err(failed)?.disable_statement_logging();
        Ok(Self { at: At::Postgres(Box::new(options)), links: Vec::new() })
    }

    /// SQLite lets one write at a time: more connections would only wait.
    pub(super) fn has_one_writer(&self) -> bool {
        matches!(self.at, At::Sqlite(_))
    }

    /// Units per second, so many in each transaction.
    pub(super) async fn write(
        &mut self,
        seed: &Arc<Seed>,
        writers: usize,
        units: usize,
        time: Duration,
    ) -> Result<f64, Failure> {
        let writers = if self.has_one_writer() { 1 } else { writers };
        self.connect(writers).await?;
        let statements = Statements::find(self.engine())?;
        per_second(writers, time, |worker, end| {
            let (link, seed) = (self.links[worker].clone(), seed.clone());
            async move {
                let mut link = link.lock().await;
                let mut turn = 0;
                while Instant::now() < end {
                    link.begin().await.map_err(failed)?;
                    for _ in 0..units {
                        link.unit(&statements, &seed, worker, turn).await.map_err(failed)?;
                        turn += 1;
                    }
                    link.commit().await.map_err(failed)?;
                }
                Ok(turn)
            }
        })
        .await
    }

    /// Repositories found by slug per second.
    pub(super) async fn read(&mut self, seed: &Arc<Seed>, readers: usize, time: Duration) -> Result<f64, Failure> {
        self.connect(readers).await?;
        let statements = Statements::find(self.engine())?;
        per_second(readers, time, |worker, end| {
            let (link, seed) = (self.links[worker].clone(), seed.clone());
            async move {
                let mut link = link.lock().await;
                let mut turn = 0;
                while Instant::now() < end {
                    let found = link.by_slug(&statements, &seed, worker, turn).await.map_err(failed)?;
                    if !found {
                        return Err(failed("a repository is gone"));
                    }
                    turn += 1;
                }
                Ok(turn)
            }
        })
        .await
    }

    fn engine(&self) -> Engine {
        match self.at {
            At::Sqlite(_) => Engine::Sqlite,
            At::Postgres(_) => Engine::Postgres,
        }
    }

    /// Connecting is not part of any measurement.
    async fn connect(&mut self, count: usize) -> Result<(), Failure> {
        while self.links.len() < count {
            let link = match &self.at {
                At::Sqlite(options) => Link::Sqlite(options.connect().await.map_err(failed)?),
                At::Postgres(options) => Link::Postgres(options.connect().await.map_err(failed)?),
            };
            self.links.push(Arc::new(Mutex::new(link)));
        }
        Ok(())
    }

    pub(super) async fn close(self) {
        for link in self.links {
            // Every worker is gone, and with it the other owner. What cannot be closed properly is closed by dropping.
            match Arc::into_inner(link).map(Mutex::into_inner) {
                Some(Link::Sqlite(conn)) => drop(conn.close().await),
                Some(Link::Postgres(conn)) => drop(conn.close().await),
                None => {}
            }
        }
    }
}

/// The store's own statements, so that neither side can drift from the other.
#[derive(Clone, Copy)]
struct Statements {
    touch: &'static str,
    event: &'static str,
    audit: &'static str,
    by_slug: &'static str,
}

impl Statements {
    fn find(engine: Engine) -> Result<Self, Failure> {
        let text = |module, name| {
            all_statements()
                .find(|(of, sql)| *of == module && sql.name == name)
                .map(|(_, sql)| sql.text(engine))
                .ok_or_else(|| Failure::failed(format!("the store has no statement {module}::{name} any more")))
        };
        Ok(Self {
            touch: text("repos", "TOUCH_PUSHED")?,
            event: text("events", "INSERT")?,
            audit: text("audit", "INSERT")?,
            by_slug: text("repos", "BY_SLUG")?,
        })
    }
}

/// The three statements of a unit. A macro, because the drivers' types have no common ones to write a function for.
macro_rules! unit {
    ($conn:expr, $statements:expr, $seed:expr, $worker:expr, $turn:expr) => {{
        let repo = $seed.repo($worker, $turn);
        let (id, user, now) = (repo.0.get(), $seed.user.get(), SystemClock.now().micros());
        let payload = $seed.payload(repo, $turn).to_string();
        sqlx::query($statements.touch).bind(id).bind(now).execute(&mut *$conn).await?;
        let event = sqlx::query($statements.event).bind(user).bind("push").bind(id).bind("repo").bind(id).bind(true);
        event.bind(payload.as_str()).bind(now).execute(&mut *$conn).await?;
        let audit = sqlx::query($statements.audit).bind(user).bind("push").bind(id).bind("127.0.0.1");
        audit.bind(payload.as_str()).bind(now).execute(&mut *$conn).await?;
        Ok(())
    }};
}

impl Link {
    async fn begin(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(conn) => sqlx::raw_sql("BEGIN IMMEDIATE").execute(conn).await.map(drop),
            Self::Postgres(conn) => sqlx::raw_sql("BEGIN").execute(conn).await.map(drop),
        }
    }

    async fn commit(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(conn) => sqlx::raw_sql("COMMIT").execute(conn).await.map(drop),
            Self::Postgres(conn) => sqlx::raw_sql("COMMIT").execute(conn).await.map(drop),
        }
    }

    async fn unit(
        &mut self,
        statements: &Statements,
        seed: &Seed,
        worker: usize,
        turn: usize,
    ) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(conn) => unit!(conn, statements, seed, worker, turn),
            Self::Postgres(conn) => unit!(conn, statements, seed, worker, turn),
        }
    }

    async fn by_slug(
        &mut self,
        statements: &Statements,
        seed: &Seed,
        worker: usize,
        turn: usize,
    ) -> Result<bool, sqlx::Error> {
        let (_, name) = seed.repo(worker, turn);
        let (owner, name, viewer) = (seed.owner.as_str(), name.as_str(), seed.user.get());
        match self {
            Self::Sqlite(conn) => {
                let query = sqlx::query(statements.by_slug).bind(owner).bind(name).bind(viewer);
                query.fetch_optional(conn).await.map(|row| row.is_some())
            }
            Self::Postgres(conn) => {
                let query = sqlx::query(statements.by_slug).bind(owner).bind(name).bind(viewer);
                query.fetch_optional(conn).await.map(|row| row.is_some())
            }
        }
    }
}
