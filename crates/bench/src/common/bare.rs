//! Bare database connections, which measure the engine alone.

use crate::Failure;
use crate::store::failed;
use abide_store::Engine;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use std::path::Path;
use std::str::FromStr as _;

/// Address of a database.
pub(crate) enum At {
    Sqlite(Box<SqliteConnectOptions>),
    Postgres(Box<PgConnectOptions>),
}

impl At {
    pub(crate) fn sqlite(file: &Path) -> Self {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .disable_statement_logging();
        Self::Sqlite(Box::new(options))
    }

    pub(crate) fn postgres(url: &str) -> Result<Self, Failure> {
        let options = PgConnectOptions::from_str(url).map_err(failed)?.disable_statement_logging();
        Ok(Self::Postgres(Box::new(options)))
    }

    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }

    pub(crate) async fn connect(&self) -> Result<Link, Failure> {
        Ok(match self {
            Self::Sqlite(options) => Link::Sqlite(options.connect().await.map_err(failed)?),
            Self::Postgres(options) => Link::Postgres(options.connect().await.map_err(failed)?),
        })
    }
}

/// A connection.
pub(crate) enum Link {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Link {
    pub(crate) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(_) => self.run("BEGIN IMMEDIATE").await,
            Self::Postgres(_) => self.run("BEGIN").await,
        }
    }

    pub(crate) async fn commit(&mut self) -> Result<(), sqlx::Error> {
        self.run("COMMIT").await
    }

    /// Runs trusted statements without parameters.
    pub(crate) async fn run(&mut self, text: &str) -> Result<(), sqlx::Error> {
        let query = sqlx::raw_sql(AssertSqlSafe(text.to_owned()));
        match self {
            Self::Sqlite(conn) => query.execute(conn).await.map(drop),
            Self::Postgres(conn) => query.execute(conn).await.map(drop),
        }
    }

    pub(crate) async fn close(self) {
        // Dropping closes a database that cannot be closed properly.
        match self {
            Self::Sqlite(conn) => drop(conn.close().await),
            Self::Postgres(conn) => drop(conn.close().await),
        }
    }
}
