//! Topics, forks and search: what is found, in which order, and by whom.

use crate::support::{World, new_repo, repo, unit, user};
use abide_core::lifecycle::State;
use abide_core::repo::{Role, Visibility};
use abide_core::search::Sort;
use abide_core::{RepoId, Topic, UserId};
use abide_store::repos::forks;
use abide_store::repos::search::{self, Search};
use abide_store::repos::{self, Content, Page, Viewer};
use abide_store::repos::{collaborators, topics};
use abide_store::{Store, StoreError};
use abide_testkit::{Engine, TestClock};
use rstest::rstest;
use std::collections::HashMap;
use std::time::Duration;

const ALL: Page = Page { limit: 1000, offset: 0 };
const NOBODY: Viewer = Viewer { user: None, reads_everything: false };
const ADMIN: Viewer = Viewer { user: None, reads_everything: true };

fn of(user: UserId) -> Viewer {
    Viewer { user: Some(user), reads_everything: false }
}

fn words(text: &[&str]) -> Vec<Topic> {
    text.iter().map(|word| word.parse().unwrap()).collect()
}

async fn tag(store: &Store, repo: RepoId, text: &[&str]) {
    unit!(store, (repo, words(text)), |tx, (repo, topics)| topics::replace(tx, *repo, topics).await).await.unwrap();
}

async fn set(store: &Store, repo: RepoId, visibility: Visibility, deleted: bool) {
    let state = State {
        visibility,
        archived_at: None,
        deleted_at: deleted.then_some(TestClock::START),
        governance: abide_core::repo::Governance::Account,
    };
    unit!(store, (repo, state), |tx, (repo, state)| repos::set_marks(tx, *repo, state).await).await.unwrap();
}

async fn describe(store: &Store, repo: RepoId, text: &str) {
    let branch = "refs/heads/main".parse().unwrap();
    unit!(store, (repo, text.to_owned(), branch), |tx, (repo, text, branch)| {
        repos::set_about(tx, *repo, text, branch).await
    })
    .await
    .unwrap();
}

fn search(text: &[&str]) -> Search {
    let words = text.iter().map(|&word| word.to_owned()).collect();
    Search { words, topic: None, owner: None, sort: Sort::BestMatch, scan: 1000 }
}

async fn found(store: &Store, search: &Search, viewer: Viewer) -> Vec<String> {
    let mut conn = store.read().await.unwrap();
    let (repos, total) = search::find(&mut conn, search, viewer, ALL).await.unwrap();
    assert_eq!(total, repos.len() as i64, "the count is that of the list");
    repos.iter().map(|repo| repo.name.to_string()).collect()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn topics_are_replaced_as_a_set_and_keep_their_order(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    let (one, two) = (repo(&world.store, alice, "one").await, repo(&world.store, alice, "two").await);
    let bare = repo(&world.store, alice, "bare").await;
    tag(&world.store, one, &["zebra", "ant"]).await;
    tag(&world.store, two, &["ant"]).await;
    tag(&world.store, one, &["bee", "zebra"]).await;

    let mut conn = world.store.read().await.unwrap();
    assert_eq!(topics::of_repo(&mut conn, one).await.unwrap(), words(&["bee", "zebra"]));
    let many = topics::of_many(&mut conn, &[two, one, bare]).await.unwrap();
    assert_eq!(many, HashMap::from([(one, words(&["bee", "zebra"])), (two, words(&["ant"]))]));
    assert!(topics::of_many(&mut conn, &[]).await.unwrap().is_empty());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_word_is_looked_for_in_name_owner_description_and_topics(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let forge = repo(store, alice, "forge").await;
    repo(store, bob, "my-forge").await;
    let other = repo(store, bob, "other").await;
    describe(store, forge, "A Home for Git").await;
    tag(store, other, &["forge-like"]).await;

    let mut all = found(store, &search(&["forge"]), NOBODY).await;
    assert_eq!(all[0], "forge", "the name itself comes first");
    all.sort();
    assert_eq!(all, ["forge", "my-forge", "other"]);
    assert_eq!(found(store, &search(&["git", "home"]), NOBODY).await, ["forge"], "case does not count");
    assert_eq!(found(store, &search(&["forge", "alice"]), NOBODY).await, ["forge"]);
    assert_eq!(found(store, &search(&["forge", "nothing"]), NOBODY).await, [""; 0]);
    assert_eq!(found(store, &search(&[]), NOBODY).await.len(), 3, "no word leaves nothing out");
    assert_eq!(found(store, &Search { owner: Some(bob), ..search(&["forge"]) }, NOBODY).await.len(), 2);
    let tagged = Search { topic: Some("forge-like".parse().unwrap()), ..search(&[]) };
    assert_eq!(found(store, &tagged, NOBODY).await, ["other"]);
    assert_eq!(found(store, &Search { owner: Some(alice), ..tagged.clone() }, NOBODY).await, [""; 0]);
    assert_eq!(found(store, &Search { words: vec!["my".into()], ..tagged }, NOBODY).await, [""; 0]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn wildcards_stand_for_themselves(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let store = &world.store;
    let alice = user(store, "alice").await;
    let plain = repo(store, alice, "plain").await;
    let odd = repo(store, alice, "snake_case").await;
    describe(store, plain, "nothing").await;
    describe(store, odd, r"100% of !everything\ 'quoted'").await;
    for text in ["%", "_", "!", "100%", "!e", r"g\", "'q", "e_c"] {
        assert_eq!(found(store, &search(&[text]), NOBODY).await, ["snake_case"], "{text}");
    }
    assert_eq!(found(store, &search(&["p%n"]), NOBODY).await, [""; 0]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn results_come_in_the_order_that_is_asked_for(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let store = &world.store;
    let alice = user(store, "alice").await;
    let mut ids = HashMap::new();
    for name in ["x-kit", "kit", "kit-b", "zoo"] {
        ids.insert(name, repo(store, alice, name).await);
        world.clock.advance(Duration::from_secs(1));
    }
    describe(store, ids["zoo"], "kit for animals").await;
    world.raw().await.execute("UPDATE repos SET star_count = 7 WHERE name = 'kit-b'").await;

    let by = |sort| Search { sort, ..search(&["kit"]) };
    assert_eq!(found(store, &by(Sort::BestMatch), NOBODY).await, ["kit", "kit-b", "x-kit", "zoo"]);
    assert_eq!(found(store, &by(Sort::Name), NOBODY).await, ["kit", "kit-b", "x-kit", "zoo"]);
    assert_eq!(found(store, &by(Sort::Updated), NOBODY).await, ["zoo", "kit-b", "kit", "x-kit"]);
    assert_eq!(found(store, &by(Sort::Stars), NOBODY).await, ["kit-b", "zoo", "kit", "x-kit"]);

    let mut conn = store.read().await.unwrap();
    let mut paged = Vec::new();
    for offset in 0..5 {
        let page = Page { limit: 1, offset };
        let (repos, total) = search::find(&mut conn, &by(Sort::Name), NOBODY, page).await.unwrap();
        assert_eq!(total, 4);
        paged.extend(repos.iter().map(|repo| repo.name.to_string()));
    }
    assert_eq!(paged, ["kit", "kit-b", "x-kit", "zoo"]);
    let near = Search { scan: 2, ..by(Sort::Name) };
    assert_eq!(found(store, &near, NOBODY).await, ["kit-b", "zoo"], "only the latest two are looked at");
}

/// Search, the list of forks and every count go by the predicate of the other lists, whose own test asks the policy.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_viewer_may_not_read_is_neither_found_nor_counted(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let (alice, bob, carol) = (user(store, "alice").await, user(store, "bob").await, user(store, "carol").await);
    let source = repo(store, carol, "source").await;
    for (name, visibility, deleted, shared) in [
        ("public", Visibility::Public, false, false),
        ("private", Visibility::Private, false, false),
        ("shared", Visibility::Private, false, true),
        ("gone", Visibility::Public, true, true),
    ] {
        let id = fork(store, source, alice, name).await.unwrap();
        tag(store, id, &["secret-word"]).await;
        set(store, id, visibility, deleted).await;
        if shared {
            unit!(store, (id, bob), |tx, &(id, bob)| collaborators::set(tx, id, bob, Role::Read).await).await.unwrap();
        }
    }
    let everywhere = Search { sort: Sort::Name, ..search(&["secret"]) };
    let tagged = Search { topic: Some("secret-word".parse().unwrap()), sort: Sort::Name, ..search(&[]) };
    let owned = Search { owner: Some(alice), sort: Sort::Name, ..search(&[]) };
    for (viewer, expected) in [
        (NOBODY, vec!["public"]),
        (of(carol), vec!["public"]),
        (of(bob), vec!["public", "shared"]),
        (of(alice), vec!["private", "public", "shared"]),
        (ADMIN, vec!["private", "public", "shared"]),
    ] {
        for search in [&everywhere, &tagged, &owned] {
            assert_eq!(found(store, search, viewer).await, expected, "{search:?} for {viewer:?}");
        }
        let mut conn = store.read().await.unwrap();
        let (mut forks, total) = forks::list(&mut conn, source, viewer, ALL).await.unwrap();
        forks.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(forks.iter().map(|repo| repo.name.as_str()).collect::<Vec<_>>(), expected, "for {viewer:?}");
        let counts = forks::counts(&mut conn, &[source, RepoId::new(404)], viewer).await.unwrap();
        assert_eq!((total, counts), (expected.len() as i64, HashMap::from([(source, expected.len() as i64)])));
    }
}

async fn fork(store: &Store, source: RepoId, owner: UserId, name: &str) -> Result<RepoId, StoreError> {
    unit!(store, (source, new_repo(owner, name)), |tx, (source, new)| {
        let id = repos::reserve_id(tx).await?;
        let content = Content { fork_of: Some(*source), pushed_at: None };
        repos::insert_filled(tx, id, new, content).await.map(|()| id)
    })
    .await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_knows_its_source_and_takes_no_name_that_is_taken(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let store = &world.store;
    let (alice, bob) = (user(store, "alice").await, user(store, "bob").await);
    let source = repo(store, alice, "tool").await;
    let id = fork(store, source, bob, "tool").await.unwrap();

    let mut conn = store.read().await.unwrap();
    let read = repos::by_id(&mut conn, id, None).await.unwrap().unwrap();
    assert_eq!((read.fork_of, read.refs_generation % 2, read.refs_generation > 0), (Some(source), 0, true));
    assert_eq!(forks::of_owner(&mut conn, source, bob).await.unwrap(), Some(id));
    assert_eq!(forks::of_owner(&mut conn, source, alice).await.unwrap(), None);
    assert!(repos::name_taken(&mut conn, bob, &read.name).await.unwrap());
    assert!(matches!(fork(store, source, bob, "tool").await, Err(StoreError::Unique)));
    set(store, id, Visibility::Public, true).await;
    assert_eq!(forks::of_owner(&mut conn, source, bob).await.unwrap(), None, "a deleted one is none");
    assert!(!repos::name_taken(&mut conn, bob, &read.name).await.unwrap());
}
