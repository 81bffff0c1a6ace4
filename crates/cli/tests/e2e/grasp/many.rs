//! Much at once.

use super::setup::{Setup, now, state};
use crate::support::builder;
use abide_testkit::Engine;
use rstest::rstest;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[rstest]
fn heavy_a_state_of_ten_thousand_refs(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    // A git that notes each time it is called.
    let dir = tempfile::tempdir().expect("a directory can be made");
    let (counting, calls) = (dir.path().join("git"), dir.path().join("calls"));
    let script = format!("#!/bin/sh\necho \"$*\" >> '{}'\nexec git \"$@\"\n", calls.display());
    fs::write(&counting, script).expect("writable");
    fs::set_permissions(&counting, fs::Permissions::from_mode(0o755)).expect("ours");
    let binary = counting.to_str().expect("UTF-8").to_owned();
    let mut setup = Setup::on(builder(engine).env("ABIDE_GIT__BINARY", &binary).start());
    let key = setup.owner.clone();
    setup.announce(&key, "demo", &[]);
    let first = setup.first.clone();
    let names: Vec<String> = (0..10_000).map(|n| format!("refs/tags/v{n}")).collect();
    let mut refs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), first.as_str())).collect();
    refs.push(("refs/heads/main", &first));
    let said = state(&key, now() - 5, "demo", &refs, Some("main"));
    setup.state_waits(&said);
    // The objects of the tags came with the branch, so nobody has to push them.
    setup.push(&key, "demo", &["main"]);
    assert!(setup.is_served(&said));
    assert_eq!(setup.refs(&key, "demo").len(), 10_002);
    // One that is here already: 5,000 of them go, without a push.
    let fewer = state(&key, now() - 1, "demo", &refs[5_000..], Some("main"));
    assert_eq!(setup.say(&fewer), (true, String::new()));
    assert_eq!(setup.refs(&key, "demo").len(), 5_002);
    let called = fs::read_to_string(&calls).expect("git was called");
    assert!((5..100).contains(&called.lines().count()), "{} processes:\n{called}", called.lines().count());
    setup.assert_healthy();
}

#[rstest]
fn a_branch_gives_way_to_one_below_its_name(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let first = setup.first.clone();
    let one = [("refs/heads/main", first.as_str()), ("refs/heads/a", first.as_str())];
    assert!(setup.say(&state(&key, now() - 4, "demo", &one, None)).0);
    let other = [("refs/heads/main", first.as_str()), ("refs/heads/a/b", first.as_str())];
    assert_eq!(setup.say(&state(&key, now() - 3, "demo", &other, None)), (true, String::new()));
    assert!(setup.refs(&key, "demo").contains(&("refs/heads/a/b".into(), first.clone())));
    assert_eq!(setup.say(&state(&key, now() - 2, "demo", &one, None)), (true, String::new()));
    assert!(setup.refs(&key, "demo").contains(&("refs/heads/a".into(), first)));
    setup.assert_healthy();
}
