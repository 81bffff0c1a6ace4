//! The queue of identifiers that wait for git data, and the turns of domains.

use crate::support::{World, unit};
use abide_core::sync::attempts::Attempts;
use abide_core::sync::window::DomainLimits;
use abide_core::{Clock as _, Timestamp};
use abide_store::Store;
use abide_store::sync::domains::{self, Ended, NewRequest, Requested};
use abide_store::sync::queue::{self, Entry};
use abide_store::sync::sources::{self, Source};
use abide_testkit::{Engine, TestClock};
use rstest::rstest;
use std::time::Duration;

const HOLD: Duration = Duration::from_secs(60);

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

async fn notice(store: &Store, identifier: &str, delay: Duration) -> i64 {
    unit!(store, (identifier.to_owned(), delay), |tx, (identifier, delay)| queue::notice(tx, identifier, *delay).await)
        .await
        .unwrap()
}

async fn claim(store: &Store) -> Option<Entry> {
    unit!(store, (), |tx, _| queue::claim(tx, "node-1", HOLD).await).await.unwrap()
}

async fn entry(store: &Store, identifier: &str) -> Option<Entry> {
    queue::of_identifier(&mut store.read().await.unwrap(), identifier).await.unwrap()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_identifier_is_due_after_its_delay_and_one_task_has_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    notice(store, "demo", seconds(180)).await;
    world.clock.advance(seconds(179));
    assert_eq!(claim(store).await, None);
    assert!(!queue::anything_to_do(&mut store.read().await.unwrap(), world.clock.now()).await.unwrap());

    world.clock.advance(seconds(1));
    assert!(queue::anything_to_do(&mut store.read().await.unwrap(), world.clock.now()).await.unwrap());
    let task = claim(store).await.unwrap();
    assert_eq!((task.identifier.as_str(), task.running, task.next_attempt), ("demo", true, None));
    assert_eq!(claim(store).await, None, "one task for each identifier");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn events_move_an_attempt_earlier_as_the_rule_says(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let store = &world.store;
    let mut rule: Option<Attempts> = None;
    for (pause, delay) in [(0, 180), (10, 180), (10, 1), (0, 300), (5, 0)] {
        world.clock.advance(seconds(pause));
        rule = Some(Attempts::noticed(rule, world.clock.now(), seconds(delay)));
        notice(store, "demo", seconds(delay)).await;
        let found = entry(store, "demo").await.unwrap();
        assert_eq!(found.next_attempt, rule.map(|rule| rule.next));
        assert_eq!(found.attempts, 0);
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_event_during_a_task_makes_it_run_again_and_otherwise_the_pause_counts(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    notice(store, "demo", Duration::ZERO).await;
    let task = claim(store).await.unwrap();
    let now = world.clock.now();
    let pause = now.plus(seconds(20));
    unit!(store, (task.clone(), pause), |tx, (task, pause)| queue::again(tx, task, *pause, 1).await).await.unwrap();
    let found = entry(store, "demo").await.unwrap();
    assert_eq!((found.next_attempt, found.attempts, found.running), (Some(pause), 1, false));

    world.clock.advance(seconds(20));
    let task = claim(store).await.unwrap();
    notice(store, "demo", seconds(3)).await;
    let soon = world.clock.now().plus(seconds(3));
    let later = world.clock.now().plus(seconds(120));
    unit!(store, (task.clone(), later), |tx, (task, later)| queue::done(tx, task, *later).await).await.unwrap();
    let found = entry(store, "demo").await.expect("the event that came meanwhile keeps it");
    assert_eq!((found.next_attempt, found.attempts), (Some(soon), 0));

    world.clock.advance(seconds(3));
    let task = claim(store).await.unwrap();
    unit!(store, (task, later), |tx, (task, later)| queue::done(tx, task, *later).await).await.unwrap();
    assert_eq!(entry(store, "demo").await, None);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_identifier_of_a_task_that_is_gone_is_due_again_and_the_old_task_can_do_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    notice(store, "demo", Duration::ZERO).await;
    let gone = claim(store).await.unwrap();
    unit!(store, (), |tx, _| queue::expire_of(tx, "node-", "node-2").await).await.unwrap();
    let task = claim(store).await.expect("it is due at once");
    assert!(task.token > gone.token);
    let renewed = unit!(store, gone.clone(), |tx, gone| queue::renew(tx, gone, HOLD).await).await.unwrap();
    assert!(!renewed);
    let now = world.clock.now();
    let ended = unit!(store, (gone, now), |tx, (gone, now)| queue::again(tx, gone, *now, 9).await).await.unwrap();
    assert!(!ended && entry(store, "demo").await.unwrap().running);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_identifier_that_ran_longest_ago_comes_first(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let store = &world.store;
    for identifier in ["a", "b", "c"] {
        notice(store, identifier, Duration::ZERO).await;
        world.clock.advance(seconds(1));
    }
    let mut order = Vec::new();
    for _ in 0..6 {
        let task = claim(store).await.unwrap();
        order.push(task.identifier.clone());
        let now = world.clock.now();
        unit!(store, (task, now), |tx, (task, now)| queue::again(tx, task, *now, 1).await).await.unwrap();
        world.clock.advance(seconds(1));
    }
    assert_eq!(order, ["a", "b", "c", "a", "b", "c"]);
}

fn limits() -> DomainLimits {
    DomainLimits::default()
}

async fn request(store: &Store, queue: i64, named_at: Timestamp) -> Requested {
    let new = NewRequest {
        domain: "git.example:443".into(),
        queue,
        named_at,
        holder: "node-1".into(),
        at_most: seconds(600),
    };
    unit!(store, new, |tx, new| domains::request(tx, new, &limits()).await).await.unwrap()
}

async fn end(store: &Store, request: i64, ended: Ended) {
    unit!(store, (request, ended), |tx, (request, ended)| domains::end(tx, *request, "git.example:443", ended).await)
        .await
        .unwrap();
}

fn made(requested: Requested) -> i64 {
    let Requested::Made(id) = requested else { panic!("{requested:?}") };
    id
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_domain_has_five_requests_in_thirty_seconds_and_those_that_wait_have_their_turn_in_order(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let never = Timestamp::from_micros(0);
    let mut entries = Vec::new();
    for name in ["a", "b", "c", "d"] {
        entries.push(notice(store, name, Duration::ZERO).await);
    }
    for _ in 0..5 {
        let id = made(request(store, entries[0], never).await);
        end(store, id, Ended::Answered).await;
        world.clock.advance(seconds(1));
    }
    for entry in [entries[2], entries[1], entries[3]] {
        assert_eq!(request(store, entry, never).await, Requested::Throttled);
        world.clock.advance(seconds(1));
    }
    let turns =
        async || unit!(store, (), |tx, _| domains::turns(tx, "git.example:443", &limits()).await).await.unwrap();
    assert_eq!(turns().await, Vec::<i64>::new());
    let waiting = domains::next_with_turns(&mut store.read().await.unwrap(), "").await.unwrap();
    assert_eq!(waiting.as_deref(), Some("git.example:443"));

    // The first request was made 8 s ago.
    world.clock.advance(seconds(22));
    assert_eq!(turns().await, [entries[2]]);
    assert_eq!(request(store, entries[1], never).await, Requested::Throttled, "another one waits longer");
    assert_eq!(request(store, entries[0], never).await, Requested::Throttled, "one that comes anew queues too");
    let id = made(request(store, entries[2], never).await);
    end(store, id, Ended::Answered).await;
    assert_eq!(turns().await, Vec::<i64>::new());
    world.clock.advance(seconds(1));
    assert_eq!(turns().await, [entries[1]]);

    let begin = world.clock.now().plus(seconds(1));
    let dropped =
        unit!(store, (entries[1], begin), |tx, (entry, begin)| domains::drop_turns(tx, *entry, *begin).await).await;
    assert_eq!(
        (dropped.unwrap(), turns().await),
        (1, vec![entries[3]]),
        "an entry that gave up its turn is not waited for"
    );
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn two_requests_of_a_domain_run_at_once_and_those_of_a_process_that_is_gone_end(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let never = Timestamp::from_micros(0);
    let entry = notice(store, "demo", Duration::ZERO).await;
    let first = made(request(store, entry, never).await);
    made(request(store, entry, never).await);
    assert_eq!(request(store, entry, never).await, Requested::Throttled);
    end(store, first, Ended::Answered).await;
    made(request(store, entry, never).await);
    assert_eq!(request(store, entry, never).await, Requested::Throttled);
    let expired = unit!(store, (), |tx, _| domains::expire_of(tx, "node-", "node-2").await).await.unwrap();
    assert_eq!(expired, 2);
    made(request(store, entry, never).await);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_domain_rests_until_its_time_an_admin_or_a_newer_announcement(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let named = world.clock.now();
    world.clock.advance(seconds(1));
    let entry = notice(store, "demo", Duration::ZERO).await;
    let id = made(request(store, entry, named).await);
    let rest = Ended::Rests(limits().rest, "the host name does not exist".into());
    end(store, id, rest.clone()).await;
    let until = world.clock.now().plus(limits().rest);
    assert_eq!(request(store, entry, named).await, Requested::Resting(until));
    let known = domains::by_name(&mut store.read().await.unwrap(), "git.example:443").await.unwrap().unwrap();
    assert_eq!((known.failures, known.reason.as_str()), (1, "the host name does not exist"));

    world.clock.advance(seconds(5));
    let id = made(request(store, entry, world.clock.now()).await);
    end(store, id, rest).await;
    let woken = unit!(store, (), |tx, _| domains::set_rest(tx, "git.example:443", None).await).await.unwrap();
    assert!(woken);
    let id = made(request(store, entry, named).await);
    end(store, id, Ended::Answered).await;
    let known = domains::by_name(&mut store.read().await.unwrap(), "git.example:443").await.unwrap().unwrap();
    assert_eq!((known.failures, known.reason.as_str(), known.rests_until), (0, "", None));
}

/// Two nodes ask at the same moment; the rows decide, not their clocks.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_share_the_requests_of_a_domain() {
    let world = World::new(Engine::Postgres).await;
    let other = world.another_store().await;
    let entry = notice(&world.store, "demo", Duration::ZERO).await;
    let limits = DomainLimits { at_once: 100, ..limits() };
    let ask = |store: Store| async move {
        let new = NewRequest {
            domain: "git.example:443".into(),
            queue: entry,
            named_at: Timestamp::from_micros(0),
            holder: "node".into(),
            at_most: seconds(600),
        };
        unit!(store, (new, limits), |tx, (new, limits)| domains::request(tx, new, limits).await).await.unwrap()
    };
    let asked = (0..20).map(|n| tokio::spawn(ask(if n % 2 == 0 { world.store.clone() } else { other.clone() })));
    let mut count = 0;
    for answer in asked.collect::<Vec<_>>() {
        count += usize::from(matches!(answer.await.unwrap(), Requested::Made(_)));
    }
    assert_eq!(count, 5);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_new_event_forgets_which_objects_completed_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, .. } = &World::new(engine).await;
    let entry = notice(store, "demo", Duration::ZERO).await;
    let source = Source {
        url: "https://git.example/x.git".into(),
        domain: "git.example:443".into(),
        tried_at: TestClock::START,
        outcome: "incomplete".into(),
        detail: "it lacks objects".into(),
        fetched: Some(vec![7; 32]),
    };
    let put = (entry, source.clone());
    unit!(store, put, |tx, (entry, source)| sources::put(tx, *entry, source).await).await.unwrap();
    assert_eq!(sources::of(&mut store.read().await.unwrap(), entry, 10).await.unwrap(), std::slice::from_ref(&source));
    notice(store, "demo", Duration::ZERO).await;
    let forgotten = Source { fetched: None, ..source };
    assert_eq!(sources::of(&mut store.read().await.unwrap(), entry, 10).await.unwrap(), [forgotten]);

    let task = claim(store).await.unwrap();
    unit!(store, task, |tx, task| queue::done(tx, task, TestClock::START).await).await.unwrap();
    assert_eq!(sources::of(&mut store.read().await.unwrap(), entry, 10).await.unwrap(), []);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_used_for_long_is_removed_and_a_rest_stays(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let never = Timestamp::from_micros(0);
    let entry = notice(store, "demo", Duration::ZERO).await;
    let id = made(request(store, entry, never).await);
    end(store, id, Ended::Rests(seconds(7_200), "no".into())).await;
    world.clock.advance(seconds(3_600));
    let before = world.clock.now();
    let prune = async |before| unit!(store, before, |tx, before| domains::prune(tx, *before).await).await.unwrap();
    assert_eq!(prune(before).await, 1, "the request, not the domain");
    world.clock.advance(seconds(3_601));
    assert_eq!(prune(world.clock.now()).await, 1);
    assert_eq!(domains::by_name(&mut store.read().await.unwrap(), "git.example:443").await.unwrap(), None);
}
