//! Repositories, who works on them, and who gets to see them.

use crate::support::{World, new_repo, repo, unit, user};
use abide_core::lifecycle::State;
use abide_core::policy::{self, Action, Actor};
use abide_core::repo::{Role, Visibility};
use abide_core::{RepoId, UserId};
use abide_store::repos::{self, Page, Repo, Viewer};
use abide_store::repos::{collaborators, redirects};
use abide_store::{Store, StoreError};
use abide_testkit::{Engine, TestClock};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rstest::rstest;
use std::time::Duration;

const ALL: Page = Page { limit: 1000, offset: 0 };

async fn by_slug(store: &Store, owner: &str, name: &str, viewer: Option<UserId>) -> Option<Repo> {
    let mut conn = store.read().await.unwrap();
    repos::by_slug(&mut conn, &owner.parse().unwrap(), &name.parse().unwrap(), viewer).await.unwrap()
}

async fn by_id(store: &Store, id: RepoId) -> Repo {
    repos::by_id(&mut store.read().await.unwrap(), id, None).await.unwrap().unwrap()
}

async fn set_marks(store: &Store, id: RepoId, state: State) -> Result<(), StoreError> {
    unit!(store, (id, state), |tx, (id, state)| repos::set_marks(tx, *id, state).await).await
}

async fn soft_delete(store: &Store, id: RepoId) {
    let state = State { deleted_at: Some(TestClock::START), ..by_id(store, id).await.state() };
    set_marks(store, id, state).await.unwrap();
}

async fn set_role(store: &Store, repo: RepoId, user: UserId, role: Role) {
    unit!(store, (repo, user, role), |tx, &(repo, user, role)| collaborators::set(tx, repo, user, role).await)
        .await
        .unwrap();
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_found_by_slug_with_the_viewers_role(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let (alice, bob) = (user(&world.store, "alice").await, user(&world.store, "bob").await);
    let id = repo(&world.store, alice, "tool").await;
    repo(&world.store, bob, "tool").await;
    set_role(&world.store, id, bob, Role::Triage).await;

    let found = by_slug(&world.store, "Alice", "Tool", Some(bob)).await.unwrap();

    assert_eq!((found.id, found.owner_id, found.slug().as_str()), (id, alice, "alice/tool"));
    assert_eq!((found.role, found.refs_generation, found.pushed_at), (Some(Role::Triage), 0, None));
    assert_eq!((found.visibility, found.default_branch.as_str()), (Visibility::Public, "refs/heads/main"));
    assert_eq!(by_slug(&world.store, "alice", "tool", Some(alice)).await.unwrap().role, None);
    assert_eq!(by_slug(&world.store, "alice", "tool", None).await.unwrap().role, None);
    assert!(by_slug(&world.store, "alice", "other", None).await.is_none());
    assert!(by_slug(&world.store, "carol", "tool", None).await.is_none());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_has_one_live_repository_of_a_name(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let (alice, bob) = (user(&world.store, "alice").await, user(&world.store, "bob").await);
    repo(&world.store, alice, "tool").await;

    let second = unit!(world.store, new_repo(alice, "tool"), |tx, new| repos::insert(tx, new).await).await;
    assert!(matches!(second, Err(StoreError::Unique)));
    repo(&world.store, bob, "tool").await;
    let of_nobody = unit!(world.store, new_repo(UserId::new(404), "x"), |tx, new| repos::insert(tx, new).await).await;
    assert!(matches!(of_nobody, Err(StoreError::Missing)));
    assert_eq!(world.raw().await.number("SELECT count(*) FROM repo_ids").await, 2, "refused ones reserve no id");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_soft_deleted_repository_is_hidden_and_its_name_is_free(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    let first = repo(&world.store, alice, "tool").await;
    soft_delete(&world.store, first).await;

    assert!(by_slug(&world.store, "alice", "tool", Some(alice)).await.is_none());
    assert!(by_id(&world.store, first).await.facts().deleted, "by its id it is still there");
    let second = repo(&world.store, alice, "tool").await;
    assert_eq!(by_slug(&world.store, "alice", "tool", None).await.unwrap().id, second);
    soft_delete(&world.store, second).await;
    let third = repo(&world.store, alice, "tool").await;

    // Two deleted ones and a live one of the same name. Neither can come back while the name is taken.
    let state = State { deleted_at: None, ..by_id(&world.store, first).await.state() };
    assert!(matches!(set_marks(&world.store, first, state).await, Err(StoreError::Unique)));
    soft_delete(&world.store, third).await;
    set_marks(&world.store, first, state).await.unwrap();
    assert_eq!(by_slug(&world.store, "alice", "tool", None).await.unwrap().id, first);
    let mut conn = world.store.read().await.unwrap();
    let page = repos::page(&mut conn, first, 10).await.unwrap();
    assert_eq!(page.iter().map(|repo| repo.id).collect::<Vec<_>>(), [second, third], "the operator sees all");
    assert_eq!(
        repos::of_owner(&mut conn, alice, Viewer { user: Some(alice), reads_everything: true }, ALL).await.unwrap().1,
        1
    );
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_reads_back(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    let id = repo(&world.store, alice, "tool").await;
    let later = world.clock.advance(Duration::from_secs(7));

    unit!(world.store, id, |tx, &id| {
        repos::set_about(tx, id, "a tool – für alle 🛠", &"refs/heads/trunk".parse().unwrap()).await?;
        repos::touch_pushed(tx, id).await?;
        repos::set_size(tx, id, 1 << 40).await
    })
    .await
    .unwrap();
    let state = State {
        visibility: Visibility::Private,
        archived_at: Some(later),
        deleted_at: None,
        governance: abide_core::repo::Governance::Account,
    };
    set_marks(&world.store, id, state).await.unwrap();

    let read = by_id(&world.store, id).await;
    assert_eq!((read.description.as_str(), read.default_branch.as_str()), ("a tool – für alle 🛠", "refs/heads/trunk"));
    assert_eq!((read.pushed_at, read.size_bytes, read.updated_at), (Some(later), 1 << 40, later));
    assert_eq!((read.state(), read.created_at), (state, TestClock::START));
    assert!(repos::by_id(&mut world.store.read().await.unwrap(), RepoId::new(404), None).await.unwrap().is_none());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn lists_have_the_same_order_on_both_engines(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    let names = ["a.b", "a-c", "a_a", "ab", "a1", "aa", "b", "a"];
    for name in names {
        repo(&world.store, alice, name).await;
    }
    let mut sorted = names;
    sorted.sort_unstable();

    let mut conn = world.store.read().await.unwrap();
    let (listed, _) =
        repos::of_owner(&mut conn, alice, Viewer { user: None, reads_everything: false }, ALL).await.unwrap();
    assert_eq!(listed.iter().map(|repo| repo.name.as_str()).collect::<Vec<_>>(), sorted);
    let (listed, _) = repos::of_member(&mut conn, alice, ALL).await.unwrap();
    assert_eq!(listed.iter().map(|repo| repo.name.as_str()).collect::<Vec<_>>(), sorted);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_collaborator_has_one_role(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let (alice, bob) = (user(&world.store, "alice").await, user(&world.store, "bob").await);
    let id = repo(&world.store, alice, "tool").await;
    let role = async || collaborators::role(&mut world.store.read().await.unwrap(), id, bob).await.unwrap();
    assert_eq!(role().await, None);
    for &wanted in Role::ALL {
        set_role(&world.store, id, bob, wanted).await;
        assert_eq!(role().await, Some(wanted));
    }

    let carol = user(&world.store, "carol").await;
    set_role(&world.store, id, carol, Role::Read).await;
    let mut conn = world.store.read().await.unwrap();
    let (people, total) = collaborators::list(&mut conn, id, Page { limit: 1, offset: 1 }).await.unwrap();
    assert_eq!((people[0].user_id, people[0].role, people.len(), total), (carol, Role::Read, 1, 2));
    drop(conn);

    let remove = || unit!(world.store, (id, bob), |tx, &(id, bob)| collaborators::remove(tx, id, bob).await);
    assert!(remove().await.unwrap());
    assert!(!remove().await.unwrap());
    assert_eq!(role().await, None);
    let stranger = unit!(world.store, id, |tx, &id| collaborators::set(tx, id, UserId::new(404), Role::Read).await);
    assert!(matches!(stranger.await, Err(StoreError::Missing)));
}

/// Even: at rest. Odd: someone is moving refs.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_generation_is_odd_while_refs_move(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let alice = user(&world.store, "alice").await;
    let id = repo(&world.store, alice, "tool").await;
    let begin = || unit!(world.store, id, |tx, &id| repos::begin_refs(tx, id).await);
    let end = |mine: i64| unit!(world.store, (id, mine), |tx, &(id, mine)| repos::end_refs(tx, id, mine).await);
    let now = async || {
        let found = repos::ref_state(&mut world.store.read().await.unwrap(), id).await.unwrap();
        found.map(|state| state.generation)
    };
    assert_eq!(now().await, Some(0));

    let first = begin().await.unwrap();
    assert_eq!((first, now().await), (1, Some(1)));
    assert!(end(first).await.unwrap());
    assert_eq!(now().await, Some(2));
    assert!(!end(first).await.unwrap(), "ended already");

    // A writer that crashed never ends; the next one begins on an odd number and takes the next odd one.
    let crashed = begin().await.unwrap();
    let next = begin().await.unwrap();
    assert_eq!((crashed, next), (3, 5));
    assert!(!end(crashed).await.unwrap(), "another has begun");
    assert_eq!(now().await, Some(5));
    assert!(end(next).await.unwrap());
    assert_eq!(now().await, Some(6));

    let settle = || unit!(world.store, id, |tx, &id| repos::settle_refs(tx, id).await);
    settle().await.unwrap();
    assert_eq!(now().await, Some(6), "at rest already");
    begin().await.unwrap();
    settle().await.unwrap();
    assert_eq!(now().await, Some(8), "at rest, whoever began");

    let of_none = unit!(world.store, (), |tx, _| repos::begin_refs(tx, RepoId::new(404)).await);
    assert!(matches!(of_none.await, Err(StoreError::Missing)));
    assert_eq!(repos::ref_state(&mut world.store.read().await.unwrap(), RepoId::new(404)).await.unwrap(), None);
}

/// A repository as the property below makes it: visibility, deleted, the roles of two others.
type Draft = (Visibility, bool, Option<Role>, Option<Role>);

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let role = || proptest::option::of(proptest::sample::select(Role::ALL));
    let draft = (proptest::sample::select(Visibility::ALL), any::<bool>(), role(), role());
    proptest::collection::vec(draft, 0..9)
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_list_holds_what_the_policy_lets_its_viewer_read_and_its_count_agrees(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let (bob, carol) = (user(&world.store, "bob").await, user(&world.store, "carol").await);
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let runtime = tokio::runtime::Handle::current();
    let round = std::sync::atomic::AtomicU32::new(0);

    tokio::task::block_in_place(|| {
        runner
            .run(&drafts(), |drafts| {
                let owner = format!("owner{}", round.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
                runtime.block_on(lists_agree(&world.store, &owner, [bob, carol], &drafts));
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{failure}"));
    });
}

async fn lists_agree(store: &Store, owner: &str, others: [UserId; 2], drafts: &[Draft]) {
    let owner = user(store, owner).await;
    let mut ids = Vec::new();
    for (index, &(visibility, deleted, one, two)) in drafts.iter().enumerate() {
        let id = repo(store, owner, &format!("r{index}")).await;
        let deleted_at = deleted.then_some(TestClock::START);
        set_marks(
            store,
            id,
            State { visibility, archived_at: None, deleted_at, governance: abide_core::repo::Governance::Account },
        )
        .await
        .unwrap();
        for (other, role) in others.into_iter().zip([one, two]) {
            if let Some(role) = role {
                set_role(store, id, other, role).await;
            }
        }
        ids.push(id);
    }

    let mut conn = store.read().await.unwrap();
    let actor = |id, site_admin| Actor::User { id, site_admin, suspended: false };
    for viewer in [
        Actor::Anonymous,
        actor(owner, false),
        actor(others[0], false),
        actor(others[1], false),
        actor(others[1], true),
    ] {
        let reads_everything = matches!(viewer, Actor::User { site_admin: true, .. });
        let as_viewer = Viewer { user: viewer.user_id(), reads_everything };
        let mut expected = Vec::new();
        for &id in &ids {
            let repo = repos::by_id(&mut conn, id, viewer.user_id()).await.unwrap().unwrap();
            if policy::can(&viewer, Action::RepoRead, &repo.facts(), repo.role).is_allowed() {
                expected.push((repo.id, repo.role));
            }
        }
        let (listed, total) = repos::of_owner(&mut conn, owner, as_viewer, ALL).await.unwrap();
        assert_eq!(listed.iter().map(|repo| (repo.id, repo.role)).collect::<Vec<_>>(), expected, "for {viewer:?}");
        assert_eq!(total, expected.len() as i64, "for {viewer:?}");

        let mut paged = Vec::new();
        for offset in (0..expected.len() as i64 + 2).step_by(2) {
            let page = Page { limit: 2, offset };
            let (page, same) = repos::of_owner(&mut conn, owner, as_viewer, page).await.unwrap();
            assert_eq!(same, total);
            paged.extend(page.iter().map(|repo| (repo.id, repo.role)));
        }
        assert_eq!(paged, expected);
    }
    for member in [owner, others[0], others[1]] {
        let (listed, total) = repos::of_member(&mut conn, member, ALL).await.unwrap();
        assert_eq!(total, listed.len() as i64);
        let live_and_mine = |repo: &Repo| !repo.facts().deleted && (repo.owner_id == member || repo.role.is_some());
        assert!(listed.iter().all(live_and_mine));
        let of_this_owner: Vec<RepoId> =
            listed.iter().filter(|repo| repo.owner_id == owner).map(|repo| repo.id).collect();
        let mut expected = Vec::new();
        for &id in &ids {
            let repo = repos::by_id(&mut conn, id, Some(member)).await.unwrap().unwrap();
            if live_and_mine(&repo) {
                expected.push(id);
            }
        }
        assert_eq!(of_this_owner, expected);
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_keeps_so_many_old_names_and_the_ones_left_first_go(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let owner = user(&world.store, "alice").await;
    let repo = repo(&world.store, owner, "tool").await;
    let left = unit!(world.store, (owner, repo), |tx, &(owner, repo)| {
        for number in 0..redirects::PER_REPO + 3 {
            let name = format!("was-{number}").parse().unwrap();
            let left_at = TestClock::START.plus(Duration::from_secs(number as u64));
            redirects::leave(tx, owner, &name, repo, left_at).await?;
        }
        Ok::<_, StoreError>(())
    });
    left.await.unwrap();
    let kept = redirects::list(&mut world.store.read().await.unwrap(), repo).await.unwrap();
    assert_eq!(kept.len() as i64, redirects::PER_REPO);
    assert_eq!(kept.first().unwrap().name.as_str(), format!("was-{}", redirects::PER_REPO + 2));
    assert_eq!(kept.last().unwrap().name.as_str(), "was-3");
    assert!(by_slug(&world.store, "alice", "was-2", None).await.is_none());
    assert_eq!(by_slug(&world.store, "alice", "was-3", None).await.unwrap().id, repo);
}
