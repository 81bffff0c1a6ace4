//! A hook is told one thing at a time, in order, by one sender; what is queued is not lost and not queued twice.

use crate::support::{World, joined, repo, unit, user};
use abide_core::webhooks::{Breaker, ContentType, DeliveryState, Kind, Kinds};
use abide_core::{DeliveryId, HookId, Redacted, RepoId, Timestamp};
use abide_store::webhooks::deliveries::{self, NewDelivery, Tried};
use abide_store::webhooks::{self, Choice, Claim};
use abide_store::{Store, StoreError};
use abide_testkit::{Engine, TestClock};
use rstest::rstest;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_millis(40);

fn choice() -> Choice {
    Choice {
        url: "https://ci.example/hook".into(),
        content_type: ContentType::Json,
        secret: Some(vec![1, 2, 3].into()),
        events: Kinds::parse(["push", "star"]).unwrap(),
        active: true,
    }
}

async fn hook(store: &Store, repo: RepoId) -> HookId {
    unit!(store, repo, |tx, &repo| webhooks::insert(tx, repo, &choice(), None).await).await.unwrap()
}

async fn world(engine: Engine) -> (World, RepoId, HookId) {
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    let id = repo(&world.store, alice, "tool").await;
    let hook = hook(&world.store, id).await;
    (world, id, hook)
}

fn delivery(hook: HookId, event: Option<(i64, i64)>) -> NewDelivery {
    NewDelivery {
        hook_id: hook,
        guid: format!("guid-{event:?}"),
        event,
        kind: Kind::Push,
        action: None,
        redelivery_of: None,
        payload: "{}".into(),
        content_type: None,
        draft: true,
    }
}

async fn enqueue(store: &Store, hook: HookId, event: Option<(i64, i64)>) -> Option<DeliveryId> {
    unit!(store, delivery(hook, event), |tx, new| deliveries::enqueue(tx, new).await).await.unwrap()
}

async fn claim(store: &Store, ttl: Duration) -> Option<Claim> {
    unit!(store, ttl, |tx, &ttl| webhooks::claim(tx, "node/a", ttl).await).await.unwrap()
}

/// Ends a try as a sender does.
async fn end(store: &Store, claim: &Claim, state: DeliveryState, next: Timestamp) -> Result<(), StoreError> {
    unit!(store, (claim.clone(), state, next), |tx, (claim, state, next)| {
        let breaker = webhooks::check(tx, claim).await?;
        deliveries::fix(tx, claim.delivery.id, "{\"sent\":1}", ContentType::Form).await?;
        let tried = Tried { request_headers: "{}".into(), status: Some(200), ..Tried::default() };
        deliveries::end(tx, claim.delivery.id, *state, &tried).await?;
        webhooks::settle(tx, claim, breaker, *next).await
    })
    .await
}

async fn read(store: &Store, hook: HookId, id: DeliveryId) -> deliveries::Delivery {
    deliveries::by_id(&mut store.read().await.unwrap(), hook, id).await.unwrap().unwrap()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_reads_back_as_it_was_chosen_and_only_in_its_repository(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (world, repo, id) = world(engine).await;
    let mut conn = world.store.read().await.unwrap();
    let hook = webhooks::by_id(&mut conn, repo, id).await.unwrap().unwrap();
    assert_eq!(
        (hook.url.as_str(), hook.content_type, hook.secret.map(Redacted::into_inner)),
        ("https://ci.example/hook", ContentType::Json, Some(vec![1, 2, 3]))
    );
    assert_eq!(
        (hook.events.words(), hook.active, hook.breaker, hook.next_at),
        (vec!["push", "star"], true, Breaker::default(), None)
    );
    assert!(webhooks::by_id(&mut conn, RepoId::new(repo.get() + 1), id).await.unwrap().is_none());
    assert_eq!(webhooks::count_of_repo(&mut conn, repo).await.unwrap(), 1);
    assert_eq!(webhooks::listening(&mut conn, repo, TestClock::START).await.unwrap().len(), 1);
    let earlier = TestClock::START.minus(Duration::from_secs(1));
    assert!(webhooks::listening(&mut conn, repo, earlier).await.unwrap().is_empty(), "what came before it is not told");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_begun_in_order_one_at_a_time(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (world, _, hook) = world(engine).await;
    let store = &world.store;
    assert!(claim(store, LONG).await.is_none());
    let ids = [enqueue(store, hook, Some((1, 0))).await.unwrap(), enqueue(store, hook, Some((2, 0))).await.unwrap()];
    assert_eq!(enqueue(store, hook, Some((1, 0))).await, None, "the same part of the same event is queued once");
    assert!(enqueue(store, hook, None).await.is_some() && enqueue(store, hook, None).await.is_some());

    let first = claim(store, LONG).await.unwrap();
    assert_eq!((first.delivery.id, first.delivery.attempts, first.delivery.state), (ids[0], 1, DeliveryState::Sending));
    assert!(claim(store, LONG).await.is_none(), "one at a time");
    end(store, &first, DeliveryState::Ok, TestClock::START).await.unwrap();
    let done = read(store, hook, ids[0]).await;
    assert_eq!((done.state, done.status, done.payload.as_str()), (DeliveryState::Ok, Some(200), "{\"sent\":1}"));
    assert_eq!((first.delivery.content_type, done.content_type), (None, Some(ContentType::Form)));
    assert_eq!(done.finished_at, Some(TestClock::START));

    let second = claim(store, LONG).await.unwrap();
    assert_eq!(second.delivery.id, ids[1]);
    let later = TestClock::START.plus(Duration::from_secs(30));
    end(store, &second, DeliveryState::Queued, later).await.unwrap();
    assert!(claim(store, LONG).await.is_none(), "it waits for its time, and those behind it wait for it");
    enqueue(store, hook, None).await.unwrap();
    assert!(claim(store, LONG).await.is_none(), "what is queued meanwhile does not overtake it");
    world.clock.advance(Duration::from_secs(30));
    assert_eq!(claim(store, LONG).await.unwrap().delivery.id, ids[1]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn two_senders_never_get_the_same_hook(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (world, repo, first) = world(engine).await;
    let mut hooks = vec![first];
    for _ in 0..9 {
        hooks.push(hook(&world.store, repo).await);
    }
    for &hook in &hooks {
        enqueue(&world.store, hook, None).await.unwrap();
    }
    let other = world.another_store().await;
    let senders: Vec<_> = (0..20)
        .map(|n| {
            let store = if n % 2 == 0 { world.store.clone() } else { other.clone() };
            tokio::spawn(async move {
                let mut got = Vec::new();
                while let Some(claim) = claim(&store, LONG).await {
                    got.push(claim.hook.id);
                }
                got
            })
        })
        .collect();
    let mut got = Vec::new();
    for sender in senders {
        got.extend(joined(sender).await);
    }
    got.sort_unstable();
    assert_eq!(got, hooks);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_was_thought_dead_can_do_no_harm(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (world, _, hook) = world(engine).await;
    let id = enqueue(&world.store, hook, Some((7, 0))).await.unwrap();
    let lost = claim(&world.store, SHORT).await.unwrap();
    world.pass(SHORT).await;
    let again = claim(&world.store, LONG).await.unwrap();
    assert_eq!(
        (again.delivery.id, again.delivery.guid.as_str(), again.delivery.attempts),
        (id, lost.delivery.guid.as_str(), 2)
    );
    let late = end(&world.store, &lost, DeliveryState::Failed, TestClock::START).await;
    assert!(matches!(late, Err(StoreError::LeaseLost(_))), "{late:?}");
    assert_eq!(read(&world.store, hook, id).await.state, DeliveryState::Sending);
    end(&world.store, &again, DeliveryState::Ok, TestClock::START).await.unwrap();

    enqueue(&world.store, hook, None).await.unwrap();
    let held = claim(&world.store, LONG).await.unwrap();
    unit!(world.store, (), |tx, _| webhooks::expire_of(tx, "node/", "node/b").await).await.unwrap();
    assert_eq!(claim(&world.store, LONG).await.unwrap().delivery.id, held.delivery.id, "a restart need not wait");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_hook_waits_for_its_probe_and_a_change_begins_anew(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (world, repo, hook) = world(engine).await;
    let store = &world.store;
    enqueue(store, hook, None).await.unwrap();
    let failed = claim(store, LONG).await.unwrap();
    let probe = TestClock::START.plus(Duration::from_secs(900));
    unit!(store, (failed, probe), |tx, (claim, probe)| {
        let tried = Tried { request_headers: "{}".into(), ..Tried::default() };
        deliveries::end(tx, claim.delivery.id, DeliveryState::Failed, &tried).await?;
        let open = Breaker { failures: 5, open_since: Some(TestClock::START) };
        webhooks::settle(tx, claim, open, *probe).await
    })
    .await
    .unwrap();
    let queued = enqueue(store, hook, None).await.unwrap();
    assert!(claim(store, LONG).await.is_none(), "nothing is tried before the probe");
    let row = webhooks::by_id(&mut store.read().await.unwrap(), repo, hook).await.unwrap().unwrap();
    assert_eq!((row.next_at, row.probe_at, row.breaker.failures), (Some(probe), Some(probe), 5));
    unit!(store, hook, |tx, &hook| webhooks::update(tx, hook, &choice()).await).await.unwrap();
    assert_eq!(claim(store, LONG).await.unwrap().delivery.id, queued);
    let row = webhooks::by_id(&mut store.read().await.unwrap(), repo, hook).await.unwrap().unwrap();
    assert_eq!(row.breaker, Breaker::default());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn old_deliveries_are_forgotten_and_an_inactive_hook_sends_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (world, repo, hook) = world(engine).await;
    let store = &world.store;
    let old = enqueue(store, hook, None).await.unwrap();
    world.clock.advance(LONG);
    let fresh = enqueue(store, hook, None).await.unwrap();
    let off = Choice { active: false, ..choice() };
    unit!(store, (hook, off), |tx, (hook, off)| webhooks::update(tx, *hook, off).await).await.unwrap();
    assert!(claim(store, LONG).await.is_none());
    unit!(store, hook, |tx, &hook| webhooks::update(tx, hook, &choice()).await).await.unwrap();
    let before = TestClock::START.plus(Duration::from_secs(1));
    let forgotten = unit!(store, before, |tx, &before| deliveries::prune(tx, before).await).await.unwrap();
    assert_eq!(forgotten, 1);
    assert!(deliveries::by_id(&mut store.read().await.unwrap(), hook, old).await.unwrap().is_none());
    assert_eq!(claim(store, LONG).await.unwrap().delivery.id, fresh);

    unit!(store, repo, |tx, &repo| webhooks::gone(tx, repo).await).await.unwrap();
    assert!(webhooks::by_id(&mut store.read().await.unwrap(), repo, hook).await.unwrap().is_none());
    let later = TestClock::START.plus(2 * LONG);
    assert_eq!(unit!(store, later, |tx, &later| webhooks::prune_gone(tx, later).await).await.unwrap(), 1);
}
