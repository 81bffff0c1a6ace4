//! Asking the database directly, as an operator could.

use abide_testkit::{Idle, Server, postgres};
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _, SqliteConnection, TypeInfo as _, ValueRef as _,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Connections that nobody is asking, by the directory of their server: a new one reads the whole schema first.
static IDLE: Idle<PathBuf, SqliteConnection> = Idle::new();

/// Result of a query, one row a line, columns separated by `|`. It runs in this process, because many tests poll.
#[track_caller]
pub fn query(server: &Server, sql: &str) -> String {
    let answered = match server.database().url() {
        Some(url) => postgres::ask(url, sql),
        None => postgres::in_runtime(async || in_sqlite(server, sql).await),
    };
    answered.unwrap_or_else(|error| panic!("{sql}: {error}")).join("\n")
}

async fn in_sqlite(server: &Server, sql: &str) -> sqlx::Result<Vec<String>> {
    let data = server.data_dir();
    let mut conn = match IDLE.take(data) {
        Some(conn) => conn,
        None => {
            server.close_before_it_ends(close);
            // An operator's shell does not check keys either, unless it is told to.
            let options = SqliteConnectOptions::new().filename(data.join("abide.db")).foreign_keys(false);
            options.busy_timeout(Duration::from_secs(30)).connect().await?
        }
    };
    let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut conn).await?;
    IDLE.put(data, conn);
    rows.iter().map(line).collect()
}

fn close(data: &Path) {
    if let Some(conn) = IDLE.take(data) {
        postgres::in_runtime(async || conn.close().await).expect("a connection can be closed");
    }
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

fn line(row: &SqliteRow) -> sqlx::Result<String> {
    Ok((0..row.len()).map(|index| printed(row, index)).collect::<sqlx::Result<Vec<_>>>()?.join("|"))
}
