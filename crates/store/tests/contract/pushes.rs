//! The intent of a push outlives the process that had it.

use crate::leases::{release, take};
use crate::support::{World, repo, unit, user};
use abide_core::{Clock as _, Oid, PushId, RefUpdate, RepoId, UserId};
use abide_store::leases::Lease;
use abide_store::repos::pushes::{self, Intent, Outcome, Push};
use abide_store::{Store, StoreError, repos};
use abide_testkit::{Engine, TestClock};
use rstest::rstest;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_millis(40);

fn intent(repo_id: RepoId, actor: Option<UserId>) -> Intent {
    let update = |name: &str, old, new| RefUpdate { name: name.parse().unwrap(), old, new };
    Intent {
        repo_id,
        actor,
        transport: "ssh",
        incoming: "push-1".into(),
        updates: vec![
            update("refs/heads/main", Oid::ZERO, Oid::from_bytes([1; 20])),
            update("refs/heads/für alle".replace(' ', "-").as_str(), Oid::from_bytes([2; 20]), Oid::ZERO),
        ],
        signed: None,
    }
}

async fn begin(store: &Store, intent: Intent, lease: &Lease) -> Push {
    unit!(store, (intent, lease.clone()), |tx, (intent, lease)| pushes::begin(tx, intent, lease).await).await.unwrap()
}

async fn end(store: &Store, push: &Push, outcome: Outcome) -> bool {
    unit!(store, (push.clone(), outcome), |tx, (push, outcome)| pushes::end(tx, push, *outcome).await).await.unwrap()
}

async fn orphans(world: &World) -> Vec<PushId> {
    let mut conn = world.store.read().await.unwrap();
    let orphans = pushes::orphaned(&mut conn, world.clock.now(), PushId::new(0), 10).await.unwrap();
    orphans.iter().map(|push| push.id).collect()
}

async fn generation(store: &Store, repo: RepoId) -> i64 {
    repos::ref_state(&mut store.read().await.unwrap(), repo).await.unwrap().unwrap().generation
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_push_reads_back_as_it_began_and_ends_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    let id = repo(&world.store, alice, "tool").await;
    let lease = take(&world.store, &pushes::lease_name(id), LONG).await.unwrap();

    let push = begin(&world.store, intent(id, Some(alice)), &lease).await;

    assert_eq!(generation(&world.store, id).await, 1);
    let running = pushes::running_of(&mut world.store.read().await.unwrap(), id).await.unwrap().remove(0);
    assert_eq!((running.id, running.actor, running.generation), (push.id, Some(alice), 1));
    assert_eq!(
        (running.lease_token, running.transport.as_str(), running.incoming.as_str()),
        (lease.token, "ssh", "push-1")
    );
    assert_eq!((running.updates, running.started_at), (intent(id, None).updates, TestClock::START));

    assert!(end(&world.store, &push, Outcome::Done).await);
    assert_eq!(generation(&world.store, id).await, 2);
    assert!(!end(&world.store, &push, Outcome::Aborted).await, "it has ended");
    assert_eq!(generation(&world.store, id).await, 2);
    let mut conn = world.store.read().await.unwrap();
    assert!(pushes::running_of(&mut conn, id).await.unwrap().is_empty());
    assert_eq!(pushes::count_running(&mut conn).await.unwrap(), 0);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn ending_a_push_leaves_the_generation_of_a_later_one_alone(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    let id = repo(&world.store, alice, "tool").await;
    let lease = take(&world.store, &pushes::lease_name(id), LONG).await.unwrap();
    let crashed = begin(&world.store, intent(id, None), &lease).await;
    let next = begin(&world.store, intent(id, None), &lease).await;
    assert_eq!((crashed.generation, next.generation), (1, 3));

    assert!(end(&world.store, &crashed, Outcome::Aborted).await);
    assert_eq!(generation(&world.store, id).await, 3, "the other one is moving refs");
    assert!(end(&world.store, &next, Outcome::Done).await);
    assert_eq!(generation(&world.store, id).await, 4);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_push_is_orphaned_only_when_its_lease_is_lost(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    let mut begun = Vec::new();
    for (name, ttl) in [("held", LONG), ("released", LONG), ("past-its-end", SHORT), ("taken-over", SHORT)] {
        let id = repo(&world.store, alice, name).await;
        let lease = take(&world.store, &pushes::lease_name(id), ttl).await.unwrap();
        begun.push((begin(&world.store, intent(id, None), &lease).await, lease));
    }
    let [(held, _), (released, lease), (past, _), (taken, _)] = &begun[..] else { unreachable!("four were begun") };
    world.pass(SHORT).await;
    take(&world.store, &pushes::lease_name(taken.repo_id), LONG).await.unwrap();
    assert_eq!(orphans(&world).await, [past.id, taken.id]);

    release(&world.store, lease).await;

    assert_eq!(orphans(&world).await, [released.id, past.id, taken.id]);
    let mut conn = world.store.read().await.unwrap();
    let page = pushes::orphaned(&mut conn, world.clock.now(), released.id, 1).await.unwrap();
    assert_eq!(page.iter().map(|push| push.id).collect::<Vec<_>>(), [past.id], "a page behind a cursor");
    assert_eq!(pushes::count_running(&mut conn).await.unwrap(), 4);
    drop(conn);
    end(&world.store, past, Outcome::Aborted).await;
    assert_eq!(orphans(&world).await, [released.id, taken.id]);
    assert_ne!(held.id, released.id);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn pruning_forgets_old_ended_pushes_only(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    let id = repo(&world.store, alice, "tool").await;
    let lease = take(&world.store, &pushes::lease_name(id), LONG).await.unwrap();
    let done = begin(&world.store, intent(id, None), &lease).await;
    end(&world.store, &done, Outcome::Done).await;
    let running = begin(&world.store, intent(id, None), &lease).await;
    let prune = |before| unit!(world.store, before, |tx, &before| pushes::prune(tx, before).await);

    assert_eq!(prune(TestClock::START).await.unwrap(), 0);
    assert_eq!(prune(TestClock::START.plus(LONG)).await.unwrap(), 1);

    let left = pushes::running_of(&mut world.store.read().await.unwrap(), id).await.unwrap();
    assert_eq!(left[0].id, running.id);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_push_to_a_repository_that_is_gone_does_not_begin(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let lease = Lease { name: "repo:404".into(), token: 1 };
    let refused =
        unit!(world.store, lease, |tx, lease| pushes::begin(tx, &intent(RepoId::new(404), None), lease).await);
    assert!(matches!(refused.await, Err(StoreError::Missing)));
}
