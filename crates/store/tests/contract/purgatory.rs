//! Purgatory: an older announcement never replaces a newer one, states are found by their signer, and
//! PR events by the repositories they are for.

use crate::support::{World, unit};
use abide_store::nostr;
use abide_store::nostr::events::NewEvent;
use abide_store::nostr::purgatory::prs as pr_events;
use abide_store::nostr::purgatory::prs::Half;
use abide_store::nostr::purgatory::{self, Bytes32, Entry};
use abide_store::{Store, StoreError};
use abide_testkit::{Engine, TestClock};
use rstest::rstest;
use std::time::Duration;

fn entry(id: u8, pubkey: u8, at: i64, bytes: usize) -> Entry {
    Entry {
        event_id: [id; 32],
        pubkey: [pubkey; 32],
        identifier: "demo".into(),
        event_at: at,
        json: "x".repeat(bytes),
        address: None,
        expires_at: TestClock::START.plus(Duration::from_secs(60)),
    }
}

async fn announce(store: &Store, entry: Entry) -> Result<(), StoreError> {
    unit!(store, entry, |tx, entry| purgatory::put_announcement(tx, entry, None).await).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_older_announcement_does_not_take_the_place_of_a_newer_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, .. } = &World::new(engine).await;
    announce(store, entry(5, 1, 10, 1)).await.unwrap();
    for older in [entry(1, 1, 9, 1), entry(6, 1, 10, 1)] {
        assert!(matches!(announce(store, older).await, Err(StoreError::Unique)));
    }
    // Of one second, the lower id; and the same one again.
    for newer in [entry(4, 1, 10, 1), entry(4, 1, 10, 2), entry(9, 1, 11, 1)] {
        let expected = newer.event_id;
        announce(store, newer).await.unwrap();
        let mut conn = store.read().await.unwrap();
        let waits = purgatory::announcement(&mut conn, &[1; 32], "demo").await.unwrap().unwrap();
        assert_eq!(waits.event_id, expected);
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn states_are_found_by_their_authors_up_to_a_number_of_bytes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, .. } = &World::new(engine).await;
    for (id, author, at) in [(1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 3, 40), (5, 1, 15)] {
        let state = entry(id, author, at, 100);
        unit!(store, state, |tx, state| purgatory::put_state(tx, state).await).await.unwrap();
        let kept = NewEvent {
            id: [id; 32],
            pubkey: [author * 10 + id; 32],
            kind: 30_618,
            created_at: at,
            slot: Some("demo".into()),
            expires_at: None,
            json: "x".repeat(100),
            tags: Vec::new(),
            status_of: None,
        };
        unit!(store, kept, |tx, kept| nostr::events::insert(tx, kept).await).await.unwrap();
    }
    let mut conn = store.read().await.unwrap();
    for (authors, bytes, expected) in [
        (vec![1], 1000, vec![2, 5, 1]),
        (vec![1], 200, vec![2, 5]),
        (vec![1], 99, vec![]),
        (vec![2, 1], 1000, vec![3, 2, 5, 1]),
        (vec![9], 1000, vec![]),
    ] {
        let authors: Vec<_> = authors.into_iter().map(|author| [author; 32]).collect();
        let found = purgatory::states_of(&mut conn, "demo", &authors, 9, bytes).await.unwrap();
        assert_eq!(found.iter().map(|state| state.event_id[0]).collect::<Vec<_>>(), expected);
        assert!(purgatory::states_of(&mut conn, "other", &authors, 9, bytes).await.unwrap().is_empty());
    }
    for (authors, bytes, expected) in
        [(vec![11, 23, 34], 1000, vec![1, 3, 4]), (vec![11, 23, 34], 250, vec![1, 3]), (vec![77], 1000, vec![])]
    {
        let authors: Vec<_> = authors.into_iter().map(|author| [author; 32]).collect();
        let found = nostr::events::of_slot_by(&mut conn, 30_618, "demo", &authors, bytes).await.unwrap();
        assert_eq!(found.iter().map(|event| event.id[0]).collect::<Vec<_>>(), expected);
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn long_announcements_take_no_room_from_short_ones(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let World { store, .. } = &World::new(engine).await;
    for (id, author, bytes) in [(1, 1, 5000), (2, 2, 100), (3, 3, 6000), (4, 4, 120), (5, 5, 110)] {
        announce(store, entry(id, author, 10, bytes)).await.unwrap();
        let kept = NewEvent {
            id: [id; 32],
            pubkey: [author; 32],
            kind: 30_617,
            created_at: 10,
            slot: Some("demo".into()),
            expires_at: None,
            json: "x".repeat(bytes),
            tags: Vec::new(),
            status_of: None,
        };
        unit!(store, kept, |tx, kept| nostr::events::insert(tx, kept).await).await.unwrap();
    }
    let mut conn = store.read().await.unwrap();
    for (limit, bytes, expected) in
        [(9, i64::MAX, vec![1, 2, 3, 4, 5]), (9, 5330, vec![1, 2, 4, 5]), (9, 329, vec![2, 5]), (2, 9000, vec![2, 5])]
    {
        let waiting = purgatory::announcements(&mut conn, "demo", limit, bytes).await.unwrap();
        let mut waiting: Vec<u8> = waiting.iter().map(|entry| entry.event_id[0]).collect();
        waiting.sort_unstable();
        assert_eq!(waiting, expected, "{limit} {bytes}");
        let kept = nostr::events::of_slot(&mut conn, 30_617, "demo", limit, bytes).await.unwrap();
        assert_eq!(kept.iter().map(|event| event.id[0]).collect::<Vec<_>>(), expected, "{limit} {bytes}");
    }
    let by = |authors: &[u8]| authors.iter().map(|author| [*author; 32]).collect::<Vec<_>>();
    let mine = purgatory::announcements_by(&mut conn, "demo", &by(&[1, 5]), i64::MAX).await.unwrap();
    assert_eq!(mine.len(), 2);
    let short = purgatory::announcements_by(&mut conn, "demo", &by(&[1, 5]), 4999).await.unwrap();
    assert!(short.len() <= 1, "none that does not fit is read");
    for (id, at, bytes) in [(7, 30, 500), (8, 20, 100), (9, 10, 100)] {
        unit!(store, entry(id, 1, at, bytes), |tx, state| purgatory::put_state(tx, state).await).await.unwrap();
    }
    for (limit, bytes, expected) in
        [(9, i64::MAX, vec![7, 8, 9]), (9, 600, vec![7, 8]), (1, 600, vec![7]), (9, 99, vec![])]
    {
        let states = purgatory::states(&mut conn, "demo", limit, bytes).await.unwrap();
        assert_eq!(states.iter().map(|state| state.event_id[0]).collect::<Vec<u8>>(), expected, "the newest first");
    }
}

/// A PR event that waits; without an author, it is its commit that waits.
fn half(id: u8, author: Option<u8>) -> Half {
    Half {
        event_id: [id; 32],
        pubkey: author.map(|author| [author; 32]),
        json: author.map(|_| "{}".to_owned()),
        commit: format!("{id:040x}").parse().unwrap(),
        repo_id: None,
        incoming: None,
        bytes: i64::from(id),
        created_at: TestClock::START,
        expires_at: TestClock::START.plus(Duration::from_secs(u64::from(id))),
    }
}

async fn propose(store: &Store, half: Half, repos: &[(u8, &str)]) {
    let repos: Vec<(Bytes32, String)> = repos.iter().map(|(owner, name)| ([*owner; 32], (*name).to_owned())).collect();
    unit!(store, (half, repos), |tx, (half, repos)| pr_events::put(tx, half, repos, None).await).await.unwrap();
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn pr_events_are_found_by_each_repository_they_are_for(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, clock, .. } = &World::new(engine).await;
    let of = async |owner: u8, identifier: &str, limit: i64| {
        let mut conn = store.read().await.unwrap();
        let (found, count) = pr_events::of_repo(&mut conn, &[owner; 32], identifier, limit).await.unwrap();
        (found.iter().map(|one| one.event_id[0]).collect::<Vec<_>>(), count)
    };
    for (id, author, repos) in [
        (9, Some(1), &[(5, "demo"), (6, "demo")][..]),
        (3, None, &[(5, "demo")]),
        (7, Some(2), &[(5, "demo")]),
        (4, Some(2), &[]),
    ] {
        clock.advance(Duration::from_secs(1));
        propose(store, half(id, author), repos).await;
    }
    assert_eq!(of(5, "demo", 10).await, (vec![7, 3, 9], 3), "the latest first");
    assert_eq!(of(5, "demo", 3).await, (vec![7, 3, 9], 3));
    assert_eq!(of(5, "demo", 2).await, (vec![7, 3], 3), "and all are counted");
    assert_eq!(of(6, "demo", 10).await, (vec![9], 1));
    assert_eq!(of(5, "other", 10).await, (vec![], 0));

    let mut conn = store.read().await.unwrap();
    let page = pr_events::page(&mut conn, 10).await.unwrap();
    let reported: Vec<_> = page.iter().map(|one| (one.event_id[0], one.pubkey.is_some(), one.bytes)).collect();
    assert_eq!(reported, [(3, false, 3), (4, true, 4), (7, true, 7), (9, true, 9)], "what ends first; each once");
    let repos: Vec<_> = page.iter().map(|one| one.repo.as_ref().map(|(owner, _)| owner[0])).collect();
    assert_eq!(repos, [Some(5), None, Some(5), Some(5)]);
    drop(conn);

    // The event of a commit that was pushed elsewhere says what it is for.
    propose(store, half(3, Some(2)), &[(6, "demo")]).await;
    assert_eq!(of(5, "demo", 10).await, (vec![7, 9], 2));
    assert_eq!(of(6, "demo", 10).await, (vec![3, 9], 2));
    unit!(store, [9; 32], |tx, id| pr_events::take(tx, id).await).await.unwrap().unwrap();
    assert_eq!(of(5, "demo", 10).await, (vec![7], 1));
    assert_eq!(of(6, "demo", 10).await, (vec![3], 1));
}
