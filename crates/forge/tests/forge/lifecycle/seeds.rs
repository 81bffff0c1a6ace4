//! Promises of the repository life cycle that no other test covers.

use super::*;
use abide_core::audit::Action;
use abide_forge::attention::{star, watch};
use abide_forge::repos::{delete, fork, marks, purge, redirects};
use abide_store::audit;
use rstest::rstest;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn making_a_forked_source_private_leaves_its_forks_as_they_are(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let source = world.public(&world.alice, "tool").await;
    let request = fork::Request { name: Some("copy".into()), default_branch_only: false };
    let copy = fork::fork(world.forge(), &world.bob, &source, request).await.expect("forked").repo;
    let hidden =
        marks::set_visibility(world.forge(), &world.alice, &source, Visibility::Private).await.expect("hidden");
    assert_eq!(world.leads(&world.bob, "alice/tool").await, None);
    assert_eq!(world.leads(&Caller::anonymous(None), "bob/copy").await, Some(copy.id.get()), "it stays public");
    marks::set_visibility(world.forge(), &world.bob, &copy, Visibility::Private).await.expect("hidden");
    marks::set_visibility(world.forge(), &world.alice, &hidden, Visibility::Public).await.expect("shown");
    assert_eq!(world.leads(&Caller::anonymous(None), "bob/copy").await, None, "and private");
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn removal_for_good_keeps_the_row_in_the_audit_log_and_takes_old_names_and_offers(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let repo = world.public(&world.alice, "one").await;
    let repo = world.rename(&repo, "two").await;
    star::star(world.forge(), &world.bob, &repo).await.expect("starred");
    watch::set(world.forge(), &world.bob, &repo, abide_core::WatchLevel::All).await.expect("watched");
    let offer = world.offer(&repo).await;
    assert_eq!(redirects::list(world.forge(), &world.alice, &repo).await.expect("readable").len(), 1);
    delete::delete(world.forge(), &world.alice, &repo).await.expect("deleted");
    world.rig.clock.advance(8 * DAY);
    assert_eq!(purge::sweep(world.forge()).await.expect("swept").removed, 1);

    let mut conn = world.rig.store.read().await.expect("readable");
    let filter = audit::Filter { action: Some(Action::RepoHardDeleted), ..audit::Filter::default() };
    let rows = audit::page(&mut conn, &filter, i64::MAX, 10).await.expect("readable");
    let meta: serde_json::Value = serde_json::from_str(&rows[0].record.meta).expect("JSON");
    assert_eq!((&meta["slug"], &meta["name"]), (&"alice/two".into(), &"two".into()));
    assert_eq!((&meta["star_count"], &meta["watcher_count"]), (&1.into(), &2.into()));
    for field in ["id", "owner_id", "visibility", "default_branch", "created_at", "updated_at", "deleted_at"] {
        assert!(!meta[field].is_null(), "{field}: {meta}");
    }
    drop(conn);
    for slug in ["alice/one", "alice/two"] {
        assert_eq!(world.leads(&world.alice, slug).await, None, "{slug}");
    }
    let gone = transfer::see(world.forge(), &world.bob, &offer).await;
    assert!(matches!(gone, Err(Access::NotFound)), "{gone:?}");
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_expires_is_nobody_elses_business(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let repo = world.public(&world.alice, "tool").await;
    world.offer(&repo).await;
    world.rig.clock.advance(8 * DAY);
    assert_eq!(purge::sweep(world.forge()).await.expect("swept").expired, 1);
    abide_forge::sequencer::catch_up(world.forge()).await.expect("numbered");
    let mut conn = world.rig.store.read().await.expect("readable");
    let all = events::after(&mut conn, 0, 1000).await.expect("readable");
    let public = |kind: &str| all.iter().find(|event| event.kind == kind).map(|event| event.public);
    assert_eq!(public("repo_transfer_requested"), Some(false));
    assert_eq!(public("repo_transfer_expired"), Some(false));
}
