//! What waits: an older announcement never takes the place of a newer one, and states are found by who signed them.

use crate::support::{World, unit};
use abide_store::nostr_events::{self, NewEvent};
use abide_store::purgatory::{self, Entry};
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
        };
        unit!(store, kept, |tx, kept| nostr_events::insert(tx, kept).await).await.unwrap();
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
        let found = purgatory::states_of(&mut conn, "demo", &authors, bytes).await.unwrap();
        assert_eq!(found.iter().map(|state| state.event_id[0]).collect::<Vec<_>>(), expected);
        assert!(purgatory::states_of(&mut conn, "other", &authors, bytes).await.unwrap().is_empty());
    }
    for (authors, bytes, expected) in
        [(vec![11, 23, 34], 1000, vec![1, 3, 4]), (vec![11, 23, 34], 250, vec![1, 3]), (vec![77], 1000, vec![])]
    {
        let authors: Vec<_> = authors.into_iter().map(|author| [author; 32]).collect();
        let found = nostr_events::of_slot_by(&mut conn, 30_618, "demo", &authors, bytes).await.unwrap();
        assert_eq!(found.iter().map(|event| event.id[0]).collect::<Vec<_>>(), expected);
    }
}
