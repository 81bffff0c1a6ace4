//! Names, old names, and how often they change.

use super::*;
use abide_core::lifecycle::Refusal;
use abide_forge::repos::{LifeError, delete, marks, purge, redirects, restore};
use rstest::rstest;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_repository_is_found_under_all_its_names(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let repo = world.public(&world.alice, "one").await;
    let repo = world.rename(&repo, " Two ").await;
    assert_eq!(repo.slug(), "alice/two");
    let repo = world.rename(&repo, "three").await;
    let id = Some(repo.id.get());
    for slug in ["alice/one", "alice/two", "alice/three", "Alice/ONE"] {
        assert_eq!(world.leads(&world.bob, slug).await, id, "{slug}");
    }
    assert_eq!(world.leads(&world.bob, "bob/one").await, None);

    let back = world.rename(&repo, "one").await;
    let names = redirects::list(world.forge(), &world.alice, &back).await.expect("readable");
    let names: Vec<_> = names.iter().map(|redirect| redirect.name.as_str()).collect();
    assert_eq!(names, ["three", "two"], "a name that it has again is no old one");
    assert_eq!(world.audited(&repo).await, ["repo_created", "push", "repo_renamed", "repo_renamed", "repo_renamed"]);
    assert_eq!(world.events("repo_renamed").await, 3);
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn ping_pong_renames_hit_the_limit_and_waiting_helps(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let mut repo = world.public(&world.alice, "ping").await;
    for name in ["pong", "ping", "pong", "ping", "pong"] {
        world.rig.clock.advance(DAY);
        repo = world.rename(&repo, name).await;
    }
    let refused = rename::rename(world.forge(), &world.alice, &repo, "ping").await.expect_err("the sixth");
    let LifeError::RenameRateLimited { wait, .. } = refused else { panic!("{refused}") };
    assert_eq!(wait, DAY * 26, "until the first of the five is 30 days old");
    assert_eq!(world.audited(&repo).await.len(), 7, "a refusal is not told");
    let operator = Caller::operator();
    rename::rename(world.forge(), &operator, &repo, "by-hand").await.expect("the operator is not limited");

    world.rig.clock.advance(wait + DAY);
    rename::rename(world.forge(), &world.alice, &repo, "ping").await.expect("two of the six are old enough");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn transfers_do_not_use_up_the_rename_budget(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let mut repo = world.public(&world.alice, "project").await;
    let operator = Caller::operator();
    for to in ["bob", "alice", "bob", "alice", "bob", "alice"] {
        repo = transfer::hand_over(world.forge(), &operator, &repo, to).await.expect("handed over");
    }
    for name in ["a", "b", "c", "d", "e"] {
        repo = world.rename(&repo, name).await;
    }
    let refused = rename::rename(world.forge(), &world.alice, &repo, "f").await;
    assert!(matches!(refused, Err(LifeError::RenameRateLimited { .. })), "{refused:?}");
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_reused_name_never_sends_the_other_repositorys_links_astray(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let old = world.public(&world.alice, "tool").await;
    world.rename(&old, "tool-classic").await;
    let request = create::Request {
        name: "tool".into(),
        description: String::new(),
        visibility: Visibility::Public,
        default_branch: None,
        init: None,
    };
    let created = create::create(world.forge(), &world.alice, request).await.expect("created");
    assert!(created.replaced, "whoever takes an old name hears that it led somewhere");
    let new = created.repo;
    assert_eq!(world.leads(&world.bob, "alice/tool").await, Some(new.id.get()), "the live name wins");
    assert_eq!(world.leads(&world.bob, "alice/tool-classic").await, Some(old.id.get()));

    // The new one moves on: its old name leads to it, never back to the first.
    world.rename(&new, "tool-next").await;
    assert_eq!(world.leads(&world.bob, "alice/tool").await, Some(new.id.get()));
    // When it is deleted, the name leads to the one that bore it before.
    delete::delete(world.forge(), &world.alice, &new).await.expect("deleted");
    assert_eq!(world.leads(&world.bob, "alice/tool").await, Some(old.id.get()));
    assert_eq!(world.leads(&world.bob, "alice/tool-next").await, None);
    restore::restore(world.forge(), &world.alice, &new.id.to_string(), None).await.expect("restored");
    assert_eq!(world.leads(&world.bob, "alice/tool").await, Some(new.id.get()), "its links come back with it");
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn taking_a_name_hides_its_redirect_until_the_name_is_free_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let first = world.public(&world.alice, "one").await;
    world.rename(&first, "two").await;
    world.rig.clock.advance(DAY);
    let second = world.public(&world.alice, "one").await;
    assert_eq!(world.leads(&world.bob, "alice/one").await, Some(second.id.get()));
    delete::delete(world.forge(), &world.alice, &second).await.expect("deleted");
    assert_eq!(world.leads(&world.bob, "alice/one").await, Some(first.id.get()), "hidden, not removed");
    purge::purge(world.forge(), &Caller::operator(), &second).await.expect("gone for good");
    assert_eq!(world.leads(&world.bob, "alice/one").await, Some(first.id.get()));
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn restoring_under_another_name_does_not_take_a_later_bearers_redirect(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let first = world.public(&world.alice, "one").await;
    delete::delete(world.forge(), &world.alice, &first).await.expect("deleted");
    world.rig.clock.advance(DAY);
    let second = world.public(&world.alice, "one").await;
    let second = world.rename(&second, "two").await;
    world.rig.clock.advance(DAY);
    restore::restore(world.forge(), &world.alice, &first.id.to_string(), Some("three")).await.expect("restored");
    assert_eq!(world.leads(&world.bob, "alice/one").await, Some(second.id.get()), "it left the name last");
    assert_eq!(world.leads(&world.bob, "alice/three").await, Some(first.id.get()));
    delete::delete(world.forge(), &world.alice, &second).await.expect("deleted");
    assert_eq!(world.leads(&world.bob, "alice/one").await, Some(first.id.get()), "then the one before");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_takes_a_name_hears_only_of_repositories_that_they_may_read(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let repo = world.public(&world.alice, "tool").await;
    let moved = transfer::hand_over(world.forge(), &Caller::operator(), &repo, "bob").await.expect("handed over");
    let private = marks::set_visibility(world.forge(), &world.bob, &moved, Visibility::Private).await.expect("hidden");
    let request = |name: &str| create::Request {
        name: name.into(),
        description: String::new(),
        visibility: Visibility::Public,
        default_branch: None,
        init: None,
    };
    let created = create::create(world.forge(), &world.alice, request("tool")).await.expect("created");
    assert!(!created.replaced, "bob's private repository is absent to alice");
    let away = world.rename(&created.repo, "elsewhere").await;
    marks::set_visibility(world.forge(), &world.bob, &private, Visibility::Public).await.expect("shown");
    delete::delete(world.forge(), &world.alice, &away).await.expect("deleted");
    let created = create::create(world.forge(), &world.alice, request("tool")).await.expect("created");
    assert!(created.replaced, "the name led to bob's public repository until now");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn names_that_break_a_rule_or_are_taken_change_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let repo = world.public(&world.alice, "one").await;
    world.public(&world.alice, "two").await;
    let refused = async |name: &str| {
        rename::rename(world.forge(), &world.alice, &repo, name).await.expect_err("refused").to_string()
    };
    assert!(refused("ONE").await.contains("the repository already has this name"));
    assert!(refused("two").await.contains("already has a repository"));
    assert!(refused("settings").await.contains("reserved"));
    assert!(refused("a/b").await.contains("only letters"));
    let stranger = rename::rename(world.forge(), &world.bob, &repo, "three").await;
    assert!(matches!(stranger, Err(LifeError::Access(Access::Denied(_)))), "{stranger:?}");
    assert_eq!(world.audited(&repo).await, ["repo_created", "push"]);
    assert_eq!(world.leads(&world.bob, "alice/one").await, Some(repo.id.get()));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_old_name_leads_only_to_what_the_viewer_may_read(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let repo = world.public(&world.alice, "one").await;
    let repo = world.rename(&repo, "two").await;
    let hidden = marks::set_visibility(world.forge(), &world.alice, &repo, Visibility::Private).await.expect("hidden");
    assert_eq!(world.leads(&world.bob, "alice/one").await, None);
    assert_eq!(world.leads(&world.alice, "alice/one").await, Some(repo.id.get()));
    marks::set_visibility(world.forge(), &world.alice, &hidden, Visibility::Public).await.expect("shown");
    assert_eq!(world.leads(&world.bob, "alice/one").await, Some(repo.id.get()));
    assert_eq!(world.events("repo_visibility_changed").await, 2);
    marks::set_visibility(world.forge(), &world.alice, &repo, Visibility::Public).await.expect("as it is");
    assert_eq!(world.events("repo_visibility_changed").await, 2, "what changes nothing tells nothing");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_old_name_tells_when_it_was_last_used_and_can_be_released(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let repo = world.public(&world.alice, "one").await;
    let repo = world.rename(&repo, "two").await;
    let only = async || {
        let mut names = redirects::list(world.forge(), &world.alice, &repo).await.expect("readable");
        (names.len() == 1).then(|| names.remove(0))
    };
    assert_eq!(only().await.expect("one").last_used, None);
    let first = world.rig.clock.advance(DAY);
    world.leads(&world.bob, "alice/one").await;
    assert_eq!(only().await.expect("one").last_used, Some(first));
    world.rig.clock.advance(Duration::from_secs(60));
    world.leads(&world.bob, "alice/one").await;
    assert_eq!(only().await.expect("one").last_used, Some(first), "noted to the hour");
    let later = world.rig.clock.advance(DAY);
    world.leads(&world.bob, "alice/one").await;
    assert_eq!(only().await.expect("one").last_used, Some(later));

    let id = only().await.expect("one").id.to_string();
    let stranger = redirects::release(world.forge(), &world.bob, &repo, &id).await;
    assert!(matches!(stranger, Err(Access::Denied(_))), "{stranger:?}");
    redirects::release(world.forge(), &world.alice, &repo, &id).await.expect("released");
    assert!(only().await.is_none());
    assert_eq!(world.leads(&world.alice, "alice/one").await, None);
    let again = redirects::release(world.forge(), &world.alice, &repo, &id).await;
    assert!(matches!(again, Err(Access::NotFound)), "{again:?}");
    assert_eq!(world.audited(&repo).await.last().map(String::as_str), Some("repo_redirect_released"));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn unarchive_works_and_so_does_the_rest_of_its_life_while_archived(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = world.public(&world.alice, "one").await;
    let repo = marks::archive(forge, &world.alice, &repo).await.expect("archived");
    let twice = marks::archive(forge, &world.alice, &repo).await;
    assert!(matches!(twice, Err(LifeError::Refused(Refusal::AlreadyArchived))), "{twice:?}");

    let repo = world.rename(&repo, "two").await;
    let offer = world.offer(&repo).await;
    transfer::answer(forge, &world.alice, &offer, abide_core::transfer::Answer::Cancel).await.expect("cancelled");
    marks::set_visibility(forge, &world.alice, &repo, Visibility::Private).await.expect("hidden");
    delete::delete(forge, &world.alice, &repo).await.expect("deleted");
    let back = restore::restore(forge, &world.alice, &repo.id.to_string(), None).await.expect("restored");
    assert!(back.archived_at.is_some(), "it comes back as it went");

    let live = marks::unarchive(forge, &world.alice, &back).await.expect("unarchived");
    assert_eq!(live.archived_at, None);
    let twice = marks::unarchive(forge, &world.alice, &live).await;
    assert!(matches!(twice, Err(LifeError::Refused(Refusal::NotArchived))), "{twice:?}");
    assert_eq!((world.events("repo_archived").await, world.events("repo_unarchived").await), (1, 1));
}
