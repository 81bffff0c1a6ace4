//! Stars, watches and follows: counters that equal the lists, whatever happens.

use crate::support::{World, repo, run, sql, unit, user};
use abide_core::attention::StarOrder;
use abide_core::{RepoId, UserId, WatchLevel};
use abide_store::accounts::users;
use abide_store::attention::lists::{Part, Person, SortKey};
use abide_store::attention::stars::Search;
use abide_store::attention::{follows, stars, watches};
use abide_store::repos::{Page, Viewer};
use abide_store::{Sql, Store, StoreError, repos};
use abide_testkit::Engine;
use rstest::rstest;
use std::time::Duration;

const ALL: Page = Page { limit: 1000, offset: 0 };
const NOBODY: Viewer = Viewer { user: None, reads_everything: false };
const DELETE_USER: Sql = sql("DELETE FROM users WHERE id = $1");
const HIDE: Sql = sql("UPDATE repos SET visibility = $2 WHERE id = $1");
const DELETE: Sql = sql("UPDATE repos SET deleted_at = $2 WHERE id = $1");

async fn star(store: &Store, user: UserId, repo: RepoId) -> bool {
    unit!(store, (), |tx, _| stars::add(tx, user, repo).await).await.unwrap()
}

async fn unstar(store: &Store, user: UserId, repo: RepoId) -> bool {
    unit!(store, (), |tx, _| stars::remove(tx, user, repo).await).await.unwrap()
}

async fn watch(store: &Store, user: UserId, repo: RepoId, level: WatchLevel) -> bool {
    unit!(store, (), |tx, _| watches::set(tx, user, repo, level).await).await.unwrap()
}

async fn unwatch(store: &Store, user: UserId, repo: RepoId) -> bool {
    unit!(store, (), |tx, _| watches::remove(tx, user, repo).await).await.unwrap()
}

async fn suspend(store: &Store, user: UserId, suspended: bool) {
    let done: Result<(), StoreError> = unit!(store, (), |tx, _| users::set_suspended(tx, user, suspended).await).await;
    done.unwrap();
}

/// The two counters of a repository, which have to equal the lists and their counts.
async fn counters(store: &Store, id: RepoId) -> (i64, i64) {
    let mut conn = store.read().await.unwrap();
    let row = repos::by_id(&mut conn, id, None).await.unwrap().unwrap();
    let stargazers = stars::of_repo(&mut conn, id, ALL.into()).await.unwrap();
    let watchers = watches::of_repo(&mut conn, id, ALL.into()).await.unwrap();
    assert_eq!(row.star_count, stargazers.len() as i64);
    assert_eq!(row.star_count, stars::count_of_repo(&mut conn, id).await.unwrap());
    assert_eq!(row.watcher_count, watchers.len() as i64);
    assert_eq!(row.watcher_count, watches::count_of_repo(&mut conn, id).await.unwrap());
    (row.star_count, row.watcher_count)
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn starring_twice_counts_once_and_taking_back_what_is_not_there_changes_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, clock, .. } = &World::new(engine).await;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let id = repo(store, alice, "tool").await;
    let before = repos::by_id(&mut store.read().await.unwrap(), id, None).await.unwrap().unwrap();
    clock.advance(Duration::from_secs(9));

    assert!(!unstar(store, bob, id).await);
    assert!(star(store, bob, id).await);
    assert!(!star(store, bob, id).await);
    assert!(star(store, alice, id).await);
    assert_eq!(counters(store, id).await, (2, 0));
    assert!(unstar(store, bob, id).await);
    assert!(!unstar(store, bob, id).await);
    assert_eq!(counters(store, id).await, (1, 0));

    let mut conn = store.read().await.unwrap();
    assert!(stars::has(&mut conn, alice, id).await.unwrap() && !stars::has(&mut conn, bob, id).await.unwrap());
    let after = repos::by_id(&mut conn, id, None).await.unwrap().unwrap();
    assert_eq!(after.updated_at, before.updated_at, "a star changes nothing about the repository itself");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_repositories_is_asked_for_its_stars_at_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, .. } = &World::new(engine).await;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let mut ids = Vec::new();
    for name in ["one", "two", "three", "four"] {
        ids.push(repo(store, alice, name).await);
    }
    for (who, index) in [(alice, 0), (alice, 2), (alice, 3), (bob, 1)] {
        star(store, who, ids[index]).await;
    }
    let mut conn = store.read().await.unwrap();
    assert_eq!(stars::among(&mut conn, alice, &ids[..3]).await.unwrap(), [ids[0], ids[2]].into());
    assert_eq!(stars::among(&mut conn, bob, &ids).await.unwrap(), [ids[1]].into());
    assert!(stars::among(&mut conn, bob, &ids[2..]).await.unwrap().is_empty());
    assert!(stars::among(&mut conn, alice, &[]).await.unwrap().is_empty());
    assert!(watches::among(&mut conn, alice, &[]).await.unwrap().is_empty());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_step_between_levels_counts_as_it_should(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let World { store, .. } = &World::new(engine).await;
    let alice = user(store, "alice").await;
    let id = repo(store, alice, "tool").await;
    let states = [None, Some(WatchLevel::All), Some(WatchLevel::Participating), Some(WatchLevel::Ignore)];
    for from in states {
        for to in states {
            for state in [from, to] {
                match state {
                    Some(level) => watch(store, alice, id, level).await,
                    None => unwatch(store, alice, id).await,
                };
                let expected = i64::from(state.is_some_and(WatchLevel::watches));
                assert_eq!(counters(store, id).await, (0, expected), "{from:?} to {to:?}, at {state:?}");
                let mut conn = store.read().await.unwrap();
                let level = watches::current_level(&mut conn, alice, id).await.unwrap();
                assert_eq!(level, WatchLevel::current(state));
            }
        }
    }
    assert!(watch(store, alice, id, WatchLevel::All).await);
    assert!(!watch(store, alice, id, WatchLevel::All).await, "it is so already");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_suggested_never_replaces_a_choice(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let World { store, .. } = &World::new(engine).await;
    let alice = user(store, "alice").await;
    for (index, &chosen) in WatchLevel::ALL.iter().enumerate() {
        let id = repo(store, alice, &format!("tool{index}")).await;
        watch(store, alice, id, chosen).await;
        let written = unit!(store, (), |tx, _| watches::suggest(tx, alice, id, WatchLevel::All).await).await;
        assert!(!written.unwrap());
        let choice = watches::choice(&mut store.read().await.unwrap(), alice, id).await.unwrap().unwrap();
        assert_eq!(choice.level, chosen);
    }
    let id = repo(store, alice, "other").await;
    let written = unit!(store, (), |tx, _| watches::suggest(tx, alice, id, WatchLevel::All).await).await;
    assert!(written.unwrap());
    assert_eq!(counters(store, id).await, (0, 1));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn suspended_people_are_neither_listed_nor_counted_until_they_are_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, .. } = &World::new(engine).await;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let (first, second) = (repo(store, alice, "first").await, repo(store, alice, "second").await);
    for person in [alice, bob] {
        star(store, person, first).await;
        watch(store, person, first, WatchLevel::All).await;
    }
    watch(store, bob, second, WatchLevel::Ignore).await;
    let followed = unit!(store, (), |tx, _| follows::add(tx, bob, alice).await).await;
    assert!(followed.unwrap());

    for _ in 0..2 {
        suspend(store, bob, true).await;
        assert_eq!(counters(store, first).await, (1, 1));
        assert_eq!(counters(store, second).await, (0, 0));
    }
    let mut conn = store.read().await.unwrap();
    assert_eq!(follows::counts(&mut conn, alice).await.unwrap(), (0, 0));
    assert!(follows::followers(&mut conn, alice, ALL.into()).await.unwrap().is_empty());
    drop(conn);

    // Rows of suspended accounts are not counted, so their removal changes no counter.
    star(store, bob, second).await;
    unstar(store, bob, first).await;
    watch(store, bob, second, WatchLevel::All).await;
    assert_eq!(counters(store, first).await, (1, 1));
    assert_eq!(counters(store, second).await, (0, 0));

    for _ in 0..2 {
        suspend(store, bob, false).await;
        assert_eq!(counters(store, first).await, (1, 2));
        assert_eq!(counters(store, second).await, (1, 1));
    }
    assert_eq!(follows::counts(&mut store.read().await.unwrap(), alice).await.unwrap(), (1, 0));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_removed_takes_only_what_counted_out_of_the_counters(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let (alice, bob, carol) = (user(store, "alice").await, user(store, "bob").await, user(store, "carol").await);
    let id = repo(store, alice, "tool").await;
    for person in [alice, bob, carol] {
        star(store, person, id).await;
        watch(store, person, id, WatchLevel::Participating).await;
    }
    suspend(store, bob, true).await;
    run(store, DELETE_USER, vec![bob.into()]).await.unwrap();
    assert_eq!(counters(store, id).await, (2, 2));
    run(store, DELETE_USER, vec![carol.into()]).await.unwrap();
    assert_eq!(counters(store, id).await, (1, 1));

    let removed: Result<(), StoreError> = unit!(store, (), |tx, _| repos::remove(tx, id).await).await;
    removed.unwrap();
    let mut raw = world.raw().await;
    for table in ["stars", "watches"] {
        assert_eq!(raw.number(&format!("SELECT count(*) FROM {table}")).await, 0, "{table} go with their repository");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_counter_that_was_spoilt_never_goes_below_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let alice = user(store, "alice").await;
    let id = repo(store, alice, "tool").await;
    star(store, alice, id).await;
    watch(store, alice, id, WatchLevel::All).await;
    world.raw().await.execute("UPDATE repos SET star_count = 0, watcher_count = 0").await;
    suspend(store, alice, true).await;
    suspend(store, alice, false).await;
    world.raw().await.execute("UPDATE repos SET star_count = 0, watcher_count = 0").await;
    unstar(store, alice, id).await;
    watch(store, alice, id, WatchLevel::Ignore).await;
    assert_eq!(counters(store, id).await, (0, 0));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn lists_come_newest_first_and_in_steps(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let World { store, clock, .. } = &World::new(engine).await;
    let owner = user(store, "owner").await;
    let id = repo(store, owner, "tool").await;
    let mut people = Vec::new();
    for number in 0..7 {
        let person = user(store, &format!("person{number}")).await;
        star(store, person, id).await;
        people.push(person);
        // Two at a time came in the same instant: the number decides.
        if number % 2 == 1 {
            clock.advance(Duration::from_secs(1));
        }
    }
    people.reverse();
    let mut conn = store.read().await.unwrap();
    let mut seen: Vec<Person> = Vec::new();
    loop {
        let behind = seen.last().map_or(SortKey::TOP, Person::sort_key);
        let step = stars::of_repo(&mut conn, id, Part::behind(behind, 3)).await.unwrap();
        assert!(step.len() <= 3);
        if step.is_empty() {
            break;
        }
        seen.extend(step);
    }
    assert_eq!(seen.iter().map(|person| person.id).collect::<Vec<_>>(), people);
    let page = stars::of_repo(&mut conn, id, Page { limit: 2, offset: 4 }.into()).await.unwrap();
    assert_eq!(page.iter().map(|person| person.id).collect::<Vec<_>>(), people[4..6]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_viewer_may_not_read_is_in_no_list_and_no_count_of_theirs(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, .. } = &World::new(engine).await;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let mut ids = Vec::new();
    for name in ["open", "hidden", "gone"] {
        let id = repo(store, alice, name).await;
        star(store, bob, id).await;
        watch(store, bob, id, WatchLevel::All).await;
        ids.push(id);
    }
    run(store, HIDE, vec![ids[1].into(), "private".into()]).await.unwrap();
    run(store, DELETE, vec![ids[2].into(), 1_i64.into()]).await.unwrap();
    let viewer = |user, reads_everything| Viewer { user, reads_everything };
    for (viewer, expected) in [
        (NOBODY, vec!["open"]),
        (viewer(Some(bob), false), vec!["open"]),
        (viewer(Some(alice), false), vec!["hidden", "open"]),
        (viewer(None, true), vec!["hidden", "open"]),
    ] {
        let mut conn = store.read().await.unwrap();
        let search = Search { text: String::new(), order: StarOrder::Starred, scan: 100 };
        for (list, total) in [
            stars::of_user(&mut conn, bob, viewer, ALL.into()).await.unwrap(),
            stars::found_of_user(&mut conn, bob, viewer, &search, ALL).await.unwrap(),
            watches::of_user(&mut conn, bob, viewer, ALL.into()).await.unwrap(),
        ] {
            let names: Vec<_> = list.iter().map(|kept| kept.repo.name.as_str()).collect();
            assert_eq!((names, total), (expected.clone(), expected.len() as i64), "{viewer:?}");
        }
    }
    run(store, HIDE, vec![ids[1].into(), "public".into()]).await.unwrap();
    run(store, DELETE, vec![ids[2].into(), abide_store::Value::Int(None)]).await.unwrap();
    let (list, total) = stars::of_user(&mut store.read().await.unwrap(), bob, NOBODY, ALL.into()).await.unwrap();
    assert_eq!((list.len(), total), (3, 3), "stars come back with their repository");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn stars_are_looked_through_and_sorted(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let World { store, clock, .. } = &World::new(engine).await;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    for name in ["beta", "alpha_x", "gamma"] {
        let id = repo(store, alice, name).await;
        star(store, bob, id).await;
        if name == "alpha_x" {
            star(store, alice, id).await;
        }
        clock.advance(Duration::from_secs(1));
    }
    let mut conn = store.read().await.unwrap();
    for (text, order, scan, expected) in [
        ("", StarOrder::Starred, 10, vec!["gamma", "alpha_x", "beta"]),
        ("", StarOrder::Oldest, 10, vec!["beta", "alpha_x", "gamma"]),
        ("", StarOrder::Updated, 10, vec!["gamma", "alpha_x", "beta"]),
        ("", StarOrder::Name, 10, vec!["alpha_x", "beta", "gamma"]),
        ("", StarOrder::Stars, 1, vec!["gamma"]),
        ("et", StarOrder::Starred, 10, vec!["beta"]),
        ("alice", StarOrder::Name, 10, vec!["alpha_x", "beta", "gamma"]),
        ("_", StarOrder::Name, 10, vec!["alpha_x"]),
    ] {
        let search = Search { text: text.into(), order, scan };
        let (list, total) = stars::found_of_user(&mut conn, bob, NOBODY, &search, ALL).await.unwrap();
        let names: Vec<_> = list.iter().map(|kept| kept.repo.name.as_str()).collect();
        assert_eq!((names, total), (expected.clone(), expected.len() as i64), "{search:?}");
    }
    let search = Search { text: String::new(), order: StarOrder::Stars, scan: 10 };
    let (list, _) = stars::found_of_user(&mut conn, bob, NOBODY, &search, ALL).await.unwrap();
    assert_eq!(list[0].repo.name.as_str(), "alpha_x");
}

/// A star and a suspension at the same moment: whoever comes second knows of the first.
#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_a_star_waits_for_a_suspension_that_is_under_way() {
    let world = World::new(Engine::Postgres).await;
    let store = &world.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let id = repo(store, alice, "tool").await;
    let mut raw = world.raw().await;
    raw.execute(&format!("BEGIN; UPDATE users SET suspended_at = 1 WHERE id = {bob}")).await;
    let starring = {
        let store = store.clone();
        tokio::spawn(async move { star(&store, bob, id).await })
    };
    let mut other = world.raw().await;
    crate::support::eventually(async || {
        other
            .number(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
            )
            .await
            > 0
    })
    .await;
    raw.execute("COMMIT").await;
    assert!(crate::support::joined(starring).await);
    assert_eq!(counters(store, id).await, (0, 0));
    suspend(store, bob, false).await;
    assert_eq!(counters(store, id).await, (1, 0));
}
