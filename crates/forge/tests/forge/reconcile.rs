//! Recovery of a push whose process is gone.

use crate::log::count_of_kind;
use crate::rig::{Rig, rig};
use abide_core::{Oid, RefUpdate};
use abide_forge::git::reconcile;
use abide_store::repos::pushes::{self, Intent, Push};
use abide_store::{StoreError, leases, repos};
use abide_testkit::Engine;
use rstest::rstest;
use std::time::Duration;

/// A push that was begun by a process that died with the lease: two refs to move, `a` and `b`.
async fn abandoned(rig: &Rig) -> (Push, String) {
    let (repo, commit) = rig.repo_with_commit().await;
    let new: Oid = commit.parse().expect("an id");
    let update = |name: &str| RefUpdate { name: name.parse().expect("a ref"), old: Oid::ZERO, new };
    let intent = Intent {
        repo_id: repo.id,
        actor: Some(repo.owner_id),
        transport: "http",
        incoming: "push-abandoned".into(),
        updates: vec![update("refs/heads/a"), update("refs/heads/b")],
        signed: None,
    };
    std::fs::create_dir_all(rig.database.data_dir().join("incoming/push-abandoned/objects")).expect("writable");
    let push: Result<Push, StoreError> = rig
        .store
        .write(intent, |tx, intent| {
            Box::pin(async move {
                let name = pushes::lease_name(intent.repo_id);
                let lease = leases::take(tx, &name, "dead", Duration::from_secs(30)).await?.expect("free");
                let push = pushes::begin(tx, intent, &lease).await?;
                leases::release(tx, &lease).await?;
                Ok(push)
            })
        })
        .await;
    (push.expect("the intent is written"), commit)
}

async fn generation(rig: &Rig, push: &Push) -> i64 {
    let mut conn = rig.store.read().await.expect("readable");
    repos::ref_state(&mut conn, push.repo_id).await.expect("readable").expect("there").generation
}

async fn push_events(rig: &Rig, push: &Push) -> i64 {
    count_of_kind(&rig.store, push.repo_id, "push").await
}

fn branches(rig: &Rig, push: &Push) -> String {
    rig.git(push.repo_id, &["for-each-ref", "--format=%(refname:short)"]).replace('\n', " ")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn refs_that_never_moved_abort_the_push(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig(engine).await;
    let (push, _) = abandoned(&rig).await;
    assert_eq!(generation(&rig, &push).await % 2, 1, "the dead process left it odd");

    assert_eq!(reconcile::all(&rig.forge).await.expect("reconciled"), 1);

    assert_eq!(branches(&rig, &push), "main");
    assert_eq!(push_events(&rig, &push).await, 0);
    assert_eq!(generation(&rig, &push).await % 2, 0);
    assert!(!rig.database.data_dir().join("incoming/push-abandoned").exists());
    assert_eq!(reconcile::all(&rig.forge).await.expect("reconciled"), 0, "there is nothing left to do");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn refs_that_all_moved_finish_the_push_with_one_event(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = rig(engine).await;
    let (push, commit) = abandoned(&rig).await;
    rig.git(push.repo_id, &["update-ref", "refs/heads/a", &commit]);
    rig.git(push.repo_id, &["update-ref", "refs/heads/b", &commit]);

    reconcile::all(&rig.forge).await.expect("reconciled");

    assert_eq!(push_events(&rig, &push).await, 1);
    assert_eq!(generation(&rig, &push).await % 2, 0);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_cut_short_is_completed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig(engine).await;
    let (push, commit) = abandoned(&rig).await;
    rig.git(push.repo_id, &["update-ref", "refs/heads/a", &commit]);
    std::fs::write(rig.dir(push.repo_id).join("refs/heads/stale.lock"), "").expect("writable");

    reconcile::all(&rig.forge).await.expect("reconciled");

    assert_eq!(branches(&rig, &push), "a b main");
    assert_eq!(push_events(&rig, &push).await, 1);
    assert!(!rig.dir(push.repo_id).join("refs/heads/stale.lock").exists(), "stale locks are cleared");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_still_has_its_lease_is_left_alone(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig(engine).await;
    let (repo, _) = rig.repo_with_commit().await;
    let intent = Intent {
        repo_id: repo.id,
        actor: None,
        transport: "ssh",
        incoming: "push-x".into(),
        updates: vec![],
        signed: None,
    };
    let begun: Result<(), StoreError> = rig
        .store
        .write(intent, |tx, intent| {
            Box::pin(async move {
                let name = pushes::lease_name(intent.repo_id);
                let lease = leases::take(tx, &name, "alive", Duration::from_secs(30)).await?.expect("free");
                pushes::begin(tx, intent, &lease).await.map(drop)
            })
        })
        .await;
    begun.expect("written");

    assert_eq!(reconcile::all(&rig.forge).await.expect("looked"), 0);
    let mut conn = rig.store.read().await.expect("readable");
    assert_eq!(pushes::count_running(&mut conn).await.expect("readable"), 1);
}
