//! A unit of work happens as a whole or not at all, and its caller knows which.

use crate::support::{NOTE, PATIENCE, World, eventually, joined, note, notes, sql, started, unit};
use abide_store::{Sql, StoreError, jobs, params};
use abide_testkit::Engine;
use futures_util::FutureExt as _;
use rstest::rstest;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Notify, Semaphore};

/// An error of a use case.
#[derive(Debug)]
pub enum Refusal {
    NotToday,
    Store(StoreError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_unit_wrote_is_there_for_every_reader_once_write_returns(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let other = world.another_store().await;
    for round in 0..20 {
        note(&world.store, &format!("{round:02}")).await.unwrap();
        assert_eq!(notes(&world.store).await.len(), round + 1);
        assert_eq!(notes(&other).await.len(), round + 1);
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_a_unit_before_it_ends(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let (writing, gate) = held_unit(&world, "half").await;

    assert!(notes(&world.store).await.is_empty());

    gate.go_on();
    joined(writing).await.unwrap();
    assert_eq!(notes(&world.store).await, ["half"]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_error_from_the_unit_undoes_all_of_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;

    let refused = unit!(world.store, (), |tx, _| {
        tx.execute(&NOTE, params!["first", 1_i64]).await?;
        tx.execute(&NOTE, params!["second", 2_i64]).await?;
        Err::<(), _>(Refusal::NotToday)
    });

    assert!(matches!(refused.await, Err(Refusal::NotToday)));
    assert!(notes(&world.store).await.is_empty());
    note(&world.store, "after").await.unwrap();
    assert_eq!(notes(&world.store).await, ["after"]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_statement_undoes_what_came_before_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    note(&world.store, "taken").await.unwrap();

    let refused = unit!(world.store, (), |tx, _| {
        tx.execute(&NOTE, params!["before", 1_i64]).await?;
        tx.execute(&NOTE, params!["taken", 2_i64]).await
    });

    assert!(matches!(refused.await, Err(StoreError::Unique)));
    assert_eq!(notes(&world.store).await, ["taken"]);
}

/// PostgreSQL answers the COMMIT of a transaction with a failed statement with a silent rollback.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_unit_cannot_succeed_over_a_failed_statement(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    note(&world.store, "taken").await.unwrap();

    let claimed = unit!(world.store, (), |tx, _| {
        tx.execute(&NOTE, params!["before", 1_i64]).await?;
        let ignored = tx.execute(&NOTE, params!["taken", 2_i64]).await;
        assert!(ignored.is_err());
        Ok::<_, StoreError>("fine")
    });

    assert!(matches!(claimed.await, Err(StoreError::Unique)));
    assert_eq!(notes(&world.store).await, ["taken"]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn after_a_failure_of_another_kind_a_unit_cannot_succeed_either(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const NONSENSE: Sql = sql("SELECT nothing FROM nowhere");
    let world = World::new(engine).await;

    let claimed = unit!(world.store, (), |tx, _| {
        tx.execute(&NOTE, params!["before", 1_i64]).await?;
        let _ = tx.all(&NONSENSE, &[]).await;
        let _ = tx.execute(&NOTE, params!["after", 2_i64]).await;
        Ok::<_, StoreError>(())
    });

    assert!(claimed.await.is_err());
    assert!(notes(&world.store).await.is_empty());
    note(&world.store, "next").await.unwrap();
    assert_eq!(notes(&world.store).await, ["next"]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_an_error_for_its_caller_alone(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;

    let panicked = unit!(world.store, true, |tx, &panics| {
        tx.execute(&NOTE, params!["half", 1_i64]).await?;
        assert!(!panics, "as planned");
        Ok::<_, StoreError>(())
    });

    assert!(matches!(panicked.await, Err(StoreError::Panicked)));
    assert!(notes(&world.store).await.is_empty());
    note(&world.store, "next").await.unwrap();
    assert_eq!(notes(&world.store).await, ["next"]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_stops_waiting_does_not_undo_its_unit(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let (writing, gate) = held_unit(&world, "kept").await;

    writing.abort();
    assert!(writing.await.unwrap_err().is_cancelled());
    gate.go_on();

    eventually(async || notes(&world.store).await == ["kept"]).await;
    note(&world.store, "next").await.unwrap();
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn closing_lets_waiting_units_finish_and_takes_no_more(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::with(engine, |options| options.connections = 2).await;
    let gate = Arc::new(Gate::default());
    let mut units = Vec::new();
    for index in 0..40 {
        let store = world.store.clone();
        let input = (gate.clone(), format!("{index:02}"));
        units.push(
            started(async move {
                unit!(store, input, |tx, (gate, name)| {
                    gate.pass().await;
                    tx.execute(&NOTE, params![name, 0_i64]).await
                })
                .await
            })
            .await,
        );
    }
    gate.reached().await;

    let store = world.store.clone();
    let closing = started(async move { store.close().await }).await;
    eventually(async || matches!(note(&world.store, "late").await, Err(StoreError::Closed))).await;
    gate.go_on();
    tokio::time::timeout(PATIENCE, closing).await.expect("closing takes too long");

    for unit in units {
        unit.await.unwrap();
    }
    assert_eq!(notes(&world.another_store().await).await.len(), 40);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn closing_twice_is_harmless(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    world.store.close().await;
    world.store.close().await;
    assert!(matches!(note(&world.store, "late").await, Err(StoreError::Closed)));
    assert!(world.store.read().await.is_err());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn runners_are_woken_by_what_was_committed_and_by_nothing_else(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let enqueue = |fails: bool| {
        unit!(world.store, fails, |tx, &fails| {
            jobs::enqueue(tx, &crate::jobs::job("greet")).await?;
            if fails { Err(Refusal::NotToday) } else { Ok(()) }
        })
    };

    enqueue(true).await.unwrap_err();
    assert!(world.store.jobs_grew().now_or_never().is_none(), "woken by what was undone");

    enqueue(false).await.unwrap();
    tokio::time::timeout(PATIENCE, world.store.jobs_grew()).await.expect("nobody was woken");
    assert!(world.store.log_grew().now_or_never().is_none(), "woken by another log");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn all_rows_of_a_unit_carry_the_instant_it_runs_at(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let later = world.clock.advance(std::time::Duration::from_secs(90));

    let seen = unit!(world.store, world.clock.clone(), |tx, clock| {
        let before = tx.now();
        clock.advance(PATIENCE);
        Ok::<_, StoreError>((before, tx.now()))
    });

    assert_eq!(seen.await.unwrap(), (later, later));
}

/// Holds units in their middle until the test lets them go on.
struct Gate {
    reached: Notify,
    open: AtomicBool,
    waiting: Semaphore,
}

impl Default for Gate {
    fn default() -> Self {
        Self { reached: Notify::new(), open: AtomicBool::new(false), waiting: Semaphore::new(0) }
    }
}

impl Gate {
    async fn pass(&self) {
        self.reached.notify_one();
        if !self.open.load(Ordering::SeqCst) {
            // Closed by `go_on`, which lets everybody through.
            let _ = self.waiting.acquire().await;
        }
    }

    async fn reached(&self) {
        tokio::time::timeout(PATIENCE, self.reached.notified()).await.expect("no unit began");
    }

    fn go_on(&self) {
        self.open.store(true, Ordering::SeqCst);
        self.waiting.close();
    }
}

/// Begins a unit that has written its note and waits.
async fn held_unit(world: &World, name: &'static str) -> (tokio::task::JoinHandle<Result<u64, StoreError>>, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let (store, input) = (world.store.clone(), (gate.clone(), name));
    let writing = tokio::spawn(async move {
        unit!(store, input, |tx, (gate, name)| {
            let written = tx.execute(&NOTE, params![*name, 0_i64]).await?;
            gate.pass().await;
            Ok(written)
        })
        .await
    });
    gate.reached().await;
    (writing, gate)
}
