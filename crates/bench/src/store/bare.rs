//! The same statements on bare connections, which measure the engine alone.

use super::seed::Seed;
use super::{failed, per_second};
use crate::Failure;
use crate::common::bare::{At, Link};
use abide_core::Clock as _;
use abide_core::time::SystemClock;
use abide_store::{Engine, all_statements};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Address of the database, and the open connections.
pub(crate) struct Bare {
    at: At,
    links: Vec<Arc<Mutex<Link>>>,
}

impl Bare {
    pub(crate) fn new(at: At) -> Self {
        Self { at, links: Vec::new() }
    }

    /// SQLite lets one write at a time: more connections would only wait.
    pub(crate) fn has_one_writer(&self) -> bool {
        matches!(self.at, At::Sqlite(_))
    }

    /// Units per second, with `units` units per transaction.
    pub(crate) async fn write(
        &mut self,
        seed: &Arc<Seed>,
        writers: usize,
        units: usize,
        time: Duration,
    ) -> Result<f64, Failure> {
        let writers = if self.has_one_writer() { 1 } else { writers };
        self.connect(writers).await?;
        let statements = Statements::find(self.at.engine())?;
        per_second(writers, time, |worker, end| {
            let (link, seed) = (self.links[worker].clone(), seed.clone());
            async move {
                let mut link = link.lock().await;
                let mut turn = 0;
                while Instant::now() < end {
                    link.begin().await.map_err(failed)?;
                    for _ in 0..units {
                        unit(&mut link, &statements, &seed, worker, turn).await.map_err(failed)?;
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
    pub(crate) async fn read(&mut self, seed: &Arc<Seed>, readers: usize, time: Duration) -> Result<f64, Failure> {
        self.connect(readers).await?;
        let statements = Statements::find(self.at.engine())?;
        per_second(readers, time, |worker, end| {
            let (link, seed) = (self.links[worker].clone(), seed.clone());
            async move {
                let mut link = link.lock().await;
                let mut turn = 0;
                while Instant::now() < end {
                    let found = by_slug(&mut link, &statements, &seed, worker, turn).await.map_err(failed)?;
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

    /// Connecting is not part of any measurement.
    async fn connect(&mut self, count: usize) -> Result<(), Failure> {
        while self.links.len() < count {
            self.links.push(Arc::new(Mutex::new(self.at.connect().await?)));
        }
        Ok(())
    }

    pub(crate) async fn close(self) {
        for link in self.links {
            // The workers ended and dropped their references.
            if let Some(link) = Arc::into_inner(link) {
                link.into_inner().close().await;
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
        let payload = $seed.body(repo, $turn).to_json().to_string();
        sqlx::query($statements.touch).bind(id).bind(now).execute(&mut *$conn).await?;
        let event = sqlx::query($statements.event).bind(user).bind("push").bind(id).bind("repo").bind(id).bind(true);
        event.bind(payload.as_str()).bind(now).bind(true).execute(&mut *$conn).await?;
        let audit = sqlx::query($statements.audit).bind(user).bind("push").bind(id).bind("127.0.0.1");
        audit.bind(payload.as_str()).bind(now).execute(&mut *$conn).await?;
        Ok(())
    }};
}

async fn unit(
    link: &mut Link,
    statements: &Statements,
    seed: &Seed,
    worker: usize,
    turn: usize,
) -> Result<(), sqlx::Error> {
    match link {
        Link::Sqlite(conn) => unit!(conn, statements, seed, worker, turn),
        Link::Postgres(conn) => unit!(conn, statements, seed, worker, turn),
    }
}

async fn by_slug(
    link: &mut Link,
    statements: &Statements,
    seed: &Seed,
    worker: usize,
    turn: usize,
) -> Result<bool, sqlx::Error> {
    let (_, name) = seed.repo(worker, turn);
    let (owner, name, viewer) = (seed.owner.as_str(), name.as_str(), seed.user.get());
    match link {
        Link::Sqlite(conn) => {
            let query = sqlx::query(statements.by_slug).bind(owner).bind(name).bind(viewer);
            query.fetch_optional(conn).await.map(|row| row.is_some())
        }
        Link::Postgres(conn) => {
            let query = sqlx::query(statements.by_slug).bind(owner).bind(name).bind(viewer);
            query.fetch_optional(conn).await.map(|row| row.is_some())
        }
    }
}
