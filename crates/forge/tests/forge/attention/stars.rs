//! Starring.

use super::*;
use crate::lifecycle::world;
use crate::log::stored_json;
use abide_core::policy::DenyCode;
use abide_core::repo::Visibility;
use abide_forge::accounts::suspend;
use abide_forge::attention::{AttentionError, star};
use abide_forge::repos::{delete, marks, rename, restore, transfer};
use abide_forge::{Access, Caller, doctor, sequencer};
use abide_store::events;
use rstest::rstest;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_a_change_is_told_and_only_to_the_two_logs(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let repo = world.public(&world.alice, "project").await;
    let before = world.now(repo.id).await.updated_at;
    world.rig.clock.advance(HOUR);

    assert!(!star::unstar(world.forge(), &world.bob, &repo).await.expect("nothing to take back"));
    assert!(star::star(world.forge(), &world.bob, &repo).await.expect("starred"));
    assert!(!star::star(world.forge(), &world.bob, &repo).await.expect("starred before"));
    assert!(star::is_starred(world.forge(), &world.bob, &repo).await.expect("readable"));
    assert!(!star::is_starred(world.forge(), &Caller::anonymous(None), &repo).await.expect("readable"));
    assert_eq!(world.now(repo.id).await.star_count, 1);
    let people = star::stargazers(world.forge(), &repo, FIRST).await.expect("readable");
    assert_eq!(names(&people), ["bob"]);
    assert!(star::unstar(world.forge(), &world.bob, &repo).await.expect("taken back"));
    assert_eq!(world.now(repo.id).await.star_count, 0);

    assert_eq!(world.deeds("bob").await, ["star", "unstar"]);
    assert_eq!(world.audited(&repo).await, ["repo_created", "push"], "a stranger's address is not the owner's to read");
    assert_eq!((world.events("star").await, world.events("unstar").await), (1, 1));
    assert_eq!(world.now(repo.id).await.updated_at, before);
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_as_public_as_its_repository_was(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let open = world.public(&world.alice, "open").await;
    let hidden = world.repo(&world.alice, "hidden", Visibility::Private).await;
    for repo in [&open, &hidden] {
        star::star(world.forge(), &world.alice, repo).await.expect("starred");
    }
    sequencer::catch_up(world.forge()).await.expect("numbered");
    let all = events::after(&mut world.rig.store.read().await.expect("readable"), 0, 100).await.expect("readable");
    let reported: Vec<_> = all.iter().filter(|event| event.kind == "star").collect();
    assert_eq!(reported.iter().map(|event| event.public).collect::<Vec<_>>(), [true, false]);
    let stored = stored_json(&world.rig.store, reported[0].seq).await;
    assert!(stored.contains("\"slug\":\"alice/open\""), "{stored}");
    assert_eq!(reported[0].repo, Some(open.id));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_star_needs_a_login_in_good_standing_and_something_to_read(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let (open, hidden) =
        (world.public(&world.alice, "open").await, world.repo(&world.alice, "hidden", Visibility::Private).await);
    let forge = world.forge();
    for nobody in [Caller::anonymous(None), Caller::operator()] {
        let refused = star::star(forge, &nobody, &open).await;
        assert!(matches!(refused, Err(AttentionError::Access(Access::Denied(DenyCode::LoginRequired)))), "{refused:?}");
    }
    for caller in [&world.bob, &Caller::anonymous(None)] {
        let refused = star::star(forge, caller, &hidden).await;
        assert!(matches!(refused, Err(AttentionError::Access(Access::NotFound))), "{refused:?}");
    }
    let archived = marks::archive(forge, &world.alice, &open).await.expect("archived");
    assert!(star::star(forge, &world.bob, &archived).await.expect("what is archived can be starred"));
    let bob = world.account("bob").await;
    suspend::set_suspended(forge, bob.id, true).await.expect("suspended");
    let caller = world.rig.caller("bob").await;
    let refused = star::unstar(forge, &caller, &open).await;
    assert!(matches!(refused, Err(AttentionError::Access(Access::Denied(DenyCode::Suspended)))), "{refused:?}");
    assert_eq!(world.now(open.id).await.star_count, 0);
    suspend::set_suspended(forge, bob.id, false).await.expect("back");
    assert_eq!(world.now(open.id).await.star_count, 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn so_many_in_an_hour_and_no_more(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig_with(engine, |settings| settings.attention.stars.times = 3).await;
    let world = of(rig).await;
    let (forge, bob) = (world.forge(), &world.bob);
    let repo = world.public(&world.alice, "project").await;
    star::star(forge, bob, &repo).await.expect("the first");
    star::star(forge, bob, &repo).await.expect("the second, though it changes nothing");
    world.rig.clock.advance(HOUR / 4);
    star::unstar(forge, bob, &repo).await.expect("the third");
    let refused = star::star(forge, bob, &repo).await;
    let Err(AttentionError::TooOften { retry_after }) = refused else { panic!("{refused:?}") };
    assert_eq!(retry_after, HOUR * 3 / 4);
    assert_eq!(world.events("star").await, 1);
    star::star(forge, &world.alice, &repo).await.expect("everyone has an hour of their own");
    world.rig.clock.advance(retry_after);
    star::star(forge, bob, &repo).await.expect("the next hour");
    assert_eq!(world.now(repo.id).await.star_count, 2);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn stars_stay_through_a_repositorys_life_and_go_with_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let carol = world.rig.user("carol").await;
    let repo = world.public(&world.alice, "project").await;
    star::star(forge, &carol, &repo).await.expect("starred");
    let starred = async |by: &Caller| {
        let carol = world.account("carol").await;
        let (list, total) = star::of_user(forge, by, carol.id, FIRST).await.expect("readable");
        assert_eq!(list.len() as i64, total);
        total
    };

    let repo = rename::rename(forge, &world.alice, &repo, "renamed").await.expect("renamed").repo;
    let operator = Caller::operator();
    let repo = transfer::hand_over(forge, &operator, &repo, "bob").await.expect("handed over");
    assert_eq!((world.now(repo.id).await.star_count, starred(&carol).await), (1, 1));

    let repo = marks::set_visibility(forge, &world.bob, &repo, Visibility::Private).await.expect("hidden");
    assert_eq!((starred(&carol).await, starred(&world.bob).await), (0, 1));
    let repo = marks::set_visibility(forge, &world.bob, &repo, Visibility::Public).await.expect("shown");
    assert_eq!(starred(&carol).await, 1);

    delete::delete(forge, &world.bob, &repo).await.expect("deleted");
    assert_eq!((starred(&carol).await, starred(&world.bob).await), (0, 0));
    restore::restore(forge, &world.bob, &repo.id.to_string(), None).await.expect("restored");
    assert_eq!((starred(&carol).await, world.now(repo.id).await.star_count), (1, 1));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_finds_a_wrong_counter_and_counts_again(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    const SPOIL: abide_store::Sql = abide_store::Sql::new(
        "test",
        "SPOIL",
        "UPDATE repos SET star_count = 7, watcher_count = 7",
        "UPDATE repos SET star_count = 7, watcher_count = 7",
    );
    let world = world(engine).await;
    let repo = world.public(&world.alice, "project").await;
    star::star(world.forge(), &world.bob, &repo).await.expect("starred");
    let spoilt: Result<u64, abide_store::StoreError> =
        world.rig.store.write((), |tx, _| Box::pin(async move { tx.execute(&SPOIL, &[]).await })).await;
    assert_eq!(spoilt.expect("written"), 1);

    let findings = doctor::examine(world.forge()).await.expect("examined").findings;
    assert_eq!(findings.iter().map(|found| found.check).collect::<Vec<_>>(), ["counter", "counter"]);
    doctor::fix(world.forge()).await.expect("fixed");
    world.assert_healthy().await;
    let repo = world.now(repo.id).await;
    assert_eq!((repo.star_count, repo.watcher_count), (1, 1), "alice watches what is hers");
}
