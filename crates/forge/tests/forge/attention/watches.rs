//! Watching, and being made to.

use super::*;
use crate::lifecycle::world;
use abide_core::WatchLevel::{self, All, Ignore, Participating};
use abide_core::policy::DenyCode;
use abide_core::repo::{Role, Visibility};
use abide_forge::attention::{AttentionError, watch};
use abide_forge::repos::{collaborators, transfer};
use abide_forge::{Access, Caller};
use rstest::rstest;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_choice_holds_until_it_is_taken_back(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = world.public(&world.alice, "project").await;
    let bob = world.account("bob").await.id;
    assert_eq!(watch::current_level(forge, bob, repo.id).await.expect("readable"), Participating);
    assert_eq!(watch::choice(forge, &world.bob, &repo).await.expect("readable"), None);
    // One of them is alice, whose repository it is.
    for (level, watchers) in [(All, 2), (Ignore, 1), (Participating, 2)] {
        assert!(watch::set(forge, &world.bob, &repo, level).await.expect("chosen"));
        assert!(!watch::set(forge, &world.bob, &repo, level).await.expect("chosen before"));
        assert_eq!(watch::current_level(forge, bob, repo.id).await.expect("readable"), level);
        assert_eq!(world.now(repo.id).await.watcher_count, watchers, "{level}");
    }
    assert!(watch::clear(forge, &world.bob, &repo).await.expect("taken back"));
    assert!(!watch::clear(forge, &world.bob, &repo).await.expect("nothing to take back"));
    assert_eq!(world.now(repo.id).await.watcher_count, 1);
    assert_eq!(world.deeds("bob").await, ["watch_set"; 4]);
    assert_eq!(world.now(repo.id).await.updated_at, repo.updated_at);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_watches_is_for_admins_and_what_for_those_who_may_read(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = world.public(&world.alice, "project").await;
    watch::set(forge, &world.bob, &repo, All).await.expect("chosen");
    let seen = watch::watchers(forge, &world.alice, &repo, FIRST).await.expect("the owner may");
    assert_eq!(names(&seen), ["bob", "alice"]);
    for caller in [&world.bob, &Caller::anonymous(None)] {
        let refused = watch::watchers(forge, caller, &repo, FIRST).await;
        assert!(matches!(refused, Err(Access::Denied(_))), "{refused:?}");
    }
    let bob = world.account("bob").await.id;
    assert_eq!(watch::of_user(forge, &world.bob, bob, FIRST).await.expect("readable").1, 1);

    let hidden = world.repo(&world.alice, "hidden", Visibility::Private).await;
    let refused = watch::set(forge, &world.bob, &hidden, All).await;
    assert!(matches!(refused, Err(AttentionError::Access(Access::NotFound))), "{refused:?}");
    let refused = watch::set(forge, &Caller::anonymous(None), &repo, All).await;
    assert!(matches!(refused, Err(AttentionError::Access(Access::Denied(DenyCode::LoginRequired)))), "{refused:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn collaborators_are_told_everything_and_those_involved_what_concerns_them_unless_they_chose(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let (forge, bob) = (world.forge(), world.account("bob").await);
    let level = async |repo: &Repo| watch::choice(forge, &world.bob, repo).await.expect("readable").map(|c| c.level);
    let involve = async |repo: &Repo| {
        let unit = (bob.id, repo.id);
        let store = &world.rig.store;
        let done: Result<(), abide_store::StoreError> =
            store.write(unit, |tx, &(user, repo)| Box::pin(watch::on_involvement(tx, user, repo))).await;
        done.expect("written");
    };

    let repo = world.public(&world.alice, "fresh").await;
    collaborators::set(forge, &world.alice, &repo, &bob, Role::Read).await.expect("added");
    assert_eq!(level(&repo).await, Some(All));
    involve(&repo).await;
    assert_eq!(level(&repo).await, Some(All));
    watch::clear(forge, &world.bob, &repo).await.expect("taken back");
    collaborators::set(forge, &world.alice, &repo, &bob, Role::Write).await.expect("changed");
    assert_eq!(level(&repo).await, None, "another role is no new work");

    let repo = world.public(&world.alice, "involved").await;
    involve(&repo).await;
    assert_eq!(level(&repo).await, Some(Participating));
    assert_eq!(world.now(repo.id).await.watcher_count, 2, "with alice, whose it is");

    for &chosen in WatchLevel::ALL {
        let repo = world.public(&world.alice, &format!("chosen-{chosen}")).await;
        watch::set(forge, &world.bob, &repo, chosen).await.expect("chosen");
        involve(&repo).await;
        collaborators::set(forge, &world.alice, &repo, &bob, Role::Read).await.expect("added");
        assert_eq!(level(&repo).await, Some(chosen));
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_makes_forks_or_accepts_a_repository_watches_it_unless_they_chose(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let level = async |who: &Caller, repo: &Repo| {
        watch::choice(forge, who, repo).await.expect("readable").map(|choice| choice.level)
    };
    let repo = world.public(&world.alice, "project").await;
    assert_eq!(level(&world.alice, &repo).await, Some(All));
    let request = abide_forge::repos::fork::Request { name: Some("copy".into()), default_branch_only: false };
    let fork = abide_forge::repos::fork::fork(forge, &world.bob, &repo, request).await.expect("forked").repo;
    assert_eq!(level(&world.bob, &fork).await, Some(All));

    for (name, chosen) in [("fresh", None), ("quiet", Some(Ignore))] {
        let given = world.public(&world.alice, name).await;
        if let Some(chosen) = chosen {
            watch::set(forge, &world.bob, &given, chosen).await.expect("chosen");
        }
        let offer = transfer::offer(forge, &world.alice, &given, "bob").await.expect("offered").transfer.id.to_string();
        transfer::answer(forge, &world.bob, &offer, abide_core::transfer::Answer::Accept).await.expect("accepted");
        assert_eq!(level(&world.bob, &given).await, Some(chosen.unwrap_or(All)), "{name}");
    }
}
