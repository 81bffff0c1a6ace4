//! Consumers of the log: nothing is lost, nothing is taken in twice, and one bad event stops nobody.

use crate::rig::{Rig, node, rig_with};
use abide_core::event::{Body, Kind, Publicity, RepoThen, SubjectKind};
use abide_forge::By;
use abide_forge::consumers::manage::{self, Settle, SettleError};
use abide_forge::consumers::{Consumer, Shared, catch_up_with, register};
use abide_forge::{Fault, Forge, jobs as work};
use abide_store::events::{self, NewEvent, Numbered};
use abide_store::{StoreError, Tx, jobs, sequencer};
use abide_testkit::{Engine, sample_payload};
use futures_util::future::BoxFuture;
use rstest::rstest;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Leaves one row per event, and stumbles over some.
#[derive(Default)]
struct Scribe {
    mended: AtomicBool,
}

const EFFECT: &str = "test:effect";

/// A kind that the consumer wants, two that it fails on, and one that it does not want.
const WANTED: Kind = Kind::Star;
const BADLY: Kind = Kind::Unstar;
const PANIC: Kind = Kind::RepoEdited;
const OTHER: Kind = Kind::RepoCreated;

impl Consumer for Scribe {
    fn name(&self) -> &'static str {
        "scribe"
    }

    fn wants(&self, kind: Kind) -> bool {
        [WANTED, BADLY, PANIC].contains(&kind)
    }

    fn apply<'a>(&'a self, tx: &'a mut Tx, _: &'a Forge, event: &'a Numbered) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(async move {
            let effect = jobs::NewJob {
                kind: EFFECT,
                payload: json!({ "source": event.subject_id }),
                unique_key: None,
                priority: 0,
                run_at: tx.now().plus(Duration::from_secs(1_000_000)),
                max_attempts: 1,
            };
            jobs::enqueue(tx, &effect).await?;
            if !self.mended.load(Ordering::Relaxed) {
                match event.known_kind() {
                    Some(BADLY) => return Err(Fault::Internal("this event is poison".into())),
                    Some(PANIC) => panic!("this event makes us panic"),
                    _ => {}
                }
            }
            Ok(())
        })
    }
}

async fn world(engine: Engine) -> (Rig, Shared, Arc<Scribe>) {
    let rig = rig_with(engine, |settings| settings.attention.event_tries = 3).await;
    let scribe = Arc::new(Scribe::default());
    register(&rig.forge, &[scribe.clone() as Shared]).await.expect("it is made known");
    (rig, scribe.clone(), scribe)
}

/// Something happens: `kind`, about thing number `subject`.
async fn happen(rig: &Rig, kind: Kind, subject: i64) {
    let event = NewEvent {
        actor: None,
        repo: None,
        subject_kind: SubjectKind::Repo,
        subject_id: subject,
        publicity: Publicity::Public,
        body: Body { repo: RepoThen::default(), payload: sample_payload(kind) },
    };
    let written: Result<(), StoreError> =
        rig.store.write(event, |tx, event| Box::pin(async move { events::append(tx, event).await })).await;
    written.expect("written");
}

/// How many effects each thing has had.
async fn effects(rig: &Rig) -> BTreeMap<i64, usize> {
    let mut seen = BTreeMap::new();
    for job in work::manage::list(&rig.forge, &By::Operator, None, 10_000).await.expect("readable") {
        if job.kind == EFFECT {
            let payload: serde_json::Value = serde_json::from_str(&job.payload).expect("JSON");
            *seen.entry(payload["source"].as_i64().expect("a number")).or_default() += 1;
        }
    }
    seen
}

fn once_each(sources: impl IntoIterator<Item = i64>) -> BTreeMap<i64, usize> {
    sources.into_iter().map(|source| (source, 1)).collect()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn events_are_taken_in_once_from_the_moment_a_consumer_is_known(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = rig_with(engine, |_| {}).await;
    happen(&rig, WANTED, -1).await;
    sequencer_runs(&rig).await;
    let scribe = [Arc::new(Scribe::default()) as Shared];
    register(&rig.forge, &scribe).await.expect("it is made known");
    for source in 1..=120 {
        happen(&rig, if source % 3 == 0 { OTHER } else { WANTED }, source).await;
    }
    catch_up_with(&rig.forge, &scribe).await.expect("it reads");
    register(&rig.forge, &scribe).await.expect("to be made known again changes nothing");
    catch_up_with(&rig.forge, &scribe).await.expect("it reads");
    assert_eq!(effects(&rig).await, once_each((1..=120).filter(|source| source % 3 != 0)));
    let status = manage::status(&rig.forge, &By::Operator).await.expect("readable");
    let (lag, cursor): (Vec<_>, Vec<_>) = status.iter().map(|it| (it.lag(), it.cursor)).unzip();
    assert_eq!((lag, cursor), (vec![0], vec![121]));
}

async fn sequencer_runs(rig: &Rig) {
    abide_forge::sequencer::catch_up(&rig.forge).await.expect("it numbers");
    let mut conn = rig.store.read().await.expect("readable");
    assert!(!sequencer::anything_waits(&mut conn).await.expect("readable"));
}

#[rstest]
#[case::error(BADLY)]
#[case::panic(PANIC)]
#[tokio::test(flavor = "multi_thread")]
async fn a_poisoned_event_is_set_aside_and_the_log_goes_on(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] kind: Kind,
) {
    let (rig, shared, scribe) = world(engine).await;
    let consumers = [shared];
    for source in 1..=4 {
        happen(&rig, WANTED, source).await;
    }
    happen(&rig, kind, 5).await;
    for source in 6..=9 {
        happen(&rig, WANTED, source).await;
    }

    catch_up_with(&rig.forge, &consumers).await.expect("it reads");
    assert_eq!(effects(&rig).await, once_each(1..=4), "what comes before is taken in, the rest waits");
    let stuck = &manage::status(&rig.forge, &By::Operator).await.expect("readable")[0];
    assert_eq!((stuck.tries, stuck.lag(), stuck.failures), (1, 5, 0));
    assert!(stuck.last_error.is_some());

    // It is not tried before its time, and then twice more.
    catch_up_with(&rig.forge, &consumers).await.expect("it reads");
    assert_eq!(manage::status(&rig.forge, &By::Operator).await.expect("readable")[0].tries, 1);
    for _ in 0..2 {
        rig.clock.advance(Duration::from_secs(60));
        catch_up_with(&rig.forge, &consumers).await.expect("it reads");
    }
    assert_eq!(effects(&rig).await, once_each((1..=9).filter(|source| *source != 5)));
    let failures = manage::failures(&rig.forge, &By::Operator, i64::MAX, 10).await.expect("readable");
    assert_eq!(failures.len(), 1);
    assert_eq!((failures[0].seq, failures[0].tries, failures[0].kind.as_str()), (5, 3, kind.as_str()));
    assert_eq!(manage::status(&rig.forge, &By::Operator).await.expect("readable")[0].failures, 1);

    // The log is not pruned of what is set aside.
    rig.clock.advance(Duration::from_secs(500 * 86_400));
    work::manage::run_now(&rig.forge, &By::Operator, work::Kind::HistoryPrune, json!(null)).await.expect("it runs");
    let kept = events::after(&mut rig.store.read().await.expect("readable"), 0, 100).await.expect("readable");
    assert_eq!(kept.iter().map(|event| event.seq).collect::<Vec<_>>(), [5]);

    // Once whatever was wrong is mended, the operator has it taken in after all.
    let unknown = manage::settle(&rig.forge, &By::Operator, &consumers, ("nobody", 5), Settle::Retry).await;
    assert!(matches!(unknown, Err(SettleError::NoConsumer(_))), "{unknown:?}");
    if kind == BADLY {
        let again = manage::settle(&rig.forge, &By::Operator, &consumers, ("scribe", 5), Settle::Retry).await;
        assert!(matches!(again, Err(SettleError::Again(_))), "{again:?}");
    }
    scribe.mended.store(true, Ordering::Relaxed);
    manage::settle(&rig.forge, &By::Operator, &consumers, ("scribe", 5), Settle::Retry).await.expect("it is taken in");
    assert_eq!(effects(&rig).await, once_each(1..=9));
    let twice = manage::settle(&rig.forge, &By::Operator, &consumers, ("scribe", 5), Settle::Drop).await;
    assert!(matches!(twice, Err(SettleError::NotSetAside { .. })), "{twice:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_kept_for_the_slowest_consumer(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (rig, shared, _) = world(engine).await;
    for source in 1..=3 {
        happen(&rig, WANTED, source).await;
    }
    sequencer_runs(&rig).await;
    rig.clock.advance(Duration::from_secs(500 * 86_400));
    let left = async || {
        work::manage::run_now(&rig.forge, &By::Operator, work::Kind::HistoryPrune, json!(null)).await.expect("it runs");
        events::after(&mut rig.store.read().await.expect("readable"), 0, 100).await.expect("readable").len()
    };
    assert_eq!(left().await, 3, "nobody has read them");
    catch_up_with(&rig.forge, &[shared]).await.expect("it reads");
    assert_eq!(left().await, 0);
}

/// Two nodes read for the same consumer: the lease lets one at a time, and whoever comes second finds nothing to do twice.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_take_in_each_event_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (rig, shared, _) = world(engine).await;
    let (second, _store) = node(&rig.database, &rig.clock, "second").await;
    for round in 0..10 {
        for source in 1..=20 {
            happen(&rig, WANTED, round * 20 + source).await;
        }
        let here = [shared.clone()];
        let (one, other) = tokio::join!(catch_up_with(&rig.forge, &here), catch_up_with(&second, &here));
        one.and(other).expect("both read");
    }
    // A process that found the lease taken left the rest to the other, which may have been done by then.
    catch_up_with(&rig.forge, std::slice::from_ref(&shared)).await.expect("it reads");
    assert_eq!(effects(&rig).await, once_each(1..=200));
}
