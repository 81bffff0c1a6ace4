//! Cascades of removed rows.

use crate::leases::take;
use crate::sequencer::{KEY, lead, step};
use crate::support::{World, repo, run, sql, unit, user};
use abide_core::RepoId;
use abide_core::audit::Action;
use abide_core::event::{Body, Kind, Publicity, RepoThen, SubjectKind};
use abide_core::repo::Role;
use abide_store::repos::pushes::{self, Intent};
use abide_store::repos::{self, collaborators};
use abide_store::{Sql, Store, StoreError, audit, events};
use abide_testkit::{Engine, sample_payload};
use rstest::rstest;
use serde_json::json;
use std::time::Duration;

const DELETE_REPO: Sql = sql("DELETE FROM repos WHERE id = $1");
const DELETE_USER: Sql = sql("DELETE FROM users WHERE id = $1");
const FORK: Sql = sql("UPDATE repos SET fork_of_repo_id = $1 WHERE id = $2");

async fn emit_star(store: &Store, id: RepoId) {
    unit!(store, id, |tx, &id| {
        let event = events::NewEvent {
            actor: None,
            repo: Some(id),
            subject_kind: SubjectKind::Repo,
            subject_id: id.get(),
            publicity: Publicity::Public,
            body: Body { repo: RepoThen::default(), payload: sample_payload(Kind::RepoCreated) },
        };
        events::append(tx, &event).await?;
        let entry =
            audit::Entry { actor: None, action: Action::RepoCreated, repo: Some(id), ip: None, meta: json!({}) };
        audit::append(tx, &entry).await
    })
    .await
    .unwrap();
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_removed_repository_takes_its_own_rows_and_leaves_both_logs(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let (alice, bob) = (user(&world.store, "alice").await, user(&world.store, "bob").await);
    let (id, fork) = (repo(&world.store, alice, "tool").await, repo(&world.store, bob, "tool").await);
    run(&world.store, FORK, vec![id.into(), fork.into()]).await.unwrap();
    let lease = take(&world.store, &pushes::lease_name(id), Duration::from_secs(60)).await.unwrap();
    unit!(world.store, lease, |tx, lease| {
        collaborators::set(tx, id, bob, Role::Write).await?;
        let intent = Intent {
            repo_id: id,
            actor: Some(bob),
            transport: "ssh",
            incoming: "x".into(),
            updates: Vec::new(),
            signed: None,
        };
        pushes::begin(tx, &intent, lease).await.map(drop)
    })
    .await
    .unwrap();
    emit_star(&world.store, id).await;
    step(&world.store, &lead(&world.store).await, 100).await.unwrap();
    emit_star(&world.store, id).await;

    run(&world.store, DELETE_REPO, vec![id.into()]).await.unwrap();

    let mut raw = world.raw().await;
    assert_eq!(raw.number("SELECT count(*) FROM repo_collaborators").await, 0);
    assert_eq!(raw.number("SELECT count(*) FROM pushes").await, 0);
    assert_eq!(raw.number("SELECT count(*) FROM repo_ids").await, 2, "its id is never given out again");
    assert_eq!(raw.number("SELECT count(*) FROM domain_events WHERE repo_id IS NULL").await, 2);
    let mut conn = world.store.read().await.unwrap();
    assert_eq!(events::after(&mut conn, 0, 10).await.unwrap()[0].repo, None);
    assert_eq!(audit::page_of_repo(&mut conn, id, i64::MAX, 10).await.unwrap().len(), 2);
    assert_eq!(audit::verify(&mut conn, KEY).await.unwrap().broken_at, None);
    assert_eq!(repos::by_id(&mut conn, fork, None).await.unwrap().unwrap().fork_of, None);
    drop(conn);
    assert!(repo(&world.store, alice, "tool").await > fork);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_repositories_cannot_be_removed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let (alice, bob) = (user(&world.store, "alice").await, user(&world.store, "bob").await);
    let id = repo(&world.store, alice, "tool").await;
    unit!(world.store, (), |tx, _| collaborators::set(tx, id, bob, Role::Write).await).await.unwrap();

    let refused = run(&world.store, DELETE_USER, vec![alice.into()]).await;
    run(&world.store, DELETE_USER, vec![bob.into()]).await.unwrap();

    assert!(matches!(refused, Err(StoreError::Missing)));
    let mut raw = world.raw().await;
    assert_eq!(raw.number("SELECT count(*) FROM users").await, 1);
    assert_eq!(raw.number("SELECT count(*) FROM emails").await, 1);
    assert_eq!(raw.number("SELECT count(*) FROM repo_collaborators").await, 0);
}
