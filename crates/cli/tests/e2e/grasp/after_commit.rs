//! An event whose row is committed is never answered with a refusal, whatever fails after that.

use super::setup::{Setup, WAITS, now, state};
use crate::support::query;
use abide_testkit::{Engine, Key, eventually};
use rstest::rstest;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Puts a file where the objects of the newest repository are; returns their directory.
fn break_newest(setup: &Setup) -> PathBuf {
    let objects = setup.directories().into_iter().max().expect("there is one").join("objects");
    std::fs::rename(&objects, objects.with_extension("aside")).expect("a directory can be moved");
    std::fs::write(&objects, "not a directory").expect("a file can be written");
    objects
}

fn mend(objects: &Path) {
    std::fs::remove_file(objects).expect("a file can be removed");
    std::fs::rename(objects.with_extension("aside"), objects).expect("a directory can be moved");
}

/// The repository of a maintainer who uses the same identifier cannot be read: settling the identifier fails.
#[rstest]
fn a_state_that_is_stored_is_acknowledged_though_settling_fails(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let (owner, other) = (setup.owner.clone(), Key::new(2));
    setup.served(&owner, "demo", &[]);
    setup.served(&other, "demo", &[]);
    let maintainer = other.public().to_hex();
    let newer = setup.announcement(&owner, now() - 3, "demo", &[&["maintainers", &maintainer]]);
    assert_eq!(setup.relay.publish(&newer), (true, String::new()));
    let objects = break_newest(&setup);
    let first = setup.first.clone();
    let refs: &[(&str, &str)] = &[("refs/heads/main", &first), ("refs/tags/v1", &first)];
    let said = state(&owner, now(), "demo", refs, Some("main"));
    assert_eq!(setup.say(&said), (true, String::new()));
    assert!(setup.is_served(&said));
    assert!(setup.refs(&owner, "demo").contains(&("refs/tags/v1".to_owned(), first)));
    assert!(
        setup.server.log().contains("cannot settle repositories of an identifier; their job retries"),
        "settling failed: {}",
        setup.server.log()
    );
    mend(&objects);
    setup.assert_healthy();
}

/// The job that was queued with the announcement promotes it once the repository with the objects can be read again.
#[rstest]
fn an_announcement_that_waits_is_acknowledged_though_settling_fails(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let (owner, other) = (setup.owner.clone(), Key::new(2));
    setup.served(&owner, "demo", &[]);
    let lead = owner.public().to_hex();
    let objects = break_newest(&setup);
    let announced = setup.announcement(&other, now() - 10, "demo", &[&["maintainers", &lead]]);
    assert_eq!(setup.relay.publish(&announced), (true, WAITS.to_owned()));
    assert_eq!(setup.relay.publish(&announced), (true, "duplicate: in purgatory".to_owned()));
    mend(&objects);
    eventually(Duration::from_secs(60), || {
        // The pause before the next try is over.
        query(&setup.server, "UPDATE jobs SET run_at = 0 WHERE kind = 'grasp:settle' AND state = 'waiting'");
        setup.is_served(&announced)
    });
    assert!(setup.refs(&other, "demo").contains(&("refs/heads/main".to_owned(), setup.first.clone())));
    setup.assert_healthy();
}
