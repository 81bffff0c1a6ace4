//! A repository's life cycle for git clients: URLs that keep working, and messages that state the change.

use super::setup::{Road, SOON, Setup, clone};
use crate::support::{Person, assert_healthy, builder, crowded, query};
use abide_testkit::{Engine, GitClient, eventually, http};
use rstest::rstest;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

impl Setup {
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
    let setup = Setup::new(road, engine);
    let (work, _) = setup.pushed();
    setup.edit(&json!({ "name": "renamed" }));
    let new = setup.url_of("alice/renamed.git");

    let second = setup.git().commit_file(&work, "a", "two", "two");
    assert_moved(&setup.git().run(&work, &["push", "origin", "main"]), &new);
    let dir = setup.git().fresh_dir();
    assert_moved(&setup.git().run(&dir, &["clone", &setup.url(), "."]), &new);
    assert_eq!(setup.git().ok(&dir, &["rev-parse", "HEAD"]).trim(), second);
    let third = setup.git().commit_file(&work, "a", "three", "three");
    setup.git().ok(&work, &["push", "--quiet", &new, "main"]);
    assert_moved(&setup.git().run(&dir, &["fetch", "origin"]), &new);
    assert_eq!(setup.git().ok(&dir, &["rev-parse", "origin/main"]).trim(), third);

    // By the present address and by the permanent one nothing is said.
    for url in [new.clone(), setup.url_of(&format!("r/{}.git", setup.id))] {
        let output = setup.git().run(&setup.git().fresh_dir(), &["clone", &url, "."]);
        assert!(output.status.success() && !stderr_of(&output).contains("moved"), "{}", stderr_of(&output));
    }
    // Older protocols have no room for the hint over HTTP, and work.
    for version in ["0", "1"] {
        let version = format!("protocol.version={version}");
        clone(setup.git(), &setup.url(), &["-c", &version]);
    }
    assert_healthy(&setup.server);
}

#[rstest]
fn after_a_transfer_clones_keep_working_for_those_who_may(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let bob = setup.person("bob");
    let carol = setup.collaborator("carol", "write");
    let (work, _) = setup.pushed();
    setup.hand_over(&bob);
    let new = setup.url_of("bob/demo.git");

    let copy = clone(&carol.git, &setup.url(), &[]);
    carol.git.commit_file(&copy, "c", "carol", "by carol");
    assert_moved(&carol.git.run(&copy, &["push", "origin", "main"]), &new);
    assert_moved(&bob.git.run(&bob.git.fresh_dir(), &["clone", &setup.url(), "."]), &new);
    setup.git().ok(&work, &["pull", "--quiet", "origin", "main"]);
    setup.git().commit_file(&work, "b", "two", "two");
    let refused = setup.git().run(&work, &["push", "origin", "main"]);
    assert!(!refused.status.success(), "the old owner may read it like everyone, and no longer push");

    setup.api(&bob, "PATCH", "/repos/bob/demo", &json!({ "private": true }));
    let gone = setup.git().run(&work, &["fetch", "origin"]);
    let never = setup.git().run(&work, &["fetch", &setup.url_of("alice/never.git")]);
    assert_eq!(
        stderr_of(&gone).replace("demo", "never"),
        stderr_of(&never),
        "a private one looks like none, and tells no name"
    );
    assert_healthy(&setup.server);
}

#[rstest]
fn an_archived_repository_is_read_and_not_written(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let bob = setup.person("bob");
    let (work, _) = setup.pushed();
    setup.edit(&json!({ "archived": true }));
    setup.clone(&[]);
    setup.git().commit_file(&work, "a", "two", "two");
    let refused = setup.git().run(&work, &["push", "origin", "main"]);
    assert!(!refused.status.success());
    assert!(stderr_of(&refused).contains("repository is archived; pushes are disabled"), "{}", stderr_of(&refused));

    // Who may not read it does not hear that it is archived.
    setup.edit(&json!({ "private": true }));
    let stranger = bob.git.run(&work, &["push", &setup.url(), "main"]);
    assert!(!stranger.status.success() && !stderr_of(&stranger).contains("archived"), "{}", stderr_of(&stranger));

    setup.edit(&json!({ "archived": false }));
    setup.git().ok(&work, &["push", "--quiet", "origin", "main"]);
    assert_healthy(&setup.server);
}

#[rstest]
fn a_deleted_repository_is_gone_and_comes_back_with_every_byte(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let (work, first) = setup.pushed();
    setup.api(&setup.alice, "DELETE", "/repos/alice/demo", &json!({}));
    let gone = setup.git().run(&work, &["fetch", "origin"]);
    let never = setup.git().run(&work, &["fetch", &setup.url_of("alice/never.git")]);
    assert!(!gone.status.success());
    assert_eq!(stderr_of(&gone).replace("demo", "never"), stderr_of(&never), "also to its owner");
    setup.git().commit_file(&work, "a", "two", "two");
    assert!(!setup.git().run(&work, &["push", "origin", "main"]).status.success());

    // The name is free: another repository answers under it until it moves away.
    setup.alice.create(&setup.server, "demo", false);
    let path = format!("/repositories/{}/restore", setup.id);
    setup.api(&setup.alice, "POST", &path, &json!({ "name": "again" }));
    let back = setup.url_of("alice/again.git");
    let copy = clone(setup.git(), &back, &[]);
    assert_eq!(setup.git().ok(&copy, &["rev-parse", "HEAD"]).trim(), first);
    setup.git().ok(&work, &["push", "--quiet", &back, "main"]);
    assert_healthy(&setup.server);
}

#[rstest]
fn a_repository_past_its_grace_is_gone_for_good(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server =
        builder(engine).env("ABIDE_LIFECYCLE__GRACE", "0s").env("ABIDE_LIFECYCLE__SWEEP_INTERVAL", "1h").start();
    let setup = Setup::on(server, road);
    let (work, _) = setup.pushed();
    setup.api(&setup.alice, "DELETE", "/repos/alice/demo", &json!({}));
    setup.server.cli_ok(&["jobs", "run", "lifecycle:sweep"]);
    assert!(!setup.bare().exists());
    for url in [setup.url(), setup.url_of(&format!("r/{}.git", setup.id))] {
        assert!(!setup.git().run(&work, &["fetch", &url]).status.success(), "{url}");
    }
    let kept = "SELECT count(*) FROM domain_events WHERE kind = 'repo_hard_deleted' AND repo_id IS NULL";
    assert_eq!(query(&setup.server, kept), "1");
    assert_healthy(&setup.server);
}

#[rstest]
fn a_user_rename_breaks_no_clone(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let (work, _) = setup.pushed();
    setup.server.cli_ok(&["user", "rename", "alice", "ada"]);
    setup.git().commit_file(&work, "a", "two", "two");
    let new = setup.url_of("ada/demo.git");
    assert_moved(&setup.git().run(&work, &["push", "origin", "main"]), &new);
    assert_moved(&setup.git().run(&setup.git().fresh_dir(), &["clone", &setup.url(), "."]), &new);
    // And on top of it the repository's own name changes.
    setup.api(&setup.alice, "PATCH", "/repos/ada/demo", &json!({ "name": "other" }));
    assert_moved(
        &setup.git().run(&setup.git().fresh_dir(), &["clone", &setup.url(), "."]),
        &setup.url_of("ada/other.git"),
    );
    assert_healthy(&setup.server);
}

/// Deleting in the middle of pushes: each push is there with its event, or was refused and left nothing.
#[rstest]
fn of_a_delete_and_a_push_at_once_the_push_is_whole_or_refused(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const ROUNDS: usize = 6;
    let setup = Setup::on(crowded(engine).start(), road);
    let (work, mut at) = setup.pushed();
    let restore = format!("/repositories/{}/restore", setup.id);
    let mut pushes = 1;
    for round in 0..ROUNDS {
        let next = setup.git().commit_file(&work, "a", format!("{round}"), &format!("round {round}"));
        let push = std::thread::scope(|scope| {
            let push = scope.spawn(|| setup.git().run(&work, &["push", "origin", "main"]));
            // No condition: each round the deletion meets the push at another moment.
            std::thread::sleep(std::time::Duration::from_millis(20 * round as u64));
            setup.api(&setup.alice, "DELETE", "/repos/alice/demo", &json!({}));
            push.join().expect("no panic")
        });
        setup.assert_nothing_incoming();
        setup.api(&setup.alice, "POST", &restore, &json!({}));
        let now = setup.refs()["refs/heads/main"].clone();
        if push.status.success() {
            assert_eq!(now, next, "what was acknowledged is there");
        }
        assert!(now == next || now == at, "nothing else can be");
        pushes += i64::from(now == next);
        at = now;
        assert_healthy(&setup.server);
    }
    assert_eq!(crate::support::push_events(&setup.server, setup.id), pushes, "one event for each push that happened");
    setup.git().ok(Path::new(&work), &["push", "--quiet", "origin", "main"]);
}

/// Nobody has to start the sweep: the server's own clock does.
#[rstest]
fn the_sweep_runs_by_itself(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = builder(engine)
        .env("ABIDE_LIFECYCLE__GRACE", "0s")
        .env("ABIDE_LIFECYCLE__TRANSFER_TTL", "1ms")
        .env("ABIDE_LIFECYCLE__SWEEP_INTERVAL", "100ms")
        .start();
    let setup = Setup::on(server, Road::Http);
    let bob = setup.person("bob");
    setup.pushed();
    setup.api(&setup.alice, "POST", "/repos/alice/demo/transfer", &json!({ "new_owner": bob.name }));
    eventually(SOON, || query(&setup.server, "SELECT status FROM repo_transfers") == "expired");
    setup.api(&setup.alice, "DELETE", "/repos/alice/demo", &json!({}));
    eventually(SOON, || !setup.bare().exists() && query(&setup.server, "SELECT count(*) FROM repo_purges") == "0");
    assert_healthy(&setup.server);
}

#[rstest]
fn the_doctor_sets_aside_what_does_not_belong(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(Road::Http, engine);
    setup.pushed();
    let stray = setup.bare().with_file_name("999999.git.old");
    std::fs::create_dir(&stray).expect("writable");
    std::fs::write(stray.join("kept"), "bytes").expect("writable");
    let found = setup.server.cli(&["doctor"]);
    assert_eq!(found.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&found.stdout).contains("`abide doctor --fix` moves it to quarantine"));
    let fixed = setup.server.cli_ok(&["doctor", "--fix"]);
    assert!(fixed.contains("FIXED") && fixed.contains("quarantine"), "{fixed}");
    assert!(!stray.exists());
    let aside = std::fs::read_dir(setup.server.data_dir().join("quarantine")).expect("it is there");
    let aside: Vec<_> = aside.map(|entry| entry.expect("readable").path()).collect();
    assert_eq!(std::fs::read_to_string(aside[0].join("kept")).expect("nothing is lost"), "bytes");
    assert_healthy(&setup.server);
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
    let setup = Setup::new(road, engine);
    let (work, _) = setup.pushed();
    setup.git().commit_file(&work, "a", "two", "two");
    let pushed = push_with_a_pause(setup.git(), &work, &["push", "origin", "main"], || {
        setup.edit(&json!({ "archived": true }));
    });
    let reported = stderr_of(&pushed);
    assert!(!pushed.status.success());
    assert!(
        reported.contains("[remote rejected] main -> main (repository is archived; pushes are disabled)"),
        "{reported}"
    );
    assert!(!reported.contains("protocol error"), "{reported}");
    setup.assert_settled(1);
}

#[rstest]
fn a_role_that_is_lost_while_someone_pushes_refuses_each_ref(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(Road::Http, engine);
    setup.pushed();
    let bob = setup.collaborator("bob", "write");
    let work = clone(&bob.git, &setup.url(), &[]);
    bob.git.commit_file(&work, "a", "two", "two");
    let pushed = push_with_a_pause(&bob.git, &work, &["push", "origin", "main"], || {
        query(&setup.server, "UPDATE repo_collaborators SET role = 'read'");
    });
    let reported = stderr_of(&pushed);
    assert!(!pushed.status.success());
    assert!(reported.contains("[remote rejected] main -> main (you need the write role"), "{reported}");
    setup.assert_settled(1);
}

#[rstest]
fn deleting_a_branch_that_somebody_else_has_just_deleted_is_fine(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let (work, _) = setup.pushed();
    setup.git().ok(&work, &["push", "--quiet", "origin", "main:topic", "main:other"]);
    let elsewhere = setup.clone(&[]);
    let pushed = push_with_a_pause(setup.git(), &work, &["push", "origin", ":topic", ":other"], || {
        setup.git().ok(&elsewhere, &["push", "--quiet", "origin", ":topic"]);
    });
    let reported = stderr_of(&pushed);
    assert!(pushed.status.success(), "{reported}");
    assert!(reported.contains("warning: deleting a non-existent ref: refs/heads/topic"), "{reported}");
    assert_eq!(setup.refs().len(), 1);
    setup.assert_settled(4);

    // Nothing but what is gone: nothing happened.
    setup.git().ok(&work, &["push", "--quiet", "origin", "main:topic"]);
    let pushed = push_with_a_pause(setup.git(), &work, &["push", "origin", ":topic"], || {
        setup.git().ok(&elsewhere, &["push", "--quiet", "origin", ":topic"]);
    });
    assert!(pushed.status.success());
    setup.assert_settled(6);
}

#[rstest]
fn deleting_a_ref_that_never_was_is_fine(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let (work, _) = setup.pushed();
    // The advertisement lacks it, so git sends a command from nothing to nothing.
    let pushed = setup.git().run(&work, &["push", "origin", ":refs/heads/gone"]);
    let words = stderr_of(&pushed);
    assert!(pushed.status.success(), "{words}");
    assert!(words.contains("warning: deleting a non-existent ref: refs/heads/gone"), "{words}");
    setup.assert_settled(1);
    setup.git().ok(&work, &["push", "--quiet", "--atomic", "origin", ":refs/heads/gone", "main:refs/heads/new"]);
    assert_eq!(setup.refs().len(), 2);
    setup.assert_settled(2);
}
