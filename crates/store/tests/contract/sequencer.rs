//! Events get their place after they were committed, so that a reader who goes by it passes none.

use crate::leases::{release, take};
use crate::support::{World, eventually, joined, stored_json, unit};
use abide_core::audit::Action;
use abide_core::event::{Body, Kind, Payload, Publicity, RepoCreated, RepoThen, SubjectKind};
use abide_store::leases::Lease;
use abide_store::sequencer::{self, Step};
use abide_store::{Store, StoreError, audit, events};
use abide_testkit::{Engine, sample_payload};
use rstest::rstest;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub const KEY: &[u8] = b"a key that only the server has";
const LONG: Duration = Duration::from_secs(600);

/// Writes events and audit rows in a unit of their own.
pub async fn happen(store: &Store, count: i64) {
    unit!(store, count, |tx, &count| {
        for index in 0..count {
            let event = events::NewEvent {
                actor: None,
                repo: None,
                subject_kind: SubjectKind::Repo,
                subject_id: index,
                publicity: Publicity::Public,
                body: Body { repo: RepoThen::default(), payload: sample_payload(Kind::RepoRenamed) },
            };
            events::append(tx, &event).await?;
            let ip = Some("192.0.2.1".to_owned());
            let meta = json!({ "index": index });
            let entry = audit::Entry { actor: None, action: Action::RepoRenamed, repo: None, ip, meta };
            audit::append(tx, &entry).await?;
        }
        Ok::<_, StoreError>(())
    })
    .await
    .unwrap();
}

pub async fn step(store: &Store, lease: &Lease, limit: i64) -> Result<Step, StoreError> {
    unit!(store, (lease.clone(), limit), |tx, (lease, limit)| sequencer::step(tx, lease, KEY, *limit).await).await
}

/// Takes the sequencer's lease.
pub async fn lead(store: &Store) -> Lease {
    take(store, sequencer::LEASE, LONG).await.expect("nobody else leads")
}

/// `(seq, id)` of every event behind a cursor.
async fn after(store: &Store, seq: i64) -> Vec<(i64, i64)> {
    let mut conn = store.read().await.unwrap();
    let events = events::after(&mut conn, seq, 10_000).await.unwrap();
    events.iter().map(|event| (event.seq, event.id)).collect()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn events_get_places_without_gaps_in_the_order_of_their_ids(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let lease = lead(&world.store).await;
    happen(&world.store, 7).await;
    assert!(after(&world.store, 0).await.is_empty(), "no place, not there");
    assert!(sequencer::anything_waits(&mut world.store.read().await.unwrap()).await.unwrap());

    assert_eq!(step(&world.store, &lease, 3).await.unwrap(), Step { events: 3, audit: 3 });
    happen(&world.store, 3).await;
    assert_eq!(step(&world.store, &lease, 100).await.unwrap(), Step { events: 7, audit: 7 });
    assert_eq!(step(&world.store, &lease, 100).await.unwrap(), Step { events: 0, audit: 0 });

    let events = after(&world.store, 0).await;
    assert_eq!(events.iter().map(|event| event.0).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    assert!(events.is_sorted_by_key(|event| event.1));
    assert_eq!(after(&world.store, 8).await.len(), 2);
    let mut conn = world.store.read().await.unwrap();
    assert_eq!(sequencer::head(&mut conn, "events").await.unwrap().0, 10);
    assert_eq!(sequencer::head(&mut conn, "audit").await.unwrap().0, 10);
    assert_eq!(events::count_unnumbered(&mut conn).await.unwrap(), 0);
    assert!(!sequencer::anything_waits(&mut conn).await.unwrap());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_event_reads_back_as_it_was_written(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let actor = crate::support::user(&world.store, "alice").await;
    let repo = crate::support::repo(&world.store, actor, "tool").await;
    let then = RepoThen { repo_id: Some(repo), slug: Some("alice/tool".into()), owner_id: Some(actor) };
    let created = RepoCreated { default_branch: "ü \" \\ \n".into() };
    let body = Body { repo: then, payload: Payload::RepoCreated(created) };
    unit!(world.store, body.clone(), |tx, body| {
        let event = events::NewEvent {
            actor: Some(actor),
            repo: Some(repo),
            subject_kind: SubjectKind::Repo,
            subject_id: repo.get(),
            publicity: Publicity::Private,
            body: body.clone(),
        };
        events::append(tx, &event).await
    })
    .await
    .unwrap();
    step(&world.store, &lead(&world.store).await, 10).await.unwrap();

    let mut conn = world.store.read().await.unwrap();
    let read = events::after(&mut conn, 0, 10).await.unwrap().remove(0);

    assert_eq!((read.actor, read.repo, read.public), (Some(actor), Some(repo), false));
    assert_eq!((read.kind.as_str(), read.created_at), ("repo_created", abide_testkit::TestClock::START));
    assert_eq!((read.subject_kind, read.subject_id), (Some(SubjectKind::Repo), repo.get()));
    assert_eq!(stored_json(&mut conn, read.seq).await, body.to_json().to_string());
    assert_eq!(read.body().unwrap(), body);
}

/// Ids are handed out before the commit, so a small one can appear late.
#[tokio::test(flavor = "multi_thread")]
async fn an_early_id_that_commits_late_gets_a_later_place() {
    let world = World::new(Engine::Postgres).await;
    let lease = lead(&world.store).await;
    let mut slow = world.raw().await;
    slow.execute("BEGIN").await;
    slow.execute(
        "INSERT INTO domain_events (kind, source_kind, source_id, public, payload, created_at)
         VALUES ('repo.slow', 'repo', 1, TRUE, '{}', 0)",
    )
    .await;
    happen(&world.store, 4).await;

    // The open transaction stalls nobody.
    assert_eq!(step(&world.store, &lease, 100).await.unwrap().events, 4);
    let mut seen = after(&world.store, 0).await;
    assert_eq!(seen.len(), 4);
    let cursor = seen[3].0;

    slow.execute("COMMIT").await;
    happen(&world.store, 2).await;
    assert_eq!(step(&world.store, &lease, 100).await.unwrap().events, 3);
    seen.extend(after(&world.store, cursor).await);

    assert_eq!(seen.iter().map(|event| event.0).collect::<Vec<_>>(), (1..=7).collect::<Vec<_>>());
    let mut ids: Vec<i64> = seen.iter().map(|event| event.1).collect();
    assert!(ids[4] < ids[0], "the slow one has the smallest id and came fifth");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 7, "each exactly once");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_sequencer_that_lost_its_lease_numbers_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let first = lead(&world.store).await;
    happen(&world.store, 4).await;
    step(&world.store, &first, 2).await.unwrap();
    release(&world.store, &first).await;
    let second = lead(&world.store).await;

    assert!(matches!(step(&world.store, &first, 100).await, Err(StoreError::LeaseLost(_))));
    assert_eq!(step(&world.store, &second, 100).await.unwrap(), Step { events: 2, audit: 2 });
    assert!(matches!(step(&world.store, &first, 100).await, Err(StoreError::LeaseLost(_))));
    assert_eq!(after(&world.store, 0).await.len(), 4);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn sequencers_that_take_the_lease_from_each_other_give_no_place_twice(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const EVENTS: i64 = 120;
    let world = World::with(engine, |options| options.connections = 12).await;
    let done = Arc::new(AtomicBool::new(false));
    let sequencers: Vec<_> = (0..3)
        .map(|_| {
            let (store, clock, done) = (world.store.clone(), world.clock.clone(), done.clone());
            tokio::spawn(async move {
                while !done.load(Ordering::SeqCst) {
                    let ttl = Duration::from_millis(3);
                    let Some(lease) = take(&store, sequencer::LEASE, ttl).await else {
                        clock.advance(Duration::from_millis(1));
                        tokio::task::yield_now().await;
                        continue;
                    };
                    while let Ok(_numbered) = step(&store, &lease, 5).await {
                        clock.advance(Duration::from_millis(1));
                    }
                }
            })
        })
        .collect();

    let writers: Vec<_> = (0..4)
        .map(|_| {
            let store = world.store.clone();
            tokio::spawn(async move {
                for _ in 0..EVENTS / 4 {
                    happen(&store, 1).await;
                }
            })
        })
        .collect();
    for writer in writers {
        joined(writer).await;
    }
    eventually(async || after(&world.store, 0).await.len() == EVENTS as usize).await;
    eventually(async || chain(&world.store).await.sealed == EVENTS).await;
    done.store(true, Ordering::SeqCst);
    for sequencer in sequencers {
        joined(sequencer).await;
    }

    let positions: Vec<i64> = after(&world.store, 0).await.iter().map(|event| event.0).collect();
    assert_eq!(positions, (1..=EVENTS).collect::<Vec<_>>());
    let report = chain(&world.store).await;
    assert_eq!((report.sealed, report.unsealed, report.broken_at), (EVENTS, 0, None));
}

async fn chain(store: &Store) -> audit::ChainReport {
    audit::verify(&mut store.read().await.unwrap(), KEY).await.unwrap()
}

/// Deleting a repository touches its events while they are being numbered.
#[tokio::test(flavor = "multi_thread")]
async fn numbering_waits_for_a_change_of_the_same_rows_and_skips_none() {
    let world = World::new(Engine::Postgres).await;
    let lease = lead(&world.store).await;
    happen(&world.store, 5).await;
    let mut other = world.raw().await;
    other.execute("BEGIN").await;
    other.execute("UPDATE domain_events SET repo_id = NULL WHERE id = 3").await;

    let store = world.store.clone();
    let numbering = tokio::spawn(async move { step(&store, &lease, 100).await });
    let mut raw = world.raw().await;
    eventually(async || raw.number("SELECT count(*) FROM pg_locks WHERE NOT granted").await > 0).await;
    other.execute("COMMIT").await;

    assert_eq!(joined(numbering).await.unwrap().events, 5);
    assert_eq!(after(&world.store, 0).await, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]);
}
