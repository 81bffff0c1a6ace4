//! Queries PostgreSQL from a test, in this process: every connection costs the cluster a process, and `psql` is another
//! one.

use std::str::FromStr as _;
use std::sync::LazyLock;
use std::thread;

use sqlx::postgres::{PgConnectOptions, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, Row as _, ValueRef as _};
use tokio::runtime::{Builder, Runtime};

use crate::Idle;

/// Runtime of all queries; a connection lives only as long as the runtime that created it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let made = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    made.expect("a runtime can be made")
});

/// Idle connections, by URL.
static IDLE: Idle<String, PgConnection> = Idle::new();

/// Runs a future to completion; on a new thread, because some tests already run in a runtime.
#[track_caller]
pub fn in_runtime<T: Send>(something: impl AsyncFnOnce() -> T + Send) -> T {
    let done = thread::scope(|scope| scope.spawn(|| RUNTIME.block_on(something())).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs a statement without parameters. Returns its result as `psql` prints it: one row per line, columns separated by
/// `|`.
pub fn ask(url: &str, sql: &str) -> sqlx::Result<Vec<String>> {
    in_runtime(async || {
        let mut conn = connection(url).await?;
        let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut conn).await?;
        IDLE.put(url, conn);
        rows.iter().map(line).collect()
    })
}

/// Closes the idle connection to a database that needs exclusive access.
pub fn hang_up(url: &str) {
    if let Some(conn) = IDLE.take(url) {
        in_runtime(async || conn.close().await).expect("a connection can be closed");
    }
}

/// An idle connection that still works, or a new one.
async fn connection(url: &str) -> sqlx::Result<PgConnection> {
    if let Some(mut conn) = IDLE.take(url)
        && conn.ping().await.is_ok()
    {
        return Ok(conn);
    }
    PgConnectOptions::from_str(url)?.connect().await
}

fn line(row: &PgRow) -> sqlx::Result<String> {
    let cell = |index| {
        let value = row.try_get_raw(index)?;
        if value.is_null() { Ok("") } else { value.as_str().map_err(sqlx::Error::Decode) }
    };
    Ok((0..row.len()).map(cell).collect::<sqlx::Result<Vec<_>>>()?.join("|"))
}
