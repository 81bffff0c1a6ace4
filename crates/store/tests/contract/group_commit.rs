//! SQLite's writer commits many units at once, and no unit can tell.

use crate::support::{NOTE, Raw, World, joined, note, notes, run, sql, started, unit};
use crate::units::Refusal;
use abide_store::{Sql, Store, StoreError, params};
use abide_testkit::Engine;
use rstest::rstest;
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

const UNITS: usize = 200;

#[rstest]
#[case::together(64, 4..=5)]
#[case::one_by_one(1, UNITS..=UNITS)]
#[tokio::test(flavor = "multi_thread")]
async fn units_that_wait_are_committed_together(
    #[case] batch: usize,
    #[case] expected: std::ops::RangeInclusive<usize>,
) {
    let world = World::with(Engine::Sqlite, |options| options.batch = batch).await;
    let before = commits(&world);

    let units = while_locked(&world, async || {
        let mut units = Vec::new();
        for index in 0..UNITS {
            let store = world.store.clone();
            units.push(started(async move { note(&store, &format!("{index:03}")).await }).await);
        }
        units
    })
    .await;

    for unit in units {
        unit.await.unwrap();
    }
    let happened = commits(&world) - before;
    assert!(expected.contains(&happened), "{happened} commits");
    assert_eq!(notes(&world.store).await.len(), UNITS);
}

/// Steps of the units of a mixed batch, one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Succeed,
    RepeatAName,
    BreakARule,
    ChangeItsMind,
    Panic,
}

impl Deed {
    const ALL: [Self; 5] = [Self::Succeed, Self::RepeatAName, Self::BreakARule, Self::ChangeItsMind, Self::Panic];
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_unit_does_not_disturb_its_neighbours(#[values(1, 64)] batch: usize) {
    let world = World::with(Engine::Sqlite, |options| options.batch = batch).await;
    note(&world.store, "taken").await.unwrap();
    let before = commits(&world);

    let units = while_locked(&world, async || {
        let mut units = Vec::new();
        for index in 0..UNITS {
            let store = world.store.clone();
            units.push(started(async move { deed(&store, Deed::ALL[index % 5], index).await }).await);
        }
        units
    })
    .await;

    for (index, unit) in units.into_iter().enumerate() {
        let (deed, answer) = (Deed::ALL[index % 5], unit.await);
        let fits = match deed {
            Deed::Succeed => matches!(answer, Ok(own) if own == index),
            Deed::RepeatAName => matches!(answer, Err(Refusal::Store(StoreError::Unique))),
            Deed::BreakARule => matches!(answer, Err(Refusal::Store(StoreError::Constraint(_)))),
            Deed::ChangeItsMind => matches!(answer, Err(Refusal::NotToday)),
            Deed::Panic => matches!(answer, Err(Refusal::Store(StoreError::Panicked))),
        };
        assert!(fits, "unit {index} ({deed:?}) was told {answer:?}");
    }
    let expected: BTreeSet<String> =
        (0..UNITS).step_by(5).map(|index| format!("{index:03}")).chain(["taken".into()]).collect();
    assert_eq!(notes(&world.store).await.into_iter().collect::<BTreeSet<_>>(), expected);
    let happened = commits(&world) - before;
    assert!(if batch == 1 { happened == UNITS / 5 } else { happened <= 5 }, "{happened} commits");
}

async fn deed(store: &Store, deed: Deed, index: usize) -> Result<usize, Refusal> {
    const OF_NO_STATE: Sql = sql("INSERT INTO jobs (kind, payload, priority, state, run_at, max_attempts, created_at)
        VALUES ('x', '{}', 0, 'nonsense', 0, 1, 0)");
    unit!(store, (deed, index), |tx, &(deed, index)| {
        tx.execute(&NOTE, params![format!("{index:03}"), 0_i64]).await?;
        match deed {
            Deed::Succeed => {}
            Deed::RepeatAName => drop(tx.execute(&NOTE, params!["taken", 0_i64]).await?),
            Deed::BreakARule => drop(tx.execute(&OF_NO_STATE, &[]).await?),
            Deed::ChangeItsMind => return Err(Refusal::NotToday),
            Deed::Panic => panic!("as planned"),
        }
        Ok(index)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_unit_sees_what_the_one_before_it_wrote() {
    const RAISE: Sql = sql("UPDATE schedules SET next_run_at = next_run_at + 1 WHERE name = $1 RETURNING next_run_at");
    let world = World::new(Engine::Sqlite).await;
    note(&world.store, "counter").await.unwrap();

    let units = while_locked(&world, async || {
        let mut units = Vec::new();
        for _ in 0..UNITS {
            let store = world.store.clone();
            units.push(started(async move { run(&store, RAISE, vec!["counter".into()]).await }).await);
        }
        units
    })
    .await;

    for (index, unit) in units.into_iter().enumerate() {
        assert_eq!(unit.await.unwrap()[0].int("next_run_at").unwrap(), index as i64 + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_same_file_loses_nothing() {
    const RAISE: Sql = sql("UPDATE schedules SET next_run_at = next_run_at + 1 WHERE name = 'counter'");
    let world = World::new(Engine::Sqlite).await;
    note(&world.store, "counter").await.unwrap();
    let other = world.another_store().await;

    let mut tasks = Vec::new();
    for index in 0..UNITS {
        let store = if index % 2 == 0 { world.store.clone() } else { other.clone() };
        tasks.push(tokio::spawn(async move {
            run(&store, RAISE, vec![]).await.unwrap();
            note(&store, &format!("{index:03}")).await.unwrap();
        }));
    }
    for task in tasks {
        joined(task).await;
    }

    assert_eq!(world.raw().await.number("SELECT next_run_at FROM schedules WHERE name = 'counter'").await, 200);
    assert_eq!(notes(&other).await.len(), UNITS + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_lock_that_stays_all_are_told_after_one_timeout() {
    const TIMEOUT: Duration = Duration::from_secs(1);
    let world = World::with(Engine::Sqlite, |options| options.busy_timeout = TIMEOUT).await;
    let start = Instant::now();

    let answers = while_locked(&world, async || {
        let mut units = Vec::new();
        for index in 0..20 {
            let store = world.store.clone();
            units.push(started(async move { note(&store, &format!("{index:03}")).await }).await);
        }
        futures_util::future::join_all(units).await
    })
    .await;

    for answer in &answers {
        assert!(matches!(answer, Err(StoreError::Conflict(_))), "{answer:?}");
    }
    assert!(start.elapsed() < TIMEOUT * 10, "they waited one after another: {:?}", start.elapsed());
    assert!(notes(&world.store).await.is_empty());
    note(&world.store, "after").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_go_on_while_the_file_is_locked_for_writing() {
    let world = World::new(Engine::Sqlite).await;
    note(&world.store, "there").await.unwrap();
    let seen = while_locked(&world, async || notes(&world.store).await).await;
    assert_eq!(seen, ["there"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_database_is_one_file() {
    let world = World::new(Engine::Sqlite).await;
    note(&world.store, "kept").await.unwrap();
    notes(&world.store).await;
    world.store.close().await;

    let log = world.options().sqlite_file.with_extension("db-wal");
    let left = fs::metadata(&log).map_or(0, |log| log.len());
    assert_eq!(left, 0, "a copy of the file alone would lack what was committed");
    assert_eq!(notes(&world.another_store().await).await, ["kept"]);
}

/// Does something while another process holds the write lock.
async fn while_locked<T>(world: &World, something: impl AsyncFnOnce() -> T) -> T {
    let mut other = world.raw().await;
    other.execute("BEGIN IMMEDIATE").await;
    let result = something().await;
    other.execute("ROLLBACK").await;
    let Raw::Sqlite(other) = other else { panic!("another engine") };
    sqlx::Connection::close(other).await.unwrap();
    result
}

/// How many commits the write-ahead log holds: frames that carry the size of the database after a commit.
///
/// Only meaningful while the log is small enough not to be started anew.
fn commits(world: &World) -> usize {
    const HEADER: usize = 32;
    const FRAME_HEADER: usize = 24;
    let log = fs::read(world.options().sqlite_file.with_extension("db-wal")).unwrap();
    if log.len() < HEADER {
        return 0;
    }
    let word = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let page = word(8) as usize;
    let salt = &log[16..24];
    (HEADER..log.len())
        .step_by(FRAME_HEADER + page)
        .take_while(|at| log.len() >= at + FRAME_HEADER + page && &log[at + 8..at + 16] == salt)
        .filter(|at| word(at + 4) != 0)
        .count()
}
