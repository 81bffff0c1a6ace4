//! A repository that has lost objects: the doctor sees it, and there is a way back.

use super::scene::{Road, Scene, clone};
use crate::full_disk::FULL;
use crate::support::{assert_healthy, query};
use abide_testkit::{Engine, http};
use rstest::rstest;
use serde_json::json;
use std::fs;

/// Removes an object of Alice's repository from the disk.
fn lose(scene: &Scene, revision: &str) -> String {
    let oid = scene.stored(&["rev-parse", revision]);
    fs::remove_file(scene.bare().join("objects").join(&oid[..2]).join(&oid[2..])).expect("it is a file of its own");
    oid
}

fn doctor(scene: &Scene, args: &[&str]) -> (bool, String) {
    let output = scene.server.cli(&[&["doctor"], args].concat());
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[rstest]
fn the_doctor_finds_a_lost_object_and_brings_it_back_from_a_fork(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(Road::Http, engine);
    let bob = scene.person("bob");
    scene.pushed();
    let fork = http::post(scene.server.http_addr(), "/api/v3/repos/alice/demo/forks", Some(&bob.token), &json!({}));
    assert_eq!(fork.status, 202, "{}", fork.text());
    let blob = lose(&scene, "HEAD:README.md");

    let (healthy, reported) = doctor(&scene, &[]);
    assert!(!healthy && reported.contains("alice/demo") && reported.contains(&blob), "{reported}");
    let (healthy, reported) = doctor(&scene, &["--deep"]);
    assert!(
        !healthy && reported.contains(&format!("lacks 1 objects that its refs need, such as {blob}")),
        "{reported}"
    );

    let full = scene.server.command(&["doctor", "--deep", "--fix"]).env(FULL.0, FULL.1).output().expect("it runs");
    let reported = String::from_utf8_lossy(&full.stdout);
    assert!(
        !full.status.success() && reported.contains("left alice/demo") && reported.contains("nearly full"),
        "{reported}"
    );

    let (healthy, reported) = doctor(&scene, &["--deep", "--fix"]);
    assert!(healthy && reported.contains("found 1 missing objects of alice/demo"), "{reported}");
    scene.clone(&["--mirror"]);
    assert_healthy(&scene.server);
}

#[rstest]
fn the_doctor_says_which_repositories_are_too_large_to_be_walked_and_looks_at_their_tips(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(Road::Http, engine);
    let (work, _) = scene.pushed();
    scene.git().commit_file(&work, "more", "more\n", "More");
    scene.git().ok(&work, &["push", "--quiet", "origin", "main"]);
    scene.wait_for_jobs();
    let (healthy, reported) = doctor(&scene, &[]);
    assert!(healthy && reported.contains("1 of them completely") && !reported.contains("64 MiB"), "{reported}");
    query(&scene.server, "UPDATE repos SET size_bytes = 100000000");
    let (healthy, reported) = doctor(&scene, &[]);
    assert!(healthy && reported.contains("0 of them completely"), "{reported}");
    assert!(
        reported.contains("1 larger than 64 MiB") && reported.contains("`abide doctor --deep` checks all objects"),
        "{reported}"
    );
    let tree = lose(&scene, "HEAD^{tree}");
    let (healthy, reported) = doctor(&scene, &["--json"]);
    assert!(!healthy && reported.contains(&tree) && reported.contains("\"repositories_too_large\": 1"), "{reported}");
    let (healthy, reported) = doctor(&scene, &["--deep"]);
    assert!(!healthy && reported.contains(&tree) && !reported.contains("larger than"), "{reported}");
}

#[rstest]
fn the_doctor_finds_a_ref_without_its_commit_and_a_clone_brings_it_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(Road::Http, engine);
    let (work, first) = scene.pushed();
    assert_eq!(lose(&scene, "HEAD"), first);
    let (healthy, reported) = doctor(&scene, &["--fix"]);
    assert!(!healthy && reported.contains("lacks 1 objects") && reported.contains(&first), "{reported}");

    // As docs/operating.md says.
    let pack = scene.git().command(&work, &["pack-objects", "--all", "--stdout", "-q"]).output().expect("git runs");
    scene.git().feed(&scene.bare(), &["index-pack", "--stdin"], move |input| input.write_all(&pack.stdout));
    let (healthy, reported) = doctor(&scene, &["--deep"]);
    assert!(healthy, "{reported}");
    clone(scene.git(), &scene.url(), &["--mirror"]);
}

#[rstest]
fn the_doctor_goes_on_with_others_where_git_cannot_walk_a_repository(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(Road::Http, engine);
    scene.pushed();
    let tip = scene.stored(&["rev-parse", "HEAD"]);
    let broken = scene.bare().join("objects").join(&tip[..2]).join(&tip[2..]);
    // A second repository with a fork, behind the first in the order of ids.
    scene.alice.create(&scene.server, "other", false);
    let bob = scene.person("bob");
    let work = scene.git().init_work_tree();
    scene.git().commit_file(&work, "file", "text of the other\n", "other");
    scene.git().ok(&work, &["push", "--quiet", &scene.server.http_url("alice", "other"), "main"]);
    let fork = http::post(scene.server.http_addr(), "/api/v3/repos/alice/other/forks", Some(&bob.token), &json!({}));
    assert_eq!(fork.status, 202, "{}", fork.text());
    let id: i64 = query(&scene.server, "SELECT MIN(id) FROM repos WHERE name = 'other'").parse().expect("a number");
    let other = scene.server.data_dir().join(format!("repos/{:02x}/{id}.git", id & 0xff));
    let blob = scene.git().ok(&other, &["rev-parse", "main:file"]);
    fs::remove_file(other.join("objects").join(&blob[..2]).join(&blob[2..])).expect("it is a file of its own");
    let good = fs::read(&broken).expect("it is a file of its own");
    fs::remove_file(&broken).expect("ours");
    fs::write(&broken, "garbage").expect("ours");

    let (healthy, reported) = doctor(&scene, &["--deep", "--fix"]);
    assert!(!healthy && reported.contains("left alice/demo"), "{reported}");
    assert!(reported.contains("found 1 missing objects of alice/other"), "{reported}");
    assert_eq!(scene.git().ok(&other, &["cat-file", "-p", &blob]), "text of the other");
    let (healthy, reported) = doctor(&scene, &["--fix"]);
    assert!(!healthy && reported.contains("alice/demo") && !reported.contains("alice/other"), "{reported}");

    fs::write(&broken, good).expect("ours");
    assert_healthy(&scene.server);
}
