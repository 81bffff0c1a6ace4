//! The three versions of git's protocol.

use super::setup::{Road, Setup, refs, traced};
use abide_testkit::{Engine, GitClient};
use rstest::rstest;
use std::fs;
use std::path::Path;

/// Runs git and returns the version that the server answered in.
#[track_caller]
fn version_spoken(git: &GitClient, dir: &Path, args: &[&str]) -> u8 {
    let (tracing, trace) = traced(git, "GIT_TRACE_PACKET");
    tracing.ok(dir, args);
    let trace = fs::read_to_string(trace).expect("git wrote its trace");
    assert!(trace.contains("refs/heads/main"), "nothing was said: {trace}");
    let says = |version| trace.lines().any(|line| line.ends_with(&format!("< version {version}")));
    match (says(1), says(2)) {
        (false, false) => 0,
        (true, false) => 1,
        (false, true) => 2,
        (true, true) => panic!("two versions at once: {trace}"),
    }
}

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn every_version_clones_fetches_and_pushes(#[case] road: Road, #[case] engine: Engine, #[values(0, 1, 2)] version: u8) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, first) = setup.pushed();
    let asked = format!("protocol.version={version}");
    let asked = asked.as_str();

    let clone = git.fresh_dir();
    assert_eq!(version_spoken(git, &clone, &["-c", asked, "clone", "--quiet", &setup.url(), "."]), version);
    assert_eq!(git.ok(&clone, &["rev-parse", "HEAD"]), first);

    let second = git.commit_file(&work, "more.txt", "more\n", "More");
    // Version 2 has no pushes; clients that prefer it push in version 0.
    let for_pushes = if version == 2 { 0 } else { version };
    assert_eq!(version_spoken(git, &work, &["-c", asked, "push", "--quiet", "origin", "main"]), for_pushes);
    assert_eq!(setup.refs(), refs([("refs/heads/main", &second)]));

    assert_eq!(version_spoken(git, &clone, &["-c", asked, "fetch", "--quiet"]), version);
    assert_eq!(git.ok(&clone, &["rev-parse", "origin/main"]), second);
    setup.assert_settled(2);
}
