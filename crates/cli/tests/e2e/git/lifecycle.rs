//! A repository's life cycle for git clients: URLs that keep working, and messages that state the change.

use super::scene::{Road, SOON, Scene, clone};
use crate::support::{Person, assert_healthy, builder, crowded, query};
use abide_testkit::{Engine, GitClient, eventually, http};
use rstest::rstest;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

impl Scene {
    /// A request to the API that must succeed.
    #[track_caller]
    fn api(&self, who: &Person, method: &str, path: &str, body: &Value) -> Value {
        let request = http::Request::new(method, &format!("/api/v3{path}")).token(Some(&who.token)).json(body);
        let answer = request.send(self.server.http_addr());
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text());
        if answer.text().is_empty() { Value::Null } else { answer.json() }
    }

    pub fn edit(&self, changes: &Value) {
        self.api(&self.alice, "PATCH", "/repos/alice/demo", changes);
    }

    fn hand_over(&self, to: &Person) {
        let offer = self.api(&self.alice, "POST", "/repos/alice/demo/transfer", &json!({ "new_owner": to.name }));
        self.api(to, "POST", &format!("/repository_transfers/{}/accept", offer["id"]), &json!({}));
    }
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn assert_moved(output: &Output, to: &str) {
    let reported = stderr_of(output);
    assert!(output.status.success(), "{reported}");
    assert!(reported.contains(&format!("remote: this repository moved to {to}")), "{reported}");
}

#[rstest]
fn after_a_rename_fetch_and_push_by_the_old_address_work_and_say_where_it_moved(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(road, engine);
    let (work, _) = scene.pushed();
    scene.edit(&json!({ "name": "renamed" }));
    let new = scene.url_of("alice/renamed.git");

    let second = scene.git().commit_file(&work, "a", "two", "two");
    assert_moved(&scene.git().run(&work, &["push", "origin", "main"]), &new);
    let dir = scene.git().fresh_dir();
    assert_moved(&scene.git().run(&dir, &["clone", &scene.url(), "."]), &new);
    assert_eq!(scene.git().ok(&dir, &["rev-parse", "HEAD"]).trim(), second);
    let third = scene.git().commit_file(&work, "a", "three", "three");
    scene.git().ok(&work, &["push", "--quiet", &new, "main"]);
    assert_moved(&scene.git().run(&dir, &["fetch", "origin"]), &new);
    assert_eq!(scene.git().ok(&dir, &["rev-parse", "origin/main"]).trim(), third);

    // By the present address and by the permanent one nothing is said.
    for url in [new.clone(), scene.url_of(&format!("r/{}.git", scene.id))] {
        let output = scene.git().run(&scene.git().fresh_dir(), &["clone", &url, "."]);
        assert!(output.status.success() && !stderr_of(&output).contains("moved"), "{}", stderr_of(&output));
    }
    // Older protocols have no room for the hint over HTTP, and work.
    for version in ["0", "1"] {
        let version = format!("protocol.version={version}");
        clone(scene.git(), &scene.url(), &["-c", &version]);
    }
    assert_healthy(&scene.server);
}

#[rstest]
fn after_a_transfer_clones_keep_working_for_those_who_may(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(road, engine);
    let bob = scene.person("bob");
    let carol = scene.collaborator("carol", "write");
    let (work, _) = scene.pushed();
    scene.hand_over(&bob);
    let new = scene.url_of("bob/demo.git");

    let copy = clone(&carol.git, &scene.url(), &[]);
    carol.git.commit_file(&copy, "c", "carol", "by carol");
    assert_moved(&carol.git.run(&copy, &["push", "origin", "main"]), &new);
    assert_moved(&bob.git.run(&bob.git.fresh_dir(), &["clone", &scene.url(), "."]), &new);
    scene.git().ok(&work, &["pull", "--quiet", "origin", "main"]);
    scene.git().commit_file(&work, "b", "two", "two");
    let refused = scene.git().run(&work, &["push", "origin", "main"]);
    assert!(!refused.status.success(), "the old owner may read it like everyone, and no longer push");

    scene.api(&bob, "PATCH", "/repos/bob/demo", &json!({ "private": true }));
    let gone = scene.git().run(&work, &["fetch", "origin"]);
    let never = scene.git().run(&work, &["fetch", &scene.url_of("alice/never.git")]);
    assert_eq!(
        stderr_of(&gone).replace("demo", "never"),
        stderr_of(&never),
        "a private one looks like none, and tells no name"
    );
    assert_healthy(&scene.server);
}

#[rstest]
fn an_archived_repository_is_read_and_not_written(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(road, engine);
    let bob = scene.person("bob");
    let (work, _) = scene.pushed();
    scene.edit(&json!({ "archived": true }));
    scene.clone(&[]);
    scene.git().commit_file(&work, "a", "two", "two");
    let refused = scene.git().run(&work, &["push", "origin", "main"]);
    assert!(!refused.status.success());
    assert!(stderr_of(&refused).contains("repository is archived; pushes are disabled"), "{}", stderr_of(&refused));

    // Who may not read it does not hear that it is archived.
    scene.edit(&json!({ "private": true }));
    let stranger = bob.git.run(&work, &["push", &scene.url(), "main"]);
    assert!(!stranger.status.success() && !stderr_of(&stranger).contains("archived"), "{}", stderr_of(&stranger));

    scene.edit(&json!({ "archived": false }));
    scene.git().ok(&work, &["push", "--quiet", "origin", "main"]);
    assert_healthy(&scene.server);
}

#[rstest]
fn a_deleted_repository_is_gone_and_comes_back_with_every_byte(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(road, engine);
    let (work, first) = scene.pushed();
    scene.api(&scene.alice, "DELETE", "/repos/alice/demo", &json!({}));
    let gone = scene.git().run(&work, &["fetch", "origin"]);
    let never = scene.git().run(&work, &["fetch", &scene.url_of("alice/never.git")]);
    assert!(!gone.status.success());
    assert_eq!(stderr_of(&gone).replace("demo", "never"), stderr_of(&never), "also to its owner");
    scene.git().commit_file(&work, "a", "two", "two");
    assert!(!scene.git().run(&work, &["push", "origin", "main"]).status.success());

    // The name is free: another repository answers under it until it moves away.
    scene.alice.create(&scene.server, "demo", false);
    let path = format!("/repositories/{}/restore", scene.id);
    scene.api(&scene.alice, "POST", &path, &json!({ "name": "again" }));
    let back = scene.url_of("alice/again.git");
    let copy = clone(scene.git(), &back, &[]);
    assert_eq!(scene.git().ok(&copy, &["rev-parse", "HEAD"]).trim(), first);
    scene.git().ok(&work, &["push", "--quiet", &back, "main"]);
    assert_healthy(&scene.server);
}

#[rstest]
fn a_repository_past_its_grace_is_gone_for_good(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server =
        builder(engine).env("ABIDE_LIFECYCLE__GRACE", "0s").env("ABIDE_LIFECYCLE__SWEEP_INTERVAL", "1h").start();
    let scene = Scene::on(server, road);
    let (work, _) = scene.pushed();
    scene.api(&scene.alice, "DELETE", "/repos/alice/demo", &json!({}));
    scene.server.cli_ok(&["jobs", "run", "lifecycle:sweep"]);
    assert!(!scene.bare().exists());
    for url in [scene.url(), scene.url_of(&format!("r/{}.git", scene.id))] {
        assert!(!scene.git().run(&work, &["fetch", &url]).status.success(), "{url}");
    }
    let kept = "SELECT count(*) FROM domain_events WHERE kind = 'repo_hard_deleted' AND repo_id IS NULL";
    assert_eq!(query(&scene.server, kept), "1");
    assert_healthy(&scene.server);
}

#[rstest]
fn a_user_rename_breaks_no_clone(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(road, engine);
    let (work, _) = scene.pushed();
    scene.server.cli_ok(&["user", "rename", "alice", "ada"]);
    scene.git().commit_file(&work, "a", "two", "two");
    let new = scene.url_of("ada/demo.git");
    assert_moved(&scene.git().run(&work, &["push", "origin", "main"]), &new);
    assert_moved(&scene.git().run(&scene.git().fresh_dir(), &["clone", &scene.url(), "."]), &new);
    // And on top of it the repository's own name changes.
    scene.api(&scene.alice, "PATCH", "/repos/ada/demo", &json!({ "name": "other" }));
    assert_moved(
        &scene.git().run(&scene.git().fresh_dir(), &["clone", &scene.url(), "."]),
        &scene.url_of("ada/other.git"),
    );
    assert_healthy(&scene.server);
}

/// Deleting in the middle of pushes: each push is there with its event, or was refused and left nothing.
#[rstest]
fn of_a_delete_and_a_push_at_once_the_push_is_whole_or_refused(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const ROUNDS: usize = 6;
    let scene = Scene::on(crowded(engine).start(), road);
    let (work, mut at) = scene.pushed();
    let restore = format!("/repositories/{}/restore", scene.id);
    let mut pushes = 1;
    for round in 0..ROUNDS {
        let next = scene.git().commit_file(&work, "a", format!("{round}"), &format!("round {round}"));
        let push = std::thread::scope(|scope| {
            let push = scope.spawn(|| scene.git().run(&work, &["push", "origin", "main"]));
            // No condition: each round the deletion meets the push at another moment.
            std::thread::sleep(std::time::Duration::from_millis(20 * round as u64));
            scene.api(&scene.alice, "DELETE", "/repos/alice/demo", &json!({}));
            push.join().expect("no panic")
        });
        scene.assert_nothing_incoming();
        scene.api(&scene.alice, "POST", &restore, &json!({}));
        let now = scene.refs()["refs/heads/main"].clone();
        if push.status.success() {
            assert_eq!(now, next, "what was acknowledged is there");
        }
        assert!(now == next || now == at, "nothing else can be");
        pushes += i64::from(now == next);
        at = now;
        assert_healthy(&scene.server);
    }
    assert_eq!(crate::support::push_events(&scene.server, scene.id), pushes, "one event for each push that happened");
    scene.git().ok(Path::new(&work), &["push", "--quiet", "origin", "main"]);
}

/// Nobody has to start the sweep: the server's own clock does.
#[rstest]
fn the_sweep_runs_by_itself(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = builder(engine)
        .env("ABIDE_LIFECYCLE__GRACE", "0s")
        .env("ABIDE_LIFECYCLE__TRANSFER_TTL", "1ms")
        .env("ABIDE_LIFECYCLE__SWEEP_INTERVAL", "100ms")
        .start();
    let scene = Scene::on(server, Road::Http);
    let bob = scene.person("bob");
    scene.pushed();
    scene.api(&scene.alice, "POST", "/repos/alice/demo/transfer", &json!({ "new_owner": bob.name }));
    eventually(SOON, || query(&scene.server, "SELECT status FROM repo_transfers") == "expired");
    scene.api(&scene.alice, "DELETE", "/repos/alice/demo", &json!({}));
    eventually(SOON, || !scene.bare().exists() && query(&scene.server, "SELECT count(*) FROM repo_purges") == "0");
    assert_healthy(&scene.server);
}

#[rstest]
fn the_doctor_sets_aside_what_does_not_belong(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let scene = Scene::new(Road::Http, engine);
    scene.pushed();
    let stray = scene.bare().with_file_name("999999.git.old");
    std::fs::create_dir(&stray).expect("writable");
    std::fs::write(stray.join("kept"), "bytes").expect("writable");
    let found = scene.server.cli(&["doctor"]);
    assert_eq!(found.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&found.stdout).contains("`abide doctor --fix` moves it to quarantine"));
    let fixed = scene.server.cli_ok(&["doctor", "--fix"]);
    assert!(fixed.contains("FIXED") && fixed.contains("quarantine"), "{fixed}");
    assert!(!stray.exists());
    let aside = std::fs::read_dir(scene.server.data_dir().join("quarantine")).expect("it is there");
    let aside: Vec<_> = aside.map(|entry| entry.expect("readable").path()).collect();
    assert_eq!(std::fs::read_to_string(aside[0].join("kept")).expect("nothing is lost"), "bytes");
    assert_healthy(&scene.server);
}

/// Runs a push that waits behind the advertisement until `meanwhile` has happened.
fn push_with_a_pause(git: &GitClient, work: &Path, args: &[&str], meanwhile: impl FnOnce()) -> Output {
    let dir = git.fresh_dir();
    let (reached, go) = (dir.join("reached"), dir.join("go"));
    let hook = work.join(".git/hooks/pre-push");
    fs::create_dir_all(work.join(".git/hooks")).expect("writable");
    let script =
        format!("#!/bin/sh\ntouch '{}'\nwhile [ ! -e '{}' ]; do sleep 0.05; done\n", reached.display(), go.display());
    fs::write(&hook, script).expect("ours");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("ours");
    let push = git.command(work, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("git runs");
    eventually(SOON, || reached.exists());
    meanwhile();
    fs::write(&go, "").expect("ours");
    let pushed = push.wait_with_output().expect("git ends");
    fs::remove_file(&hook).expect("ours");
    pushed
}

#[rstest]
fn a_repository_that_is_archived_while_someone_pushes_refuses_each_ref(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(road, engine);
    let (work, _) = scene.pushed();
    scene.git().commit_file(&work, "a", "two", "two");
    let pushed = push_with_a_pause(scene.git(), &work, &["push", "origin", "main"], || {
        scene.edit(&json!({ "archived": true }));
    });
    let reported = stderr_of(&pushed);
    assert!(!pushed.status.success());
    assert!(
        reported.contains("[remote rejected] main -> main (repository is archived; pushes are disabled)"),
        "{reported}"
    );
    assert!(!reported.contains("protocol error"), "{reported}");
    scene.assert_settled(1);
}

#[rstest]
fn a_role_that_is_lost_while_someone_pushes_refuses_each_ref(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(Road::Http, engine);
    scene.pushed();
    let bob = scene.collaborator("bob", "write");
    let work = clone(&bob.git, &scene.url(), &[]);
    bob.git.commit_file(&work, "a", "two", "two");
    let pushed = push_with_a_pause(&bob.git, &work, &["push", "origin", "main"], || {
        query(&scene.server, "UPDATE repo_collaborators SET role = 'read'");
    });
    let reported = stderr_of(&pushed);
    assert!(!pushed.status.success());
    assert!(reported.contains("[remote rejected] main -> main (you need the write role"), "{reported}");
    scene.assert_settled(1);
}

#[rstest]
fn deleting_a_branch_that_somebody_else_has_just_deleted_is_fine(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(road, engine);
    let (work, _) = scene.pushed();
    scene.git().ok(&work, &["push", "--quiet", "origin", "main:topic", "main:other"]);
    let elsewhere = scene.clone(&[]);
    let pushed = push_with_a_pause(scene.git(), &work, &["push", "origin", ":topic", ":other"], || {
        scene.git().ok(&elsewhere, &["push", "--quiet", "origin", ":topic"]);
    });
    let reported = stderr_of(&pushed);
    assert!(pushed.status.success(), "{reported}");
    assert!(reported.contains("warning: deleting a non-existent ref: refs/heads/topic"), "{reported}");
    assert_eq!(scene.refs().len(), 1);
    scene.assert_settled(4);

    // Nothing but what is gone: nothing happened.
    scene.git().ok(&work, &["push", "--quiet", "origin", "main:topic"]);
    let pushed = push_with_a_pause(scene.git(), &work, &["push", "origin", ":topic"], || {
        scene.git().ok(&elsewhere, &["push", "--quiet", "origin", ":topic"]);
    });
    assert!(pushed.status.success());
    scene.assert_settled(6);
}

#[rstest]
fn deleting_a_ref_that_never_was_is_fine(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(road, engine);
    let (work, _) = scene.pushed();
    // The advertisement lacks it, so git sends a command from nothing to nothing.
    let pushed = scene.git().run(&work, &["push", "origin", ":refs/heads/gone"]);
    let words = stderr_of(&pushed);
    assert!(pushed.status.success(), "{words}");
    assert!(words.contains("warning: deleting a non-existent ref: refs/heads/gone"), "{words}");
    scene.assert_settled(1);
    scene.git().ok(&work, &["push", "--quiet", "--atomic", "origin", ":refs/heads/gone", "main:refs/heads/new"]);
    assert_eq!(scene.refs().len(), 2);
    scene.assert_settled(2);
}
