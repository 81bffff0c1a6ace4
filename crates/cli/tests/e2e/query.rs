//! Asking the database directly, as an operator could.

use abide_testkit::{Server, postgres};
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _, TypeInfo as _, ValueRef as _};
use std::time::Duration;

/// What a query answers, one row a line, columns separated by `|`. In this process, because many ask until something is so.
#[track_caller]
pub fn query(server: &Server, sql: &str) -> String {
    let answered = match server.database().url() {
        Some(url) => postgres::ask(url, sql),
        None => postgres::in_runtime(async || in_sqlite(server, sql).await),
    };
    answered.unwrap_or_else(|error| panic!("{sql}: {error}")).join("\n")
}

async fn in_sqlite(server: &Server, sql: &str) -> sqlx::Result<Vec<String>> {
    let file = server.data_dir().join("abide.db");
    // An operator's shell does not check keys either, unless it is told to.
    let options = SqliteConnectOptions::new().filename(file).foreign_keys(false);
    let mut conn = options.busy_timeout(Duration::from_secs(30)).connect().await?;
    let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut conn).await?;
    rows.iter().map(line).collect()
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
