//! Asking the database directly, as an operator could.

use abide_testkit::Server;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection, Row as _, TypeInfo as _, ValueRef as _};
use std::collections::BTreeMap;
use std::str::FromStr as _;
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Where every question is asked; a connection lives only as long as the runtime that it was made in.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let made = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    made.expect("a runtime can be made")
});

/// Connections to PostgreSQL that nobody is asking, by their address: each new one costs the cluster a process.
static IDLE: Mutex<BTreeMap<String, PgConnection>> = Mutex::new(BTreeMap::new());

/// What a query answers, one row a line, columns separated by `|`. In this process, because many ask until something is so.
#[track_caller]
pub fn query(server: &Server, sql: &str) -> String {
    let answered = in_runtime(async {
        match server.database().url() {
            Some(url) => in_postgres(url, sql).await,
            None => in_sqlite(server, sql).await,
        }
    });
    answered.unwrap_or_else(|error| panic!("{sql}: {error}")).join("\n")
}

/// Waits for something; on a thread, because some tests are in a runtime already.
#[track_caller]
pub fn in_runtime<T: Send>(something: impl Future<Output = T> + Send) -> T {
    let done = thread::scope(|scope| scope.spawn(|| RUNTIME.block_on(something)).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

async fn in_postgres(url: &str, sql: &str) -> sqlx::Result<Vec<String>> {
    let idle = IDLE.lock().expect("nobody panics with it").remove(url);
    let mut conn = match idle {
        Some(conn) => conn,
        None => PgConnectOptions::from_str(url)?.connect().await?,
    };
    // Without parameters PostgreSQL answers in text, as it would be printed.
    let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut conn).await?;
    let cell = |row: &sqlx::postgres::PgRow, index| -> sqlx::Result<String> {
        let value = row.try_get_raw(index)?;
        if value.is_null() { Ok(String::new()) } else { value.as_str().map(str::to_owned).map_err(sqlx::Error::Decode) }
    };
    IDLE.lock().expect("nobody panics with it").insert(url.to_owned(), conn);
    rows.iter().map(|row| line((0..row.len()).map(|index| cell(row, index)))).collect()
}

async fn in_sqlite(server: &Server, sql: &str) -> sqlx::Result<Vec<String>> {
    let file = server.data_dir().join("abide.db");
    // An operator's shell does not check keys either, unless it is told to.
    let options = SqliteConnectOptions::new().filename(file).foreign_keys(false);
    let mut conn = options.busy_timeout(Duration::from_secs(30)).connect().await?;
    let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut conn).await?;
    rows.iter().map(|row| line((0..row.len()).map(|index| printed(row, index)))).collect()
}

/// SQLite knows the type of each value, not of a column.
fn printed(row: &SqliteRow, index: usize) -> sqlx::Result<String> {
    let value = row.try_get_raw(index)?;
    if value.is_null() {
        return Ok(String::new());
    }
    match value.type_info().name() {
        "INTEGER" => row.try_get_unchecked::<i64, _>(index).map(|number| number.to_string()),
        "REAL" => row.try_get_unchecked::<f64, _>(index).map(|number| number.to_string()),
        _ => row.try_get_unchecked::<String, _>(index),
    }
}

fn line(cells: impl Iterator<Item = sqlx::Result<String>>) -> sqlx::Result<String> {
    Ok(cells.collect::<sqlx::Result<Vec<_>>>()?.join("|"))
}
