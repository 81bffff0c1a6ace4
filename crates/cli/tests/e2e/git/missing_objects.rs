//! A repository that has lost objects: the doctor sees it, and there is a way back.

use super::setup::{Road, Setup, clone};
use crate::full_disk::FULL;
use crate::support::{assert_healthy, query};
use abide_testkit::{Engine, http};
use rstest::rstest;
use serde_json::json;
use std::fs;

/// Removes an object of Alice's repository from the disk.
fn lose(setup: &Setup, revision: &str) -> String {
    let oid = setup.stored(&["rev-parse", revision]);
    fs::remove_file(setup.bare().join("objects").join(&oid[..2]).join(&oid[2..])).expect("it is a file of its own");
    oid
}

fn doctor(setup: &Setup, args: &[&str]) -> (bool, String) {
    let output = setup.server.cli(&[&["doctor"], args].concat());
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[rstest]
fn the_doctor_finds_a_lost_object_and_brings_it_back_from_a_fork(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(Road::Http, engine);
    let bob = setup.person("bob");
    setup.pushed();
    let fork = http::post(setup.server.http_addr(), "/api/v3/repos/alice/demo/forks", Some(&bob.token), &json!({}));
    assert_eq!(fork.status, 202, "{}", fork.text());
    let blob = lose(&setup, "HEAD:README.md");

    let (healthy, reported) = doctor(&setup, &[]);
    assert!(!healthy && reported.contains("alice/demo") && reported.contains(&blob), "{reported}");
    let (healthy, reported) = doctor(&setup, &["--deep"]);
    assert!(
        !healthy && reported.contains(&format!("lacks 1 objects that its refs need, such as {blob}")),
        "{reported}"
    );

    let full = setup.server.command(&["doctor", "--deep", "--fix"]).env(FULL.0, FULL.1).output().expect("it runs");
    let reported = String::from_utf8_lossy(&full.stdout);
    assert!(
        !full.status.success() && reported.contains("left alice/demo") && reported.contains("nearly full"),
        "{reported}"
    );

    let (healthy, reported) = doctor(&setup, &["--deep", "--fix"]);
    assert!(healthy && reported.contains("found 1 missing objects of alice/demo"), "{reported}");
    setup.clone(&["--mirror"]);
    assert_healthy(&setup.server);
}

#[rstest]
fn the_doctor_says_which_repositories_are_too_large_to_be_walked_and_looks_at_their_tips(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(Road::Http, engine);
    let (work, _) = setup.pushed();
    setup.git().commit_file(&work, "more", "more\n", "More");
    setup.git().ok(&work, &["push", "--quiet", "origin", "main"]);
    setup.wait_for_jobs();
    let (healthy, reported) = doctor(&setup, &[]);
    assert!(healthy && reported.contains("1 of them completely") && !reported.contains("64 MiB"), "{reported}");
    query(&setup.server, "UPDATE repos SET size_bytes = 100000000");
    let (healthy, reported) = doctor(&setup, &[]);
    assert!(healthy && reported.contains("0 of them completely"), "{reported}");
    assert!(
        reported.contains("1 larger than 64 MiB") && reported.contains("`abide doctor --deep` checks all objects"),
        "{reported}"
    );
    let tree = lose(&setup, "HEAD^{tree}");
    let (healthy, reported) = doctor(&setup, &["--json"]);
    assert!(!healthy && reported.contains(&tree) && reported.contains("\"repositories_too_large\": 1"), "{reported}");
    let (healthy, reported) = doctor(&setup, &["--deep"]);
    assert!(!healthy && reported.contains(&tree) && !reported.contains("larger than"), "{reported}");
}

#[rstest]
fn the_doctor_finds_a_ref_without_its_commit_and_a_clone_brings_it_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(Road::Http, engine);
    let (work, first) = setup.pushed();
    assert_eq!(lose(&setup, "HEAD"), first);
    let (healthy, reported) = doctor(&setup, &["--fix"]);
    assert!(!healthy && reported.contains("lacks 1 objects") && reported.contains(&first), "{reported}");

    // As docs/operating.md says.
    let pack = setup.git().command(&work, &["pack-objects", "--all", "--stdout", "-q"]).output().expect("git runs");
    setup.git().feed(&setup.bare(), &["index-pack", "--stdin"], move |input| input.write_all(&pack.stdout));
    let (healthy, reported) = doctor(&setup, &["--deep"]);
    assert!(healthy, "{reported}");
    clone(setup.git(), &setup.url(), &["--mirror"]);
}

#[rstest]
fn the_doctor_goes_on_with_others_where_git_cannot_walk_a_repository(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(Road::Http, engine);
    setup.pushed();
    let tip = setup.stored(&["rev-parse", "HEAD"]);
    let broken = setup.bare().join("objects").join(&tip[..2]).join(&tip[2..]);
    // A second repository with a fork, behind the first in the order of ids.
    setup.alice.create(&setup.server, "other", false);
    let bob = setup.person("bob");
    let work = setup.git().init_work_tree();
    setup.git().commit_file(&work, "file", "text of the other\n", "other");
    setup.git().ok(&work, &["push", "--quiet", &setup.server.http_url("alice", "other"), "main"]);
    let fork = http::post(setup.server.http_addr(), "/api/v3/repos/alice/other/forks", Some(&bob.token), &json!({}));
    assert_eq!(fork.status, 202, "{}", fork.text());
    let id: i64 = query(&setup.server, "SELECT MIN(id) FROM repos WHERE name = 'other'").parse().expect("a number");
    let other = setup.server.data_dir().join(format!("repos/{:02x}/{id}.git", id & 0xff));
    let blob = setup.git().ok(&other, &["rev-parse", "main:file"]);
    fs::remove_file(other.join("objects").join(&blob[..2]).join(&blob[2..])).expect("it is a file of its own");
    let good = fs::read(&broken).expect("it is a file of its own");
    fs::remove_file(&broken).expect("ours");
    fs::write(&broken, "garbage").expect("ours");

    let (healthy, reported) = doctor(&setup, &["--deep", "--fix"]);
    assert!(!healthy && reported.contains("left alice/demo"), "{reported}");
    assert!(reported.contains("found 1 missing objects of alice/other"), "{reported}");
    assert_eq!(setup.git().ok(&other, &["cat-file", "-p", &blob]), "text of the other");
    let (healthy, reported) = doctor(&setup, &["--fix"]);
    assert!(!healthy && reported.contains("alice/demo") && !reported.contains("alice/other"), "{reported}");

    fs::write(&broken, good).expect("ours");
    assert_healthy(&setup.server);
}
