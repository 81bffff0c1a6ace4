//! Asking the database directly, as an operator could.

use abide_testkit::Server;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _, TypeInfo as _, ValueRef as _};
use std::str::FromStr as _;
use std::thread;
use std::time::Duration;

/// What a query answers, one row a line, columns separated by `|`.
///
/// In this process, because many ask until something is so; on a thread, because some of them are in a runtime already.
#[track_caller]
pub fn query(server: &Server, sql: &str) -> String {
    let answered = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(async {
                match server.database().url() {
                    Some(url) => in_postgres(url, sql).await,
                    None => in_sqlite(server, sql).await,
                }
            })
        });
        asking.join().expect("asking does not panic")
    });
    answered.unwrap_or_else(|error| panic!("{sql}: {error}")).join("\n")
}

async fn in_postgres(url: &str, sql: &str) -> sqlx::Result<Vec<String>> {
    let mut conn = PgConnectOptions::from_str(url)?.connect().await?;
    // Without parameters PostgreSQL answers in text, as it would be printed.
    let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut conn).await?;
    let cell = |row: &sqlx::postgres::PgRow, index| -> sqlx::Result<String> {
        let value = row.try_get_raw(index)?;
        if value.is_null() { Ok(String::new()) } else { value.as_str().map(str::to_owned).map_err(sqlx::Error::Decode) }
    };
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
