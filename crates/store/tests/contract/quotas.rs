//! Usage of keys is what the tables say, whichever way rows come and go.

use crate::support::{self, Raw, World, unit};
use abide_core::{RepoId, UserId};
use abide_store::nostr::events::NewEvent;
use abide_store::nostr::purgatory::prs::Half;
use abide_store::nostr::purgatory::{self, Entry, prs as pr_events};
use abide_store::nostr::quotas::{self, Today, Usage};
use abide_store::nostr::reservations::{self, Reservation};
use abide_store::nostr::{self};
use abide_store::{Store, StoreError, repos};
use abide_testkit::{Engine, TestClock};
use futures_util::future::join_all;
use rstest::rstest;
use std::time::Duration;

/// The counters beside what they count; empty where they agree.
const WRONG: &str = "SELECT count(*) FROM nostr_keys k WHERE
    k.events <> (SELECT count(*) FROM nostr_events e WHERE e.pubkey = k.pubkey)
    OR k.bytes <> (SELECT COALESCE(sum(octet_length(json) + 64 * (length(json) - length(replace(json, '[\"', '')))), 0)
        FROM nostr_events e WHERE e.pubkey = k.pubkey)
    OR k.waiting <> (SELECT count(*) FROM purgatory_announcements a WHERE a.pubkey = k.pubkey)
        + (SELECT count(*) FROM purgatory_states s WHERE s.pubkey = k.pubkey)
        + (SELECT count(*) FROM purgatory_proposals p WHERE p.pubkey = k.pubkey)
        + (SELECT count(*) FROM purgatory_attached w WHERE w.pubkey = k.pubkey)
    OR k.waiting_bytes <>
        (SELECT COALESCE(sum(octet_length(json)), 0) FROM purgatory_announcements a WHERE a.pubkey = k.pubkey)
        + (SELECT COALESCE(sum(octet_length(json)), 0) FROM purgatory_states s WHERE s.pubkey = k.pubkey)
        + (SELECT COALESCE(sum(octet_length(json)), 0) FROM purgatory_proposals p WHERE p.pubkey = k.pubkey)
        + (SELECT COALESCE(sum(octet_length(json)), 0) FROM purgatory_attached w WHERE w.pubkey = k.pubkey)
    OR k.repos <> (SELECT count(*) FROM nostr_repos r WHERE r.pubkey = k.pubkey)
    OR k.repo_bytes <> (SELECT COALESCE(sum(bytes), 0) FROM nostr_repos r WHERE r.pubkey = k.pubkey)
        + (SELECT COALESCE(sum(bytes), 0) FROM nostr_proposal_bytes p WHERE p.pubkey = k.pubkey)";

async fn assert_right(raw: &mut Raw, what: &str) {
    assert_eq!(raw.number(WRONG).await, 0, "{what}");
}

fn event(id: u8, author: u8, slot: Option<&str>, at: i64, bytes: usize) -> NewEvent {
    NewEvent {
        id: [id; 32],
        pubkey: [author; 32],
        kind: if slot.is_some() { 30_618 } else { 1621 },
        created_at: at,
        slot: slot.map(str::to_owned),
        expires_at: (at == 1).then_some(1),
        // Characters of two bytes: bytes are counted, not characters.
        json: "é".repeat(bytes / 2),
        tags: vec![1, 2],
        status_of: None,
    }
}

/// Small tags take more room in the index than in the event.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn tags_of_an_event_count_beside_its_bytes(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let (store, mut raw) = (&world.store, world.raw().await);
    // A bracket and an escaped quote inside a string are no tag.
    let json = r#"{"content":"[\"a","tags":[["t","x"],["t","y"],["p","é"]]}"#;
    let tagged = NewEvent { json: json.to_owned(), ..event(1, 1, None, 10, 0) };
    keep(store, vec![tagged]).await;
    let bytes = i64::try_from(json.len()).unwrap() + 3 * 128;
    assert_eq!(usage(store, 1).await, Usage { events: 1, bytes, ..Usage::default() });
    assert_right(&mut raw, "stored").await;
    let removed: Result<bool, StoreError> = unit!(store, (), |tx, ()| nostr::events::remove(tx, &[1; 32]).await).await;
    assert!(removed.unwrap());
    assert_eq!(usage(store, 1).await, Usage::default());
}

async fn keep(store: &Store, events: Vec<NewEvent>) {
    let kept: Result<_, StoreError> =
        unit!(store, events, |tx, events| nostr::events::insert_many(tx, events).await).await;
    kept.unwrap();
}

async fn usage(store: &Store, author: u8) -> Usage {
    quotas::of_key(&mut store.read().await.unwrap(), &[author; 32]).await.unwrap()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn events_count_until_they_are_replaced_deleted_or_expire(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let (store, mut raw) = (&world.store, world.raw().await);
    keep(store, vec![event(1, 1, None, 10, 100), event(2, 1, None, 10, 50), event(3, 2, None, 1, 30)]).await;
    keep(store, vec![event(1, 1, None, 10, 100)]).await;
    assert_eq!(usage(store, 1).await, Usage { events: 2, bytes: 150, ..Usage::default() });
    keep(store, vec![event(4, 1, Some("x"), 10, 20)]).await;
    keep(store, vec![event(5, 1, Some("x"), 11, 60), event(6, 1, Some("x"), 9, 80)]).await;
    assert_eq!(usage(store, 1).await, Usage { events: 3, bytes: 210, ..Usage::default() }, "replaced");
    assert_right(&mut raw, "stored").await;

    let removed: Result<bool, StoreError> = unit!(store, (), |tx, ()| nostr::events::remove(tx, &[1; 32]).await).await;
    assert!(removed.unwrap());
    let expired: Result<_, StoreError> = unit!(store, (), |tx, ()| nostr::events::expire(tx, 5, 100).await).await;
    assert_eq!(expired.unwrap().0, 1);
    assert_eq!(usage(store, 1).await, Usage { events: 2, bytes: 110, ..Usage::default() });
    assert_eq!(usage(store, 2).await, Usage::default());
    assert_right(&mut raw, "gone").await;

    let forgotten: Result<(), StoreError> = unit!(store, (), |tx, ()| quotas::forget(tx).await).await;
    forgotten.unwrap();
    assert_eq!(raw.number("SELECT count(*) FROM nostr_keys").await, 1, "keys without anything are forgotten");
    assert_right(&mut raw, "forgotten").await;
}

fn entry(id: u8, author: u8, at: i64, bytes: usize) -> Entry {
    Entry {
        event_id: [id; 32],
        pubkey: [author; 32],
        identifier: "demo".into(),
        event_at: at,
        json: "x".repeat(bytes),
        address: None,
        expires_at: TestClock::START.plus(Duration::from_secs(60)),
    }
}

fn half(id: u8, author: Option<u8>, bytes: usize) -> Half {
    Half {
        event_id: [id; 32],
        pubkey: author.map(|author| [author; 32]),
        json: author.map(|_| "x".repeat(bytes)),
        commit: "c".repeat(40).parse().unwrap(),
        repo_id: None,
        incoming: author.is_none().then(|| format!("aside-{id}")),
        bytes: 7,
        created_at: TestClock::START,
        expires_at: TestClock::START,
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn entries_of_purgatory_count_until_they_leave(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let (store, mut raw) = (&world.store, world.raw().await);
    let put: Result<(), StoreError> = unit!(store, (), |tx, ()| {
        purgatory::put_announcement(tx, &entry(1, 1, 10, 100), None).await?;
        purgatory::put_announcement(tx, &entry(2, 1, 11, 40), None).await?;
        purgatory::put_state(tx, &entry(3, 1, 10, 30)).await?;
        purgatory::put_state(tx, &entry(4, 2, 10, 20)).await?;
        // A commit without its event, then its event.
        pr_events::put(tx, &half(5, None, 0), &[], None).await?;
        pr_events::put(tx, &half(5, Some(2), 60), &[], None).await?;
        pr_events::put(tx, &half(6, None, 0), &[], None).await
    })
    .await;
    put.unwrap();
    assert_eq!(usage(store, 1).await, Usage { events: 2, bytes: 70, ..Usage::default() });
    assert_eq!(usage(store, 2).await, Usage { events: 2, bytes: 80, ..Usage::default() });
    let counts = purgatory::counts(&mut store.read().await.unwrap(), &[1; 32], None).await.unwrap();
    assert_eq!((counts.of_key, counts.bytes), (2, 150));
    assert_right(&mut raw, "put").await;

    world.clock.advance(Duration::from_secs(61));
    let taken: Result<(), StoreError> = unit!(store, (), |tx, ()| {
        let waits = purgatory::announcement(tx, &[1; 32], "demo").await?.unwrap();
        assert!(purgatory::take_announcement(tx, &waits).await?);
        assert_eq!(purgatory::take_states_over(tx).await?.len(), 2);
        pr_events::take(tx, &[5; 32]).await?.unwrap();
        pr_events::take(tx, &[6; 32]).await?.unwrap();
        Ok(())
    })
    .await;
    taken.unwrap();
    assert_eq!((usage(store, 1).await, usage(store, 2).await), (Usage::default(), Usage::default()));
    assert_right(&mut raw, "taken").await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn repositories_and_git_data_count_until_they_are_gone(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let (store, mut raw) = (&world.store, world.raw().await);
    let owner: UserId = support::user(store, "ann").await;
    let repo: RepoId = support::repo(store, owner, "tool").await;
    keep(store, vec![event(1, 2, None, 10, 10)]).await;
    let charged: Result<(), StoreError> = unit!(store, repo, |tx, repo| {
        nostr::repos::insert(tx, *repo, &[1; 32], "tool").await?;
        quotas::charge_repo(tx, *repo, 1_000).await?;
        quotas::charge_repo(tx, *repo, 500).await?;
        quotas::charge_pr_event(tx, &[1; 32], 30).await?;
        quotas::charge_pr_event(tx, &[1; 32], 12).await?;
        // Nobody is charged for an event that is not stored.
        quotas::charge_pr_event(tx, &[9; 32], 12).await
    })
    .await;
    charged.unwrap();
    assert_eq!(usage(store, 1).await, Usage { repos: 1, repo_bytes: 1_500, ..Usage::default() });
    assert_eq!(usage(store, 2).await, Usage { events: 1, bytes: 10, repo_bytes: 42, ..Usage::default() });
    let shrunk: Result<(), StoreError> = unit!(store, repo, |tx, repo| {
        quotas::shrink_repo(tx, *repo, 2_000).await?;
        quotas::shrink_repo(tx, *repo, 400).await
    })
    .await;
    shrunk.unwrap();
    assert_eq!(usage(store, 1).await.repo_bytes, 400);
    assert_right(&mut raw, "charged").await;
    let gone: Result<(), StoreError> = unit!(store, repo, |tx, repo| {
        repos::remove(tx, *repo).await?;
        nostr::events::remove(tx, &[1; 32]).await.map(drop)
    })
    .await;
    gone.unwrap();
    assert_eq!((usage(store, 1).await, usage(store, 2).await), (Usage::default(), Usage::default()));
    assert_right(&mut raw, "gone").await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn writers_of_the_same_keys_count_exactly_and_end(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let other = world.another_store().await;
    let mut raw = world.raw().await;
    let batch = |number: u8| -> Vec<NewEvent> {
        (0..10).map(|n| event(number * 10 + n, (n + number) % 3, (n % 2 == 0).then_some("x"), 100, 10)).collect()
    };
    let write = async |store: &Store, number: u8| {
        let written: Result<(), StoreError> = unit!(store, batch(number), |tx, events| {
            let keys: Vec<[u8; 32]> = events.iter().map(|event| event.pubkey).collect();
            quotas::lock(tx, &keys).await?;
            let networks = vec!["10.0.0.1".to_owned(), "10.0.0.2".to_owned()];
            quotas::lock_addresses(tx, &networks).await?;
            nostr::events::insert_many(tx, events).await?;
            quotas::add_addresses(tx, networks.into_iter().map(|network| (network, 5)).collect()).await
        })
        .await;
        written.unwrap();
    };
    join_all((0..20).map(|number| write(if number % 2 == 0 { &world.store } else { &other }, number))).await;
    assert_right(&mut raw, "written by many").await;
    assert_eq!(raw.texts("SELECT CAST(bytes AS TEXT) FROM nostr_addresses ORDER BY address").await, ["100", "100"]);
    let now = abide_core::Clock::now(&world.clock);
    let mut conn = world.store.read().await.unwrap();
    assert_eq!(
        quotas::address_today(&mut conn, "10.0.0.1", now).await.unwrap(),
        Today { bytes: 100, ..Today::default() }
    );
    let tomorrow = now.plus(Duration::from_secs(86_400));
    assert_eq!(quotas::address_today(&mut conn, "10.0.0.1", tomorrow).await.unwrap(), Today::default());
}

/// The caller holds the lock until the reservation is written, so the next caller sees it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn reservations_at_once_share_one_room(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let other = world.another_store().await;
    let reserve = async |store: &Store, number: i64| -> bool {
        let taken: Result<bool, StoreError> = unit!(store, number, |tx, number| {
            reservations::lock(tx).await?;
            let now = tx.now();
            let reserved = reservations::sums(tx, Some(&[1; 32]), Some("10.0.0.1"), "", now).await?;
            assert_eq!((reserved.of_key, reserved.of_key), (reserved.of_address, reserved.total));
            if reserved.of_key + 40 > 100 {
                return Ok(false);
            }
            let reservation = Reservation {
                id: format!("push-{number}"),
                pubkey: Some([1; 32]),
                address: Some("10.0.0.1".into()),
                bytes: 40,
                holder: "node:1".into(),
                expires_at: now.plus(Duration::from_secs(60)),
            };
            reservations::put(tx, &reservation).await?;
            Ok(true)
        })
        .await;
        taken.unwrap()
    };
    let taken =
        join_all((0..8).map(|number| reserve(if number % 2 == 0 { &world.store } else { &other }, number))).await;
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 2);

    let sums = async || {
        let mut conn = world.store.read().await.unwrap();
        let now = abide_core::Clock::now(&world.clock);
        reservations::sums(&mut conn, Some(&[1; 32]), None, "", now).await.unwrap().of_key
    };
    assert_eq!(sums().await, 80);
    let first = format!("push-{}", taken.iter().position(|taken| *taken).unwrap());
    let spent: Result<(), StoreError> =
        unit!(&world.store, first.clone(), |tx, id| reservations::spend(tx, id, 15).await).await;
    spent.unwrap();
    assert_eq!(sums().await, 65);
    let spent: Result<(), StoreError> =
        unit!(&world.store, first, |tx, id| reservations::spend(tx, id, 25).await).await;
    spent.unwrap();
    assert_eq!(sums().await, 40);
    world.clock.advance(Duration::from_secs(61));
    assert_eq!(sums().await, 0, "one that nobody ends expires");
    let mut raw = world.raw().await;
    assert_eq!(raw.number("SELECT count(*) FROM quota_reservations").await, 1);
    let forgotten: Result<u64, StoreError> = unit!(&world.store, (), |tx, ()| {
        assert_eq!(reservations::expire_of(tx, "other:", "node:2").await?, 0);
        reservations::expire_of(tx, "node:", "node:2").await
    })
    .await;
    assert_eq!(forgotten.unwrap(), 1, "and goes with the next start of its node");
}
