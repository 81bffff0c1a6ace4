//! Refused requests and their messages.

use crate::world::{Person, World, stderr};
use abide_core::repo::{Role, Visibility};
use std::process::Output;

/// Exit status and output that a client sees, with the requested name removed.
fn seen(world: &World, person: &Person, verb: &str, path: &str) -> (Option<i32>, Vec<u8>, String) {
    let output = world.ssh(person, &["-T"], &[&format!("{verb} '{path}'")]).output().unwrap();
    (output.status.code(), output.stdout.clone(), stderr(&output))
}

#[test]
fn private_deleted_absent_and_invalid_repositories_look_the_same() {
    let world = World::new();
    let (alice, mallory) = (world.person("alice"), world.person("mallory"));
    world.repo_with_commit(&alice, "secret", Visibility::Private);
    let gone = world.repo_with_commit(&alice, "gone", Visibility::Public);
    world.delete(&alice, &gone);
    for verb in ["git-upload-pack", "git-receive-pack"] {
        let absent = seen(&world, &mallory, verb, "/alice/absent.git");
        assert_eq!(absent, (Some(1), b"001cERR repository not found".to_vec(), String::new()));
        for path in [
            "/alice/secret.git",
            "/alice/gone.git",
            "/nobody/absent.git",
            "/alice/in valid.git",
            "/alice/%2e%2e.git",
            "/alice/.git",
            "/--help/--strict",
            "/r/999999.git",
            &format!("/r/{}.git", gone.id),
            "/r/abc.git",
        ] {
            assert_eq!(seen(&world, &mallory, verb, path), absent, "{verb} {path}");
        }
    }
}

#[test]
fn git_says_in_one_line_that_there_is_no_such_repository() {
    let world = World::new();
    let alice = world.person("alice");
    let dir = alice.git.init_work_tree();
    alice.git.commit_file(&dir, "a", "a", "A");
    for version in ["0", "1", "2"] {
        let protocol = format!("protocol.version={version}");
        let url = world.url("alice/absent");
        for args in [&["fetch", "--quiet", &url][..], &["push", "--quiet", &url, "main"]] {
            let complaint = alice.git.fails(&dir, &[&["-c", &protocol][..], args].concat());
            assert_eq!(complaint, "fatal: remote error: repository not found\n", "{args:?} in version {version}");
        }
    }
}

#[test]
fn who_may_only_read_is_told_what_pushing_needs() {
    let world = World::new();
    let (alice, bob, eve) = (world.person("alice"), world.person("bob"), world.person("eve"));
    let shared = world.repo_with_commit(&alice, "shared", Visibility::Private);
    let public = world.repo_with_commit(&alice, "public", Visibility::Public);
    world.share(&alice, &shared, &bob, Role::Read);
    for (person, repo) in [(&bob, &shared), (&eve, &public)] {
        let dir = person.git.fresh_dir();
        person.git.ok(&dir, &["clone", "--quiet", &world.url(&repo.slug()), "work"]);
        let work = dir.join("work");
        person.git.commit_file(&work, "mine.txt", "mine\n", "Mine");
        let complaint = person.git.fails(&work, &["push", "origin", "main"]);
        assert_eq!(
            complaint,
            "fatal: remote error: you need the write role in this repository; ask its owner to change your access\n"
        );
    }
    world.share(&alice, &shared, &bob, Role::Write);
    let dir = bob.git.fresh_dir();
    bob.git.ok(&dir, &["clone", "--quiet", &world.url(&shared.slug()), "work"]);
    bob.git.commit_file(&dir.join("work"), "mine.txt", "mine\n", "Mine");
    bob.git.ok(&dir.join("work"), &["push", "--quiet", "origin", "main"]);
}

#[test]
fn a_fault_is_told_without_its_cause() {
    let world = World::new();
    let alice = world.person("alice");
    let repo = world.repo_with_commit(&alice, "demo", Visibility::Private);
    std::fs::rename(world.path(&repo), world.path(&repo).with_extension("gone")).unwrap();
    let complaint = alice.git.fails(&alice.git.fresh_dir(), &["ls-remote", &world.url("alice/demo")]);
    assert_eq!(complaint, "fatal: remote error: internal server error; try again later\n");
}

#[test]
fn there_is_no_shell() {
    let world = World::new();
    let alice = world.person("alice");
    let output = world.ssh(&alice, &["-T"], &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let said = stderr(&output);
    assert!(said.contains("Hi alice! You've authenticated, but Abide does not provide shell access."), "{said}");

    // A client that insists on a terminal fails earlier.
    let output = world.ssh(&alice, &["-tt"], &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(255));
    assert!(stderr(&output).contains("PTY allocation request failed"), "{}", stderr(&output));
}

fn refused(output: &Output, text: &str) {
    assert_eq!(output.status.code(), Some(128), "{}", stderr(output));
    assert!(output.stdout.is_empty());
    assert!(stderr(output).contains(text), "{}", stderr(output));
}

#[test]
fn other_commands_are_refused_with_what_is_offered() {
    let world = World::new();
    let alice = world.person("alice");
    world.repo_with_commit(&alice, "demo", Visibility::Private);
    let run = |command: &str| world.ssh(&alice, &["-T"], &[command]).output().unwrap();
    let offered = "Abide: only git fetch (git-upload-pack) and git push (git-receive-pack) are supported";
    for command in ["id", "git-upload-archive '/alice/demo.git'", "scp -t /", "sh -c 'git-upload-pack /alice/demo.git'"]
    {
        refused(&run(command), offered);
    }
    refused(&run("git-upload-pack '/alice/demo.git' --strict"), "take one argument");
    refused(&run("git-upload-pack /alice/demo.git; id"), "take one argument");
    refused(&run("git-upload-pack '../../etc/passwd'"), "the repository path must be /OWNER/NAME.git");
    refused(&run(&format!("git-upload-pack '{}'", "a/".repeat(2500))), "at most 4096 bytes");
}

#[test]
fn subsystems_are_refused() {
    let world = World::new();
    let alice = world.person("alice");
    let output = world.ssh(&alice, &["-s"], &["sftp"]).output().unwrap();
    assert!(!output.status.success());
    assert!(stderr(&output).contains("subsystem request failed"), "{}", stderr(&output));
}

#[test]
fn nothing_is_forwarded() {
    let world = World::new();
    let alice = world.person("alice");
    let itself = world.addr.to_string();
    let output = world.ssh(&alice, &["-W", &itself], &[]).output().unwrap();
    assert!(!output.status.success());
    assert!(stderr(&output).contains("administratively prohibited"), "{}", stderr(&output));

    let back = format!("127.0.0.1:0:{itself}");
    let options = ["-N", "-o", "ExitOnForwardFailure=yes", "-R", &back];
    let output = world.ssh(&alice, &options, &[]).output().unwrap();
    assert!(!output.status.success());
    assert!(stderr(&output).contains("remote port forwarding failed"), "{}", stderr(&output));

    // Requests for agent forwarding, X11 or a variable do not fail the command; they are ignored.
    let output = world.ssh(&alice, &["-T", "-A", "-X", "-o", "SetEnv=LD_PRELOAD=/x"], &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}
