//! A temporary database on a PostgreSQL server.

use crate::Failure;
use crate::store::failed;
use abide_core::Random as _;
use abide_forge::OsRandom;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use std::str::FromStr as _;

pub(crate) struct Scratch {
    server: PgConnectOptions,
    name: String,
    url: String,
}

impl Scratch {
    /// Creates an empty database on the server of this URL. The database that the URL names is not changed.
    pub(crate) async fn create(url: &str) -> Result<Self, Failure> {
        let server = PgConnectOptions::from_str(url).map_err(failed)?.disable_statement_logging();
        let mut random = [0; 8];
        OsRandom.fill(&mut random);
        let name = format!("abide_bench_{:016x}", u64::from_le_bytes(random));
        let url = server.clone().database(&name).to_url_lossy().to_string();
        let scratch = Self { server, name, url };
        scratch.run(&format!("CREATE DATABASE {} TEMPLATE template0", scratch.name)).await?;
        Ok(scratch)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Drops it, and ends remaining connections.
    pub(crate) async fn remove(self) -> Result<(), Failure> {
        self.run(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name)).await
    }

    async fn run(&self, statement: &str) -> Result<(), Failure> {
        let mut conn = self.server.connect().await.map_err(failed)?;
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut conn).await.map_err(failed)?;
        conn.close().await.map_err(failed)
    }
}
