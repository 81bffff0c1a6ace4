//! Followed relays: who holds one, what it is asked for, and what of it was refused.

use crate::support::{World, unit};
use abide_core::Clock as _;
use abide_store::Store;
use abide_store::sync::relays::{self, Ended, Refused, Relay};
use abide_testkit::Engine;
use rstest::rstest;
use std::time::Duration;

const HOLD: Duration = Duration::from_secs(30);
const ALICE: [u8; 32] = [1; 32];

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

async fn name(store: &Store, identifier: &str, urls: &[&str], delay: Duration) {
    let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
    unit!(store, (identifier.to_owned(), urls, delay), |tx, (identifier, urls, delay)| {
        let from = tx.now().plus(*delay);
        relays::name(tx, &ALICE, identifier, urls, from).await
    })
    .await
    .unwrap();
}

async fn claim(store: &Store) -> Option<Relay> {
    unit!(store, (), |tx, _| relays::claim(tx, "node-1", HOLD, 2).await).await.unwrap()
}

async fn end(store: &Store, relay: &Relay, ended: Ended) -> bool {
    unit!(store, (relay.clone(), ended), |tx, (relay, ended)| relays::end(tx, relay, ended).await).await.unwrap()
}

async fn relay(store: &Store, url: &str) -> Relay {
    relays::by_url(&mut store.read().await.unwrap(), url).await.unwrap().unwrap()
}

async fn refuse(store: &Store, url: &str, n: u8, class: &'static str) {
    let refused = vec![Refused { id: [n; 32], created_at: i64::from(n), class }];
    unit!(store, (url.to_owned(), refused), |tx, (url, refused)| relays::refuse(tx, url, refused).await).await.unwrap();
}

async fn refused(store: &Store, url: &str) -> Vec<i64> {
    let found = relays::refused(&mut store.read().await.unwrap(), url, (0, i64::MAX), 100).await.unwrap();
    found.into_iter().map(|(at, _)| at).collect()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn one_task_follows_a_relay_and_another_takes_over_from_one_that_is_gone(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    name(store, "demo", &["wss://a"], seconds(180)).await;
    world.clock.advance(seconds(179));
    assert_eq!(claim(store).await, None, "not within the delay");
    world.clock.advance(seconds(1));
    let now = world.clock.now();
    assert!(relays::anything_to_do(&mut store.read().await.unwrap(), now).await.unwrap());
    let first = claim(store).await.unwrap();
    assert_eq!((first.url.as_str(), first.held, first.next_attempt), ("wss://a", true, None));
    assert_eq!(claim(store).await, None, "it is held");
    let connected = unit!(store, first.clone(), |tx, relay| relays::connected(tx, relay).await);
    assert!(connected.await.unwrap());
    assert_eq!(relay(store, "wss://a").await.state(), "connected");
    assert!(unit!(store, first.clone(), |tx, relay| relays::renew(tx, relay, HOLD, (5, 2)).await).await.unwrap());
    let row = relay(store, "wss://a").await;
    assert_eq!((row.events, row.refused), (5, 2));

    assert_eq!(unit!(store, (), |tx, _| relays::expire_of(tx, "node-", "node-2").await).await.unwrap(), 1);
    let second = claim(store).await.unwrap();
    assert!(second.token > first.token);
    assert!(!unit!(store, first.clone(), |tx, relay| relays::renew(tx, relay, HOLD, (1, 1)).await).await.unwrap());
    assert!(!end(store, &first, Ended::Idle(now)).await, "the first has lost it");
    assert!(end(store, &second, Ended::Idle(now.plus(seconds(60)))).await);
    assert_eq!(claim(store).await, None);
    world.clock.advance(seconds(60));
    assert!(claim(store).await.is_some());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn failures_are_counted_until_a_connection_lasts_and_announcements_do_not_hurry_them(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    name(store, "demo", &["wss://a"], Duration::ZERO).await;
    let began = world.clock.now();
    for failures in 1..=3 {
        let held = claim(store).await.unwrap();
        let next = world.clock.now().plus(seconds(10));
        assert!(end(store, &held, Ended::Failed(next, "no route".into())).await);
        let row = relay(store, "wss://a").await;
        assert_eq!((row.failures, row.failing_from, row.state()), (failures, Some(began), "failing"));
        assert_eq!(row.reason, "no route");
        name(store, &format!("other-{failures}"), &["wss://a"], Duration::ZERO).await;
        assert_eq!(claim(store).await, None, "announcing it again does not shorten the pause");
        world.clock.advance(seconds(10));
    }
    let held = claim(store).await.unwrap();
    unit!(store, held.clone(), |tx, relay| relays::steady(tx, relay).await).await.unwrap();
    let row = relay(store, "wss://a").await;
    assert_eq!((row.failures, row.failing_from, row.reason.as_str()), (0, None, ""));

    let until = world.clock.now().plus(seconds(3_600));
    assert!(end(store, &held, Ended::Rests(until, "too much".into())).await);
    assert_eq!(relay(store, "wss://a").await.state(), "resting");
    name(store, "more", &["wss://a"], Duration::ZERO).await;
    assert_eq!(claim(store).await, None);
    assert!(unit!(store, (), |tx, _| relays::hurry(tx, "wss://a").await).await.unwrap());
    assert!(claim(store).await.is_some(), "the operator does");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn so_many_relays_are_followed_at_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let store = &world.store;
    name(store, "demo", &["wss://a", "wss://b", "wss://c"], Duration::ZERO).await;
    let (a, b) = (claim(store).await.unwrap(), claim(store).await.unwrap());
    assert_eq!((a.url.as_str(), b.url.as_str()), ("wss://a", "wss://b"));
    assert_eq!(claim(store).await, None);
    assert!(end(store, &a, Ended::Idle(world.clock.now().plus(seconds(60)))).await);
    assert_eq!(claim(store).await.unwrap().url, "wss://c");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn events_refused_for_lack_of_an_announcement_are_tried_again_after_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    for url in ["wss://a", "wss://b", "wss://operator"] {
        for (n, class) in [(1, "restricted"), (2, "invalid"), (3, "blocked")] {
            refuse(store, url, n, class).await;
        }
    }
    let urls = vec!["wss://operator".to_owned()];
    unit!(store, urls, |tx, urls| relays::set_bootstrap(tx, urls).await).await.unwrap();
    assert_eq!(refused(store, "wss://a").await, [3, 2, 1]);
    name(store, "demo", &[], Duration::ZERO).await;
    let at = world.clock.now();
    unit!(store, at, |tx, at| relays::reconciled(tx, "wss://operator", *at).await).await.unwrap();
    assert_eq!(relay(store, "wss://operator").await.reconciled_at, Some(at));
    refuse(store, "wss://operator", 1, "restricted").await;
    name(store, "demo", &["wss://a"], Duration::ZERO).await;
    assert_eq!(relay(store, "wss://operator").await.reconciled_at, None, "it is compared again");
    assert_eq!(refused(store, "wss://a").await, [3, 2]);
    assert_eq!(refused(store, "wss://b").await, [3, 2, 1], "another relay");
    assert_eq!(refused(store, "wss://operator").await, [3, 2], "it is asked for every repository");

    refuse(store, "wss://a", 1, "restricted").await;
    unit!(store, (), |tx, _| relays::promoted(tx, &ALICE, "demo").await).await.unwrap();
    assert_eq!(refused(store, "wss://a").await, [3, 2]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_remembered_for_a_while_and_up_to_a_number(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    for n in 1..=5 {
        refuse(store, "wss://a", n, "invalid").await;
        world.clock.advance(seconds(1));
    }
    let before = world.clock.now().minus(seconds(4));
    unit!(store, before, |tx, before| relays::prune_refused(tx, *before, 100).await).await.unwrap();
    assert_eq!(refused(store, "wss://a").await, [5, 4, 3, 2], "the first is too old");
    unit!(store, before, |tx, before| relays::prune_refused(tx, *before, 2).await).await.unwrap();
    assert_eq!(refused(store, "wss://a").await, [5, 4]);
    let window = relays::refused(&mut store.read().await.unwrap(), "wss://a", (4, 4), 10).await.unwrap();
    assert_eq!(window, [(4, [4; 32])]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_newest_state_of_an_author_at_a_relay_is_kept(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let store = &world.store;
    for at in [5_u8, 9, 7] {
        unit!(store, at, |tx, at| {
            let of = (ALICE, "demo".to_owned());
            relays::seen(tx, "wss://a", &of, &([*at; 32], i64::from(*at))).await
        })
        .await
        .unwrap();
    }
    let replicas = relays::replicas(&mut store.read().await.unwrap(), "demo", 10).await.unwrap();
    assert_eq!(replicas.len(), 1);
    assert_eq!((replicas[0].url.as_str(), replicas[0].state, replicas[0].state_at), ("wss://a", [9; 32], 9));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn relays_that_nothing_names_are_forgotten(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let store = &world.store;
    name(store, "demo", &["wss://a"], Duration::ZERO).await;
    let urls = vec!["wss://operator".to_owned()];
    unit!(store, urls, |tx, urls| relays::set_bootstrap(tx, urls).await).await.unwrap();
    world.clock.advance(seconds(10));
    let now = world.clock.now();
    // Neither a repository nor a waiting announcement has these relays.
    unit!(store, now, |tx, now| relays::prune(tx, *now).await).await.unwrap();
    let left = relays::page(&mut store.read().await.unwrap(), "", 10).await.unwrap();
    assert_eq!(left.iter().map(|relay| relay.url.as_str()).collect::<Vec<_>>(), ["wss://operator"]);
}
