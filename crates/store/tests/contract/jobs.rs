//! A job is queued with what wants it, run by one runner at a time, and not lost with it.

use crate::support::{World, joined, unit};
use crate::units::Refusal;
use abide_core::Timestamp;
use abide_store::jobs::{self, Job, NewJob};
use abide_store::{Store, StoreError};
use abide_testkit::{Engine, TestClock};
use rstest::rstest;
use serde_json::json;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_millis(40);

/// A job that is due.
pub fn job(kind: &'static str) -> NewJob {
    NewJob {
        kind,
        payload: json!({ "for": kind }),
        unique_key: None,
        priority: 10,
        run_at: TestClock::START,
        max_attempts: 3,
    }
}

async fn enqueue(store: &Store, new: NewJob) -> Option<i64> {
    unit!(store, new, |tx, new| jobs::enqueue(tx, new).await).await.unwrap()
}

async fn claim(store: &Store, ttl: Duration) -> Option<Job> {
    unit!(store, ttl, |tx, &ttl| jobs::claim(tx, "runner", ttl).await).await.unwrap()
}

async fn finish(store: &Store, job: &Job) -> bool {
    unit!(store, job.clone(), |tx, job| jobs::finish(tx, job).await).await.unwrap()
}

async fn fail(store: &Store, job: &Job, retry_at: Option<Timestamp>) -> bool {
    unit!(store, (job.clone(), retry_at), |tx, (job, retry_at)| jobs::fail(tx, job, "it broke", *retry_at).await)
        .await
        .unwrap()
}

async fn reap(store: &Store) -> u64 {
    unit!(store, (), |tx, _| jobs::reap(tx).await).await.unwrap()
}

async fn again(store: &Store, id: i64) -> Result<bool, StoreError> {
    unit!(store, id, |tx, &id| jobs::again(tx, id).await).await
}

async fn by_id(store: &Store, id: i64) -> Job {
    jobs::by_id(&mut store.read().await.unwrap(), id).await.unwrap().unwrap()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_job_reads_back_as_it_was_queued(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let id = enqueue(&world.store, job("greet")).await.unwrap();
    let read = by_id(&world.store, id).await;
    assert_eq!(
        (read.kind.as_str(), read.payload.as_str(), read.state.as_str()),
        ("greet", r#"{"for":"greet"}"#, "waiting")
    );
    assert_eq!((read.attempts, read.max_attempts, read.holder, read.last_error), (0, 3, None, None));

    let claimed = claim(&world.store, LONG).await.unwrap();
    assert_eq!((claimed.id, claimed.state.as_str(), claimed.attempts), (id, "running", 1));
    assert_eq!(claimed.holder.as_deref(), Some("runner"));
    assert!(finish(&world.store, &claimed).await);
    let done = by_id(&world.store, id).await;
    assert_eq!((done.state.as_str(), done.finished_at, done.holder), ("done", Some(TestClock::START), None));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_a_unit_that_failed_was_never_queued(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let refused = unit!(world.store, (), |tx, _| {
        jobs::enqueue(tx, &job("greet")).await?;
        Err::<(), _>(Refusal::NotToday)
    });
    refused.await.unwrap_err();
    assert!(claim(&world.store, LONG).await.is_none());
    assert!(jobs::counts(&mut world.store.read().await.unwrap()).await.unwrap().is_empty());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn at_most_one_job_of_a_key_waits_or_runs(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let keyed = || NewJob { unique_key: Some("gc:1".into()), ..job("gc") };
    assert!(enqueue(&world.store, keyed()).await.is_some());
    assert_eq!(enqueue(&world.store, keyed()).await, None, "one waits");
    assert!(enqueue(&world.store, NewJob { unique_key: Some("gc:2".into()), ..job("gc") }).await.is_some());

    let running = claim(&world.store, LONG).await.unwrap();
    assert_eq!(enqueue(&world.store, keyed()).await, None, "one runs");

    finish(&world.store, &running).await;
    assert!(enqueue(&world.store, keyed()).await.is_some(), "it has ended");
    assert!(!again(&world.store, running.id).await.unwrap(), "and cannot be one more");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_eight_that_queue_the_same_key_one_does(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = world.store.clone();
            tokio::spawn(async move { enqueue(&store, NewJob { unique_key: Some("gc:1".into()), ..job("gc") }).await })
        })
        .collect();
    let mut queued = Vec::new();
    for task in tasks {
        queued.extend(joined(task).await);
    }
    assert_eq!(queued.len(), 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_urgent_come_first_then_those_that_wait_longest(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let at = |seconds: u64| TestClock::START.minus(Duration::from_secs(seconds));
    for (kind, priority, run_at) in [
        ("fourth", 20, at(90)),
        ("third", 10, at(1)),
        ("first", 1, at(0)),
        ("second", 10, at(60)),
        ("fifth", 20, at(90)),
    ] {
        enqueue(&world.store, NewJob { priority, run_at, ..job(kind) }).await.unwrap();
    }
    let mut order = Vec::new();
    while let Some(job) = claim(&world.store, LONG).await {
        order.push(job.kind);
    }
    assert_eq!(order, ["first", "second", "third", "fourth", "fifth"]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_before_its_time(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let hour = Duration::from_secs(3600);
    enqueue(&world.store, NewJob { priority: 1, run_at: TestClock::START.plus(hour), ..job("later") }).await;
    enqueue(&world.store, job("now")).await;

    assert_eq!(claim(&world.store, LONG).await.unwrap().kind, "now");
    assert!(claim(&world.store, LONG).await.is_none());
    world.clock.advance(hour);
    assert_eq!(claim(&world.store, LONG).await.unwrap().kind, "later");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn eight_runners_get_each_job_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::with(engine, |options| options.connections = 8).await;
    for _ in 0..80 {
        enqueue(&world.store, job("greet")).await;
    }
    let runners: Vec<_> = (0..8)
        .map(|_| {
            let store = world.store.clone();
            tokio::spawn(async move {
                let mut mine = Vec::new();
                while let Some(job) = claim(&store, LONG).await {
                    mine.push((job.id, job.token));
                }
                mine
            })
        })
        .collect();
    let mut begun = Vec::new();
    for runner in runners {
        begun.extend(joined(runner).await);
    }
    begun.sort_unstable();
    assert_eq!(begun.len(), 80);
    assert!(begun.windows(2).all(|pair| pair[0].0 != pair[1].0), "one ran twice");
    assert!(begun.iter().all(|&(_, token)| token == 1));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_job_of_a_runner_that_is_gone_runs_again_and_its_old_runner_is_refused(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    enqueue(&world.store, job("greet")).await;
    let stale = claim(&world.store, SHORT).await.unwrap();
    assert_eq!(reap(&world.store).await, 0, "its time is not over");
    world.pass(SHORT).await;

    assert_eq!(reap(&world.store).await, 1);
    let between = by_id(&world.store, stale.id).await;
    assert_eq!((between.state.as_str(), between.holder), ("waiting", None));
    assert!(!finish(&world.store, &stale).await, "it waits");
    let fresh = claim(&world.store, LONG).await.unwrap();

    assert_eq!((fresh.id, fresh.attempts), (stale.id, 1), "a runner that is gone used up no try");
    assert!(fresh.token > stale.token);
    assert!(!finish(&world.store, &stale).await);
    assert!(!fail(&world.store, &stale, None).await);
    let renewed = unit!(world.store, stale.clone(), |tx, stale| jobs::renew(tx, stale, LONG).await);
    assert!(!renewed.await.unwrap());
    unit!(world.store, stale, |tx, stale| jobs::hand_back(tx, stale).await).await.unwrap();
    assert_eq!(by_id(&world.store, fresh.id).await.state, "running");
    assert!(finish(&world.store, &fresh).await);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_jobs_of_processes_that_are_gone_can_be_freed_by_their_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let mut begun = Vec::new();
    for holder in ["node-a/1", "node-a/2", "node-b/1"] {
        enqueue(&world.store, job("greet")).await;
        begun.push(
            unit!(world.store, holder, |tx, &holder| jobs::claim(tx, holder, LONG).await).await.unwrap().unwrap(),
        );
    }

    let freed = unit!(world.store, (), |tx, _| jobs::expire_of(tx, "node-a/", "node-a/2").await);

    assert_eq!(freed.await.unwrap(), 1);
    assert_eq!(reap(&world.store).await, 1);
    assert!(!finish(&world.store, &begun[0]).await);
    assert!(finish(&world.store, &begun[1]).await);
    assert!(finish(&world.store, &begun[2]).await);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_look_tells_whether_a_runner_would_find_anything(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let look = async || {
        let now = abide_core::Clock::now(&world.clock);
        jobs::anything_to_do(&mut world.store.read().await.unwrap(), now).await.unwrap()
    };
    assert!(!look().await);
    enqueue(&world.store, NewJob { run_at: TestClock::START.plus(SHORT), ..job("greet") }).await;
    assert!(!look().await, "not due");
    world.clock.advance(SHORT);
    assert!(look().await, "due");
    let running = claim(&world.store, LONG).await.unwrap();
    assert!(!look().await, "running");
    assert!(finish(&world.store, &running).await);
    enqueue(&world.store, job("greet")).await;
    let running = claim(&world.store, SHORT).await.unwrap();
    world.pass(SHORT).await;
    assert!(look().await, "its runner is past its time");
    reap(&world.store).await;
    assert!(!finish(&world.store, &running).await);
    let again = claim(&world.store, LONG).await.unwrap();
    finish(&world.store, &again).await;
    assert!(!look().await, "done");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_job_is_not_taken_away(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    enqueue(&world.store, job("greet")).await;
    let running = claim(&world.store, SHORT).await.unwrap();
    assert!(unit!(world.store, running.clone(), |tx, job| jobs::renew(tx, job, LONG).await).await.unwrap());
    world.pass(SHORT).await;
    assert_eq!(reap(&world.store).await, 0);
    assert!(finish(&world.store, &running).await);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_runners_keep_dying_is_given_up(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let id = enqueue(&world.store, job("deadly")).await.unwrap();
    let mut waits = Vec::new();
    for _ in 0..jobs::MAX_CRASHES {
        claim(&world.store, SHORT).await.unwrap();
        world.pass(SHORT).await;
        assert_eq!(reap(&world.store).await, 1);
        let now = abide_core::Clock::now(&world.clock);
        waits.push(by_id(&world.store, id).await.run_at.since(now).as_secs());
        world.clock.advance(LONG);
    }
    assert!(claim(&world.store, LONG).await.is_none());
    let given_up = by_id(&world.store, id).await;
    assert_eq!((given_up.state.as_str(), given_up.attempts), ("failed", 0), "none of them was a try of its own");
    assert_eq!(given_up.last_error.as_deref(), Some("the server stopped while the job ran, 10 times so far"));
    assert!(given_up.finished_at.is_some());
    assert_eq!(waits[..4], [0, 30, 60, 90], "other jobs get their turn before it runs again");
    assert!(again(&world.store, id).await.unwrap());
    claim(&world.store, SHORT).await.expect("an operator may try it again");
    world.pass(SHORT).await;
    reap(&world.store).await;
    assert_eq!(by_id(&world.store, id).await.state, "waiting", "with all its lives");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_uses_up_no_try_of_its_jobs(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let id = enqueue(&world.store, NewJob { max_attempts: 2, ..job("maintain") }).await.unwrap();
    for _ in 0..4 {
        assert_eq!(claim(&world.store, SHORT).await.expect("it is due").attempts, 1);
        world.pass(SHORT).await;
        assert_eq!(reap(&world.store).await, 1);
        assert_eq!(by_id(&world.store, id).await.state, "waiting");
        world.clock.advance(LONG);
    }
    let first = claim(&world.store, LONG).await.unwrap();
    assert!(fail(&world.store, &first, Some(abide_core::Clock::now(&world.clock))).await);
    let second = claim(&world.store, LONG).await.unwrap();
    assert_eq!((second.attempts, second.max_attempts), (2, 2), "both tries are its own");
    assert!(finish(&world.store, &second).await);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_try_is_repeated_at_its_time_or_never(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let id = enqueue(&world.store, job("greet")).await.unwrap();
    let minute = Duration::from_secs(60);

    let first = claim(&world.store, LONG).await.unwrap();
    assert!(fail(&world.store, &first, Some(TestClock::START.plus(minute))).await);
    assert!(claim(&world.store, LONG).await.is_none(), "not yet");
    assert_eq!(by_id(&world.store, id).await.last_error.as_deref(), Some("it broke"));
    world.clock.advance(minute);
    let second = claim(&world.store, LONG).await.unwrap();
    assert_eq!(second.attempts, 2);
    assert!(fail(&world.store, &second, None).await);

    assert_eq!(by_id(&world.store, id).await.state, "failed");
    assert!(claim(&world.store, LONG).await.is_none());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_handed_back_has_not_used_a_try(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    enqueue(&world.store, job("greet")).await;
    let begun = claim(&world.store, LONG).await.unwrap();
    unit!(world.store, begun.clone(), |tx, job| jobs::hand_back(tx, job).await).await.unwrap();

    let next = claim(&world.store, LONG).await.unwrap();

    assert_eq!((next.id, next.attempts), (begun.id, 1));
    assert!(next.token > begun.token);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_ended_job_can_be_queued_again_with_all_its_tries(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let id = enqueue(&world.store, job("greet")).await.unwrap();
    assert!(!again(&world.store, id).await.unwrap(), "it has not ended");
    let begun = claim(&world.store, LONG).await.unwrap();
    assert!(!again(&world.store, id).await.unwrap(), "it runs");
    fail(&world.store, &begun, None).await;

    assert!(again(&world.store, id).await.unwrap());

    let waiting = by_id(&world.store, id).await;
    assert_eq!((waiting.state.as_str(), waiting.attempts, waiting.finished_at), ("waiting", 0, None));
    assert_eq!(claim(&world.store, LONG).await.unwrap().id, id);
    assert!(!again(&world.store, 404).await.unwrap());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_job_begun_by_name_is_begun_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let later = TestClock::START.plus(LONG);
    let id = enqueue(&world.store, NewJob { run_at: later, ..job("greet") }).await.unwrap();
    let start = || unit!(world.store, id, |tx, &id| jobs::start(tx, id, "command line", LONG).await);

    let begun = start().await.unwrap();

    assert_eq!((begun.id, begun.holder.as_deref()), (id, Some("command line")));
    assert!(start().await.is_err(), "it runs already");
    assert!(finish(&world.store, &begun).await);
    assert!(start().await.is_err(), "it has ended");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn pruning_forgets_old_ended_jobs_only(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    for kind in ["done", "failed", "running", "waiting"] {
        enqueue(&world.store, job(kind)).await;
    }
    let (done, failed) = (claim(&world.store, LONG).await.unwrap(), claim(&world.store, LONG).await.unwrap());
    claim(&world.store, LONG).await.unwrap();
    finish(&world.store, &done).await;
    fail(&world.store, &failed, None).await;
    let prune = |before| unit!(world.store, before, |tx, &before| jobs::prune(tx, before).await);

    assert_eq!(prune(TestClock::START).await.unwrap(), 0, "not old enough");
    assert_eq!(prune(TestClock::START.plus(SHORT)).await.unwrap(), 2);

    let mut conn = world.store.read().await.unwrap();
    let left = jobs::list(&mut conn, None, None, 10).await.unwrap();
    assert_eq!(left.iter().map(|job| job.kind.as_str()).collect::<Vec<_>>(), ["waiting", "running"]);
    assert_eq!(jobs::list(&mut conn, Some("running"), None, 10).await.unwrap().len(), 1);
    let behind = jobs::list(&mut conn, None, Some(left[0].id), 10).await.unwrap();
    assert_eq!(behind.iter().map(|job| job.id).collect::<Vec<_>>(), [left[1].id]);
    let mut counts = jobs::counts(&mut conn).await.unwrap();
    counts.sort();
    assert_eq!(counts, [("running".to_owned(), 1), ("waiting".to_owned(), 1)]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_due_for_one_of_eight_that_ask(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let hour = Duration::from_secs(3600);
    let ask = |next: Timestamp| {
        let store = world.store.clone();
        tokio::spawn(async move {
            unit!(store, next, |tx, &next| jobs::schedule_due(tx, "nightly", next).await).await.unwrap()
        })
    };
    let all_ask = async |next: Timestamp| {
        let tasks: Vec<_> = (0..8).map(|_| ask(next)).collect();
        let mut due = 0;
        for task in tasks {
            due += usize::from(joined(task).await);
        }
        due
    };

    let looks_due = async || {
        let now = abide_core::Clock::now(&world.clock);
        jobs::schedule_is_due(&mut world.store.read().await.unwrap(), "nightly", now).await.unwrap()
    };

    let first = TestClock::START.plus(hour);
    assert!(looks_due().await, "nobody knows it");
    assert_eq!(all_ask(first).await, 0, "an entry nobody knew is due at its next time");
    for round in 2..5 {
        assert!(!looks_due().await);
        world.clock.advance(hour);
        assert!(looks_due().await);
        assert_eq!(all_ask(TestClock::START.plus(hour * round)).await, 1);
        assert_eq!(all_ask(TestClock::START.plus(hour * round)).await, 0, "not twice");
    }
}
