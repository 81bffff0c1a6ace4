//! One connection on either engine, and the transaction of a unit of work.

use crate::deadline::Deadline;
use crate::value::{Row, Value};
use crate::{Sql, StoreError};
use abide_core::Timestamp;
use futures_util::{Stream, TryStreamExt as _};
use sqlx::pool::PoolConnection;
use sqlx::{Postgres, Sqlite, SqliteConnection};
use std::ops::{Deref, DerefMut};

/// Database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// One node, in the data directory.
    Sqlite,
    /// Any number of nodes.
    Postgres,
}

pub(crate) enum Link {
    /// The writer's own connection.
    SqliteWriter(Box<SqliteConnection>),
    SqliteReader(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
    PostgresTx(sqlx::Transaction<'static, Postgres>),
}

/// A connection for statements.
pub struct Conn {
    pub(crate) link: Link,
    /// First failed statement of the current unit. No further statement runs after it: PostgreSQL would refuse it, and
    /// SQLite may have rolled back and would autocommit it.
    pub(crate) failed: Option<Failure>,
    /// Time limit of statements on SQLite; PostgreSQL keeps its own.
    deadline: Option<Deadline>,
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub error: StoreError,
    pub effect: Effect,
}

/// Consequence of a failed statement for the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Run the unit again.
    Retry,
    /// The state of the connection or the whole transaction is unknown.
    Broken,
    /// An ordinary refusal (unique index, foreign key, check): the statement had no effect, the rest stands.
    Refused,
}

impl Effect {
    fn of(error: &StoreError) -> Self {
        match error {
            StoreError::Unique | StoreError::Missing | StoreError::Constraint(_) => Self::Refused,
            StoreError::Conflict(_) => Self::Retry,
            _ => Self::Broken,
        }
    }
}

impl Conn {
    pub(crate) fn new(link: Link) -> Self {
        Self { link, failed: None, deadline: None }
    }

    /// A connection whose statements have a time limit.
    pub(crate) fn limited(link: Link, deadline: Deadline) -> Self {
        Self { link, failed: None, deadline: Some(deadline) }
    }

    /// Engine of this connection.
    pub fn engine(&self) -> Engine {
        match self.link {
            Link::SqliteWriter(_) | Link::SqliteReader(_) => Engine::Sqlite,
            Link::Postgres(_) | Link::PostgresTx(_) => Engine::Postgres,
        }
    }

    /// Runs a statement; returns the number of changed rows.
    pub async fn execute(&mut self, sql: &Sql, values: &[Value]) -> Result<u64, StoreError> {
        self.ready(sql, values)?;
        let text = sql.text(self.engine());
        let done = match &mut self.link {
            Link::SqliteWriter(conn) => sqlite(text, values).execute(&mut **conn).await.map(|r| r.rows_affected()),
            Link::SqliteReader(conn) => sqlite(text, values).execute(&mut **conn).await.map(|r| r.rows_affected()),
            Link::Postgres(conn) => postgres(text, values).execute(&mut **conn).await.map(|r| r.rows_affected()),
            Link::PostgresTx(conn) => postgres(text, values).execute(&mut **conn).await.map(|r| r.rows_affected()),
        };
        self.noting(done)
    }

    /// All rows of a result. Statements whose result a stranger can make long have a LIMIT.
    pub async fn all(&mut self, sql: &Sql, values: &[Value]) -> Result<Vec<Row>, StoreError> {
        self.each(sql, values, Ok).await
    }

    /// As [`Conn::all`], with each row converted when it arrives: rows of the driver take ten times the memory of a small
    /// struct.
    pub async fn each<T>(
        &mut self,
        sql: &Sql,
        values: &[Value],
        make: impl Fn(Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.ready(sql, values)?;
        let text = sql.text(self.engine());
        let made = match &mut self.link {
            Link::SqliteWriter(conn) => made(sqlite(text, values).fetch(&mut **conn).map_ok(Row::Sqlite), make).await,
            Link::SqliteReader(conn) => made(sqlite(text, values).fetch(&mut **conn).map_ok(Row::Sqlite), make).await,
            Link::Postgres(conn) => made(postgres(text, values).fetch(&mut **conn).map_ok(Row::Postgres), make).await,
            Link::PostgresTx(conn) => made(postgres(text, values).fetch(&mut **conn).map_ok(Row::Postgres), make).await,
        };
        self.noting(made)?
    }

    /// First row of a result, if any.
    pub async fn one(&mut self, sql: &Sql, values: &[Value]) -> Result<Option<Row>, StoreError> {
        if matches!(self.link, Link::SqliteWriter(_)) {
            // Read to the end: the driver drops an error that comes after the first row.
            return Ok(self.all(sql, values).await?.into_iter().next());
        }
        self.ready(sql, values)?;
        let text = sql.text(self.engine());
        let row = match &mut self.link {
            Link::SqliteWriter(conn) => {
                sqlite(text, values).fetch_optional(&mut **conn).await.map(|r| r.map(Row::Sqlite))
            }
            Link::SqliteReader(conn) => {
                sqlite(text, values).fetch_optional(&mut **conn).await.map(|r| r.map(Row::Sqlite))
            }
            Link::Postgres(conn) => {
                postgres(text, values).fetch_optional(&mut **conn).await.map(|r| r.map(Row::Postgres))
            }
            Link::PostgresTx(conn) => {
                postgres(text, values).fetch_optional(&mut **conn).await.map(|r| r.map(Row::Postgres))
            }
        };
        self.noting(row)
    }

    /// The single row of a statement with RETURNING or an aggregate.
    pub async fn only(&mut self, sql: &Sql, values: &[Value]) -> Result<Row, StoreError> {
        self.one(sql, values).await?.ok_or(StoreError::Missing)
    }

    /// Runs text that is not a prepared statement: BEGIN, SAVEPOINT, a migration.
    pub(crate) async fn raw(&mut self, text: &'static str) -> Result<(), StoreError> {
        let done = match &mut self.link {
            Link::SqliteWriter(conn) => sqlx::raw_sql(text).execute(&mut **conn).await.map(drop),
            Link::SqliteReader(conn) => sqlx::raw_sql(text).execute(&mut **conn).await.map(drop),
            Link::Postgres(conn) => sqlx::raw_sql(text).execute(&mut **conn).await.map(drop),
            Link::PostgresTx(conn) => sqlx::raw_sql(text).execute(&mut **conn).await.map(drop),
        };
        self.noting(done)
    }

    fn noting<T>(&mut self, result: Result<T, sqlx::Error>) -> Result<T, StoreError> {
        result.map_err(|error| {
            let error = StoreError::from(error);
            self.failed.get_or_insert_with(|| Failure { error: error.again(), effect: Effect::of(&error) });
            error
        })
    }

    /// Refuses a statement with a wrong number of values, and any statement of a failed unit.
    fn ready(&mut self, sql: &Sql, values: &[Value]) -> Result<(), StoreError> {
        metrics::counter!("abide_statements_total", "module" => sql.module, "statement" => sql.name).increment(1);
        if values.len() != sql.parameters {
            let text = format!("{} takes {} values and got {}", sql.name, sql.parameters, values.len());
            return self.noting(Err(sqlx::Error::Protocol(text)));
        }
        if let Some(deadline) = &self.deadline {
            deadline.renew();
        }
        let in_unit = matches!(self.link, Link::SqliteWriter(_) | Link::PostgresTx(_));
        match &self.failed {
            Some(failure) if in_unit => Err(failure.error.again()),
            _ => Ok(()),
        }
    }
}

type SqliteQuery<'q> = sqlx::query::Query<'q, Sqlite, sqlx::sqlite::SqliteArguments>;
type PostgresQuery<'q> = sqlx::query::Query<'q, Postgres, sqlx::postgres::PgArguments>;

/// Converts all rows, which are read to the end: the driver drops an error that comes after the last row that was taken.
async fn made<T>(
    rows: impl Stream<Item = Result<Row, sqlx::Error>>,
    make: impl Fn(Row) -> Result<T, StoreError>,
) -> Result<Result<Vec<T>, StoreError>, sqlx::Error> {
    let mut rows = std::pin::pin!(rows);
    let mut all = Ok(Vec::new());
    while let Some(row) = rows.try_next().await? {
        if let Ok(values) = &mut all {
            match make(row) {
                Ok(value) => values.push(value),
                Err(error) => all = Err(error),
            }
        }
    }
    Ok(all)
}

fn sqlite<'q>(text: &'static str, values: &'q [Value]) -> SqliteQuery<'q> {
    values.iter().fold(sqlx::query(text), |query, value| match value {
        Value::Int(value) => query.bind(*value),
        Value::Text(value) => query.bind(value.as_deref()),
        Value::Bytes(value) => query.bind(value.as_deref()),
        Value::Bool(value) => query.bind(*value),
    })
}

fn postgres<'q>(text: &'static str, values: &'q [Value]) -> PostgresQuery<'q> {
    values.iter().fold(sqlx::query(text), |query, value| match value {
        Value::Int(value) => query.bind(*value),
        Value::Text(value) => query.bind(value.as_deref()),
        Value::Bytes(value) => query.bind(value.as_deref()),
        Value::Bool(value) => query.bind(*value),
    })
}

/// Handle of a unit of work: a connection in a transaction, and the instant of the unit.
pub struct Tx {
    pub(crate) conn: Conn,
    pub(crate) now: Timestamp,
    pub(crate) wakes: Wakes,
}

/// Readers to wake after the commit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wakes {
    pub log: bool,
    pub jobs: bool,
    pub deliveries: bool,
}

impl Tx {
    /// Timestamp of all rows written by this unit.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Wakes the sequencer after the commit.
    pub(crate) fn wake_log(&mut self) {
        self.wakes.log = true;
    }

    /// Wakes the job runners after the commit.
    pub(crate) fn wake_jobs(&mut self) {
        self.wakes.jobs = true;
    }

    /// Wakes the webhook senders after the commit.
    pub(crate) fn wake_deliveries(&mut self) {
        self.wakes.deliveries = true;
    }
}

impl Deref for Tx {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}
