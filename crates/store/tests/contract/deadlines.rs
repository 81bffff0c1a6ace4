//! Statements that read for a request end at `database.statement_timeout`; units of work and long checks do not.

use crate::support::{World, run, sql};
use abide_store::{Sql, StoreError};
use abide_testkit::Engine;
use rstest::rstest;
use std::time::Duration;

/// Never ends by itself.
const ENDLESS: Sql = sql("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 - i FROM n)
    SELECT CAST(count(*) AS BIGINT) AS i FROM n WHERE i = 0");
/// Takes much longer than a millisecond.
const LONG: Sql = sql("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
    SELECT CAST(count(*) AS BIGINT) AS i FROM n");
const SHORT: Sql = sql("SELECT CAST(7 AS BIGINT) AS i");

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_reading_statement_ends_at_its_limit_and_its_connection_stays(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::with(engine, |options| {
        options.connections = 1;
        options.statement_timeout = Duration::from_millis(200);
    })
    .await;
    let mut conn = world.store.read().await.unwrap();
    let error = conn.only(&ENDLESS, &[]).await.err().unwrap();
    assert!(matches!(error, StoreError::TooSlow(_)), "{error:?}");

    // The same connection serves the next statement, and so does the next borrower.
    assert_eq!(conn.only(&SHORT, &[]).await.unwrap().int("i").unwrap(), 7);
    drop(conn);
    let mut conn = world.store.read().await.unwrap();
    assert_eq!(conn.only(&SHORT, &[]).await.unwrap().int("i").unwrap(), 7);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn units_of_work_and_long_checks_have_no_limit(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::with(engine, |options| {
        options.connections = 1;
        options.statement_timeout = Duration::from_millis(1);
    })
    .await;
    let error = world.store.read().await.unwrap().only(&LONG, &[]).await.err().unwrap();
    assert!(matches!(error, StoreError::TooSlow(_)), "{error:?}");

    let mut conn = world.store.read_at_length().await.unwrap();
    assert_eq!(conn.only(&LONG, &[]).await.unwrap().int("i").unwrap(), 300_000);
    drop(conn);
    run(&world.store, LONG, vec![]).await.unwrap();

    // The limit is back for the next reader of the same connection.
    let error = world.store.read().await.unwrap().only(&LONG, &[]).await.err().unwrap();
    assert!(matches!(error, StoreError::TooSlow(_)), "{error:?}");
}
