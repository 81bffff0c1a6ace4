//! An event whose row is committed is never answered with a refusal, whatever fails after that.

use super::scene::{Scene, WAITS, now, state};
use crate::support::query;
use abide_testkit::{Engine, Key, eventually};
use rstest::rstest;
use std::path::PathBuf;
use std::time::Duration;

/// Moves the directory of the newest repository away; returns where it was and where it is.
fn break_newest(scene: &Scene) -> (PathBuf, PathBuf) {
    let dir = scene.directories().into_iter().max().expect("there is one");
    let aside = scene.server.data_dir().join("aside.git");
    std::fs::rename(&dir, &aside).expect("a directory can be moved");
    (dir, aside)
}

/// The repository of a maintainer who uses the same identifier cannot be read: settling the identifier fails.
#[rstest]
fn a_state_that_is_stored_is_acknowledged_though_settling_fails(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let (owner, other) = (scene.owner.clone(), Key::new(2));
    let maintainer = other.public().to_hex();
    scene.served(&owner, "demo", &[&["maintainers", &maintainer]]);
    scene.served(&other, "demo", &[]);
    let (dir, aside) = break_newest(&scene);
    let first = scene.first.clone();
    let refs: &[(&str, &str)] = &[("refs/heads/main", &first), ("refs/tags/v1", &first)];
    let said = state(&owner, now(), "demo", refs, Some("main"));
    assert_eq!(scene.say(&said), (true, String::new()));
    assert!(scene.is_served(&said));
    assert!(scene.refs(&owner, "demo").contains(&("refs/tags/v1".to_owned(), first)));
    assert!(scene.server.log().contains("left for the job that settles"), "settling failed: {}", scene.server.log());
    std::fs::rename(aside, dir).expect("a directory can be moved");
    scene.assert_healthy();
}

/// The job that was queued with the announcement promotes it once the repository with the objects can be read again.
#[rstest]
fn an_announcement_that_waits_is_acknowledged_though_settling_fails(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let (owner, other) = (scene.owner.clone(), Key::new(2));
    scene.served(&owner, "demo", &[]);
    let lead = owner.public().to_hex();
    let (dir, aside) = break_newest(&scene);
    let announced = scene.announcement(&other, now() - 10, "demo", &[&["maintainers", &lead]]);
    assert_eq!(scene.relay.publish(&announced), (true, WAITS.to_owned()));
    assert_eq!(scene.relay.publish(&announced), (true, "duplicate: in purgatory".to_owned()));
    std::fs::rename(aside, dir).expect("a directory can be moved");
    eventually(Duration::from_secs(60), || {
        // The pause before the next try is over.
        query(&scene.server, "UPDATE jobs SET run_at = 0 WHERE kind = 'grasp:settle' AND state = 'waiting'");
        scene.is_served(&announced)
    });
    assert!(scene.refs(&other, "demo").contains(&("refs/heads/main".to_owned(), scene.first.clone())));
    scene.assert_healthy();
}
