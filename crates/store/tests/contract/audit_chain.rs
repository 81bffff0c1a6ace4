//! The audit log reveals tampering.

use crate::sequencer::{KEY, happen, lead, step};
use crate::support::{Raw, World};
use abide_core::audit::Action;
use abide_store::audit::{self, ChainReport};
use abide_store::sequencer;
use abide_testkit::Engine;
use rstest::rstest;

async fn verify(world: &World, key: &[u8]) -> ChainReport {
    audit::verify(&mut world.store.read().await.unwrap(), key).await.unwrap()
}

/// A log of five sealed rows.
async fn sealed(engine: Engine) -> World {
    let world = World::new(engine).await;
    happen(&world.store, 5).await;
    step(&world.store, &lead(&world.store).await, 100).await.unwrap();
    world
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_untouched_chain_holds_and_unsealed_rows_are_counted(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    assert_eq!(verify(&world, KEY).await, ChainReport { sealed: 0, unsealed: 0, broken_at: None });
    happen(&world.store, 5).await;
    assert_eq!(verify(&world, KEY).await, ChainReport { sealed: 0, unsealed: 5, broken_at: None });

    let lease = lead(&world.store).await;
    step(&world.store, &lease, 2).await.unwrap();
    assert_eq!(verify(&world, KEY).await, ChainReport { sealed: 2, unsealed: 3, broken_at: None });
    step(&world.store, &lease, 100).await.unwrap();
    assert_eq!(verify(&world, KEY).await, ChainReport { sealed: 5, unsealed: 0, broken_at: None });
}

/// Tampering with rows, and the position at which it is found.
const TAMPERING: &[(&str, &str, i64)] = &[
    ("an altered id", "UPDATE tampered SET id = 999 WHERE seq = 3", 3),
    ("an altered place", "UPDATE tampered SET seq = 999 WHERE seq = 3", 3),
    ("a withdrawn place", "UPDATE tampered SET seq = NULL WHERE seq = 3", 3),
    ("an altered link", "UPDATE tampered SET prev_hash = hash WHERE seq = 3", 3),
    ("a removed link", "UPDATE tampered SET prev_hash = NULL WHERE seq = 3", 3),
    ("an altered seal", "UPDATE tampered SET hash = prev_hash WHERE seq = 3", 3),
    ("a removed seal", "UPDATE tampered SET hash = NULL WHERE seq = 3", 3),
    ("an altered actor", "UPDATE tampered SET actor_user_id = 7 WHERE seq = 3", 3),
    ("an altered action", "UPDATE tampered SET action = 'repo:read' WHERE seq = 3", 3),
    ("an altered repository", "UPDATE tampered SET repo_id = 7 WHERE seq = 3", 3),
    ("an altered address", "UPDATE tampered SET ip = '192.0.2.2' WHERE seq = 3", 3),
    ("a removed address", "UPDATE tampered SET ip = NULL WHERE seq = 3", 3),
    ("an emptied address", "UPDATE tampered SET ip = '' WHERE seq = 3", 3),
    ("altered details", "UPDATE tampered SET meta = '{}' WHERE seq = 3", 3),
    ("an altered time", "UPDATE tampered SET created_at = created_at + 1 WHERE seq = 3", 3),
    ("text moved to the next field", "UPDATE tampered SET action = 'repo:rename1', ip = '92.0.2.1' WHERE seq = 3", 3),
    ("a removed first row", "DELETE FROM tampered WHERE seq = 1", 1),
    ("a removed row", "DELETE FROM tampered WHERE seq = 3", 3),
    ("a removed last row", "DELETE FROM tampered WHERE seq = 5", 5),
    ("all rows removed", "DELETE FROM tampered", 1),
    (
        "a row removed and the rest moved up",
        "DELETE FROM tampered WHERE seq = 3; UPDATE tampered SET seq = seq - 1 WHERE seq > 3",
        3,
    ),
    ("swapped rows", "UPDATE tampered SET seq = 5 - seq WHERE seq IN (2, 3)", 2),
    ("an altered last row", "UPDATE tampered SET meta = '{}' WHERE seq = 5", 5),
];

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn tampering_shows_at_its_place(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = sealed(engine).await;
    let mut raw = world.raw().await;
    raw.execute("CREATE TABLE original AS SELECT * FROM audit_log").await;

    for (what, tampering, position) in TAMPERING {
        raw.execute("CREATE TABLE tampered AS SELECT * FROM original").await;
        raw.execute(tampering).await;
        replace_log(&mut raw, "tampered").await;
        assert_eq!(verify(&world, KEY).await.broken_at, Some(*position), "{what}");
        raw.execute("DROP TABLE tampered").await;
    }

    replace_log(&mut raw, "original").await;
    assert_eq!(verify(&world, KEY).await.broken_at, None, "the rows as they were");
}

async fn replace_log(raw: &mut Raw, by: &str) {
    // PostgreSQL gives ids out itself unless told otherwise.
    let ids = if matches!(raw, Raw::Postgres(_)) { "OVERRIDING SYSTEM VALUE" } else { "" };
    raw.execute(&format!("DELETE FROM audit_log; INSERT INTO audit_log {ids} SELECT * FROM {by}")).await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_was_sealed_with_another_key_shows(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = sealed(engine).await;
    crate::leases::release(&world.store, &abide_store::leases::Lease { name: sequencer::LEASE.into(), token: 1 }).await;
    let lease = lead(&world.store).await;
    happen(&world.store, 1).await;
    crate::support::unit!(world.store, lease, |tx, lease| sequencer::step(tx, lease, b"another", 100).await)
        .await
        .unwrap();

    assert_eq!(verify(&world, KEY).await, ChainReport { sealed: 5, unsealed: 0, broken_at: Some(6) });
    assert_eq!(verify(&world, b"another").await.broken_at, Some(1));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_chain_longer_than_a_page_is_walked_to_its_end(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let mut raw = world.raw().await;
    raw.execute(
        "INSERT INTO audit_log (action, meta, created_at)
         WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 2000)
         SELECT 'repo:rename', '{}', n FROM counted",
    )
    .await;
    let lease = lead(&world.store).await;
    step(&world.store, &lease, 5000).await.unwrap();
    assert_eq!(verify(&world, KEY).await, ChainReport { sealed: 2000, unsealed: 0, broken_at: None });

    raw.execute("UPDATE audit_log SET meta = '[]' WHERE seq = 1999").await;

    assert_eq!(verify(&world, KEY).await.broken_at, Some(1999));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_rows_of_a_repository_are_listed_newest_first(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = World::new(engine).await;
    let repo = abide_core::RepoId::new(7);
    for action in [Action::RepoCreated, Action::RepoEdited, Action::RepoSoftDeleted] {
        crate::support::unit!(world.store, action, |tx, action| {
            let entry =
                audit::Entry { actor: None, action: *action, repo: Some(repo), ip: None, meta: serde_json::json!({}) };
            audit::append(tx, &entry).await
        })
        .await
        .unwrap();
    }
    happen(&world.store, 1).await;

    let records = audit::page_of_repo(&mut world.store.read().await.unwrap(), repo, i64::MAX, 2).await.unwrap();

    assert_eq!(
        records.iter().map(|record| record.record.action.as_str()).collect::<Vec<_>>(),
        ["repo_soft_deleted", "repo_edited"]
    );
}
