//! A lease has one holder at a time, and whoever lost it can do no harm.

use crate::support::{NOTE, PATIENCE, World, eventually, joined, notes, unit};
use abide_store::leases::{self, Lease};
use abide_store::{Store, StoreError, params};
use abide_testkit::Engine;
use rstest::rstest;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Ends only if a test lets it.
const LONG: Duration = Duration::from_secs(600);
/// Ends soon.
const SHORT: Duration = Duration::from_millis(40);

pub async fn take(store: &Store, name: &str, ttl: Duration) -> Option<Lease> {
    unit!(store, (name.to_owned(), ttl), |tx, (name, ttl)| leases::take(tx, name, "someone", *ttl).await).await.unwrap()
}

async fn check(store: &Store, lease: &Lease) -> Result<(), StoreError> {
    unit!(store, lease.clone(), |tx, lease| leases::check(tx, lease).await).await
}

async fn renew(store: &Store, lease: &Lease, ttl: Duration) -> Result<(), StoreError> {
    unit!(store, (lease.clone(), ttl), |tx, (lease, ttl)| leases::renew(tx, lease, *ttl).await).await
}

pub async fn release(store: &Store, lease: &Lease) {
    unit!(store, lease.clone(), |tx, lease| leases::release(tx, lease).await).await.unwrap();
}

fn is_lost(result: &Result<(), StoreError>) -> bool {
    matches!(result, Err(StoreError::LeaseLost(name)) if name == "repo:1")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_held_lease_cannot_be_taken(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let held = take(&world.store, "repo:1", LONG).await.unwrap();

    assert_eq!(take(&world.store, "repo:1", LONG).await, None);
    assert!(take(&world.store, "repo:2", LONG).await.is_some(), "another name is another lease");
    check(&world.store, &held).await.unwrap();
    let mut conn = world.store.read().await.unwrap();
    let now = abide_core::Clock::now(&world.clock);
    assert_eq!(leases::holder(&mut conn, "repo:1", now).await.unwrap().as_deref(), Some("someone"));
    assert_eq!(leases::holder(&mut conn, "repo:3", now).await.unwrap(), None);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_released_lease_is_free_at_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let first = take(&world.store, "repo:1", LONG).await.unwrap();
    release(&world.store, &first).await;

    let second = take(&world.store, "repo:1", LONG).await.unwrap();

    assert!(second.token > first.token);
    assert!(is_lost(&check(&world.store, &first).await));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_past_its_end_goes_to_the_next_who_asks(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let first = take(&world.store, "repo:1", SHORT).await.unwrap();
    world.pass(SHORT).await;

    assert!(is_lost(&check(&world.store, &first).await), "past its end it guards nothing, even if nobody took it");
    assert!(is_lost(&renew(&world.store, &first, LONG).await), "and it cannot be brought back");
    let second = take(&world.store, "repo:1", LONG).await.unwrap();

    assert!(second.token > first.token);
    check(&world.store, &second).await.unwrap();
    assert!(is_lost(&check(&world.store, &first).await));
    assert!(is_lost(&renew(&world.store, &first, LONG).await));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_late_release_does_not_free_what_another_holds(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let first = take(&world.store, "repo:1", SHORT).await.unwrap();
    world.pass(SHORT).await;
    let second = take(&world.store, "repo:1", LONG).await.unwrap();

    release(&world.store, &first).await;

    check(&world.store, &second).await.unwrap();
    assert_eq!(take(&world.store, "repo:1", LONG).await, None);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_lease_outlives_its_first_end(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let lease = take(&world.store, "repo:1", Duration::from_secs(5)).await.unwrap();

    renew(&world.store, &lease, LONG).await.unwrap();
    // PostgreSQL's clock cannot be turned, so its row is: back by what the first end was away.
    match engine {
        Engine::Sqlite => drop(world.clock.advance(Duration::from_secs(6))),
        Engine::Postgres => world.raw().await.execute("UPDATE leases SET expires_at = expires_at - 6000000").await,
    }

    check(&world.store, &lease).await.unwrap();
    assert_eq!(take(&world.store, "repo:1", LONG).await, None);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_sixteen_that_ask_at_once_one_gets_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(false, true)] was_held_before: bool,
) {
    let world = World::with(engine, |options| options.connections = 16).await;
    if was_held_before {
        let before = take(&world.store, "repo:1", LONG).await.unwrap();
        release(&world.store, &before).await;
    }

    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let store = world.store.clone();
            tokio::spawn(async move { take(&store, "repo:1", LONG).await })
        })
        .collect();
    let mut taken = Vec::new();
    for task in tasks {
        taken.extend(joined(task).await);
    }

    assert_eq!(taken.len(), 1);
    check(&world.store, &taken[0]).await.unwrap();
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_under_a_lost_lease_is_undone(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let stale = take(&world.store, "repo:1", SHORT).await.unwrap();
    world.pass(SHORT).await;
    take(&world.store, "repo:1", LONG).await.unwrap();

    let written = unit!(world.store, stale, |tx, stale| {
        tx.execute(&NOTE, params!["too late", 0_i64]).await?;
        leases::check(tx, stale).await
    });

    assert!(is_lost(&written.await));
    assert!(notes(&world.store).await.is_empty());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_leases_of_processes_that_are_gone_can_be_ended_by_their_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let hold = async |name: &str, holder: &str| {
        let input = (name.to_owned(), holder.to_owned());
        unit!(world.store, input, |tx, (name, holder)| leases::take(tx, name, holder, LONG).await)
            .await
            .unwrap()
            .unwrap()
    };
    let gone = hold("repo:1", "node-a/1").await;
    let mine = hold("repo:2", "node-a/2").await;
    let of_another = hold("repo:3", "node-b/1").await;

    let ended = unit!(world.store, (), |tx, _| leases::expire_of(tx, "node-a/", "node-a/2").await);

    assert_eq!(ended.await.unwrap(), 1);
    assert!(is_lost(&check(&world.store, &gone).await));
    check(&world.store, &mine).await.unwrap();
    check(&world.store, &of_another).await.unwrap();
    assert!(take(&world.store, "repo:1", LONG).await.unwrap().token > gone.token);
}

/// The lease may end in the middle of the unit, but whoever takes it then sees what the unit wrote.
#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_a_checked_lease_changes_hands_only_after_the_unit() {
    let world = World::new(Engine::Postgres).await;
    let lease = take(&world.store, "repo:1", Duration::from_millis(500)).await.unwrap();
    let (checked, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));

    let (store, input) = (world.store.clone(), (lease, checked.clone(), go_on.clone()));
    let guarded = tokio::spawn(async move {
        unit!(store, input, |tx, (lease, checked, go_on)| {
            leases::check(tx, lease).await?;
            checked.notify_one();
            go_on.notified().await;
            tx.execute(&NOTE, params!["in time", 0_i64]).await.map(drop)
        })
        .await
    });
    tokio::time::timeout(PATIENCE, checked.notified()).await.expect("the lease was not held");
    world.pass(Duration::from_millis(500)).await;
    let store = world.store.clone();
    let taker = tokio::spawn(async move { (take(&store, "repo:1", LONG).await, notes(&store).await) });
    let mut raw = world.raw().await;
    eventually(async || {
        raw.number("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype IN ('transactionid', 'tuple')").await
            > 0
    })
    .await;
    assert!(!taker.is_finished());

    go_on.notify_one();

    joined(guarded).await.unwrap();
    let (taken, seen) = joined(taker).await;
    assert!(taken.is_some());
    assert_eq!(seen, ["in time"]);
}
