//! Errors are sorted by what the caller can do about them.

use crate::support::{NOTE, World, note, run, sql};
use abide_store::{Options, Sql, Store, StoreError, Value};
use abide_testkit::{Engine, TestClock};
use rstest::rstest;
use std::sync::Arc;
use std::time::Duration;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_the_schema_say_which_kind(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    const ORPHAN: Sql = sql("INSERT INTO emails (user_id, address, folded, is_primary, created_at)
        VALUES (404, 'a', 'a', TRUE, 0)");
    const ORPHAN_RETURNING: Sql = sql("INSERT INTO emails (user_id, address, folded, is_primary, created_at)
        VALUES (404, 'a', 'a', TRUE, 0) RETURNING id");
    const NAMELESS: Sql = sql("INSERT INTO schedules (name, next_run_at) VALUES ('x', NULL)");
    let world = World::new(engine).await;
    note(&world.store, "taken").await.unwrap();

    assert!(matches!(note(&world.store, "taken").await, Err(StoreError::Unique)));
    assert!(matches!(run(&world.store, ORPHAN, vec![]).await, Err(StoreError::Missing)));
    assert!(matches!(run(&world.store, ORPHAN_RETURNING, vec![]).await, Err(StoreError::Missing)));
    assert!(matches!(run(&world.store, NAMELESS, vec![]).await, Err(StoreError::Constraint(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sqlite_file_that_cannot_be_opened_is_unavailable() {
    let options = Options::sqlite("/proc/no/such/folder/abide.db");
    let error = Store::open(&options, Arc::new(TestClock::new())).await.err().unwrap();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sqlite_file_with_other_content_is_corrupt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("abide.db");
    std::fs::write(&path, "this is not a database, ".repeat(100)).unwrap();
    let error = Store::open(&Options::sqlite(&path), Arc::new(TestClock::new())).await.err().unwrap();
    assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
}

/// Connections of readers are opened read-only, and answer as a file system that is mounted read-only does.
#[tokio::test(flavor = "multi_thread")]
async fn a_sqlite_database_that_takes_no_writes_is_read_only() {
    let world = World::new(Engine::Sqlite).await;
    let mut conn = world.store.read().await.unwrap();
    let error = conn.execute(&NOTE, abide_store::params!["late", 0_i64]).await.err().unwrap();
    assert!(matches!(error, StoreError::ReadOnly(_)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_does_not_answer_is_unavailable() {
    // Port 1 is nobody's.
    let options = Options { busy_timeout: Duration::from_secs(1), ..Options::postgres("postgres://x@127.0.0.1:1/x") };
    let error = Store::open(&options, Arc::new(TestClock::new())).await.err().unwrap();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_was_cut_is_replaced() {
    let world = World::with(Engine::Postgres, |options| options.connections = 2).await;
    note(&world.store, "before").await.unwrap();

    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'abide' AND datname = current_database()";
    assert!(world.raw().await.number(cut).await > 0);

    note(&world.store, "after").await.unwrap();
}

/// Each code as the server itself would raise it.
#[tokio::test(flavor = "multi_thread")]
async fn the_codes_of_postgres_are_sorted() {
    macro_rules! raise {
        ($code:literal) => {
            sql(concat!("DO $$ BEGIN RAISE EXCEPTION 'as planned' USING ERRCODE = '", $code, "'; END $$"))
        };
    }
    let world = World::new(Engine::Postgres).await;
    for statement in [raise!("40001"), raise!("40P01"), raise!("55P03")] {
        let error = run(&world.store, statement, vec![]).await.err().unwrap();
        assert!(matches!(error, StoreError::Conflict(_)) && error.is_retryable(), "{error:?}");
    }
    for statement in [raise!("08006"), raise!("57P01")] {
        let error = run(&world.store, statement, vec![]).await.err().unwrap();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    }
    for statement in [raise!("53200"), raise!("53300")] {
        let error = run(&world.store, statement, vec![]).await.err().unwrap();
        assert!(matches!(error, StoreError::Exhausted(_)), "{error:?}");
    }
    for statement in [raise!("XX001"), raise!("XX002")] {
        let error = run(&world.store, statement, vec![]).await.err().unwrap();
        assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
    }
    let error = run(&world.store, raise!("25006"), vec![]).await.err().unwrap();
    assert!(matches!(error, StoreError::ReadOnly(_)), "{error:?}");
    let error = run(&world.store, raise!("58030"), vec![]).await.err().unwrap();
    assert!(matches!(error, StoreError::Io(_)), "{error:?}");
    let error = run(&world.store, raise!("53100"), vec![]).await.err().unwrap();
    assert!(matches!(error, StoreError::Full(_)), "{error:?}");
    let error = run(&world.store, raise!("57014"), vec![]).await.err().unwrap();
    assert!(matches!(error, StoreError::TooSlow(_)) && !error.is_retryable(), "{error:?}");
    for statement in [raise!("22001"), raise!("42601"), raise!("P0001")] {
        let error = run(&world.store, statement, vec![]).await.err().unwrap();
        assert!(matches!(error, StoreError::Statement(_)), "{error:?}");
    }
}

/// SQLite itself would take the missing value for NULL.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_parameter_is_noticed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    const ECHO: Sql = sql("SELECT CAST($1 AS TEXT) AS one, CAST($2 AS TEXT) AS two");
    let world = World::new(engine).await;
    assert!(run(&world.store, ECHO, vec![Value::from("only")]).await.is_err());
    assert!(run(&world.store, ECHO, vec![Value::from("both"), Value::from("given")]).await.is_ok());
}
