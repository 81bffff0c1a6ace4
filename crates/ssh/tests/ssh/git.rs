//! Fetch and push.

use crate::world::World;
use abide_core::repo::Visibility;
use abide_testkit::{History, eventually};
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn cloning_pushing_and_fetching_work_in_every_protocol_version() {
    let world = World::new();
    let alice = world.person("alice");
    for version in ["0", "1", "2"] {
        let name = format!("demo{version}");
        world.repo(&alice, &name, Visibility::Private);
        let url = world.url(&format!("alice/{name}"));
        let protocol = format!("protocol.version={version}");
        let git = |dir: &std::path::Path, args: &[&str]| alice.git.ok(dir, &[&["-c", &protocol], args].concat());

        let first = alice.git.fresh_dir();
        git(&first, &["clone", "--quiet", &url, "work"]);
        let first = first.join("work");
        let oid = alice.git.commit_file(&first, "a.txt", "one\n", "One");
        git(&first, &["push", "--quiet", "origin", "main"]);

        let second = alice.git.fresh_dir();
        git(&second, &["clone", "--quiet", &url, "work"]);
        let second = second.join("work");
        assert_eq!(alice.git.ok(&second, &["rev-parse", "HEAD"]), oid);

        let oid = alice.git.commit_file(&first, "b.txt", "two\n", "Two");
        git(&first, &["push", "--quiet", "origin", "main", "main:refs/heads/topic"]);
        git(&second, &["fetch", "--quiet", "origin"]);
        assert_eq!(alice.git.ok(&second, &["rev-parse", "origin/topic"]), oid);
        git(&first, &["push", "--quiet", "origin", ":topic"]);
        assert!(!git(&second, &["ls-remote", "origin"]).contains("topic"));
    }
}

#[test]
fn the_version_that_was_asked_for_is_spoken() {
    let world = World::new();
    let alice = world.person("alice");
    world.repo_with_commit(&alice, "demo", Visibility::Private);
    for (version, expected) in [("0", "main"), ("1", "version 1"), ("2", "version 2")] {
        let traced = alice
            .git
            .command(
                &alice.git.fresh_dir(),
                &["-c", &format!("protocol.version={version}"), "ls-remote", &world.url("alice/demo")],
            )
            .env("GIT_TRACE_PACKET", "1")
            .output()
            .unwrap();
        let traced = String::from_utf8_lossy(&traced.stderr).into_owned();
        let first = traced.lines().find(|line| line.contains("ls-remote<")).unwrap();
        assert!(first.contains(expected) || version == "0" && !first.contains("version"), "{version}: {first}");
    }
}

#[test]
fn a_push_with_nothing_to_push_ends_well() {
    let world = World::new();
    let alice = world.person("alice");
    world.repo_with_commit(&alice, "demo", Visibility::Private);
    let dir = alice.git.fresh_dir();
    alice.git.ok(&dir, &["clone", "--quiet", &world.url("alice/demo"), "work"]);
    let output = alice.git.run(&dir.join("work"), &["push", "origin", "main"]);
    assert!(output.status.success());
    assert_eq!(crate::world::stderr(&output), "Everything up-to-date\n");

    // Without git, because git hides the exit status.
    let mut push = world.ssh(&alice, &["-T"], &["git-receive-pack '/alice/demo.git'"]);
    let mut child = push.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"0000").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", crate::world::stderr(&output));
    assert!(output.stdout.ends_with(b"0000"), "an advertisement and nothing behind it");
}

#[test]
fn a_refused_fetch_can_be_written_to_until_the_client_has_read_why() {
    let world = World::new();
    let alice = world.person("alice");
    world.repo_with_commit(&alice, "demo", Visibility::Private);
    let mut fetch = world.ssh(&alice, &["-T"], &["git-upload-pack '/alice/demo.git'"]);
    let mut child = fetch.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    stdin.write_all(format!("0032want {}\n0000", "1".repeat(40)).as_bytes()).unwrap();
    let mut said = Vec::new();
    while !said.ends_with(b"not our ref 1111111111111111111111111111111111111111") {
        let mut piece = [0];
        stdout.read_exact(&mut piece).expect("git says why");
        said.push(piece[0]);
    }
    // Longer than closing a channel takes, and far shorter than the client's time limit.
    std::thread::sleep(Duration::from_millis(200));
    stdin.write_all(b"0009done\n").expect("the channel is open");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_repository_is_reached_by_its_permanent_address_and_without_its_suffix() {
    let world = World::new();
    let alice = world.person("alice");
    let repo = world.repo_with_commit(&alice, "demo", Visibility::Private);
    let dir = alice.git.fresh_dir();
    let by_name = alice.git.ok(&dir, &["ls-remote", &world.url("alice/demo")]);
    assert!(by_name.contains("refs/heads/main"), "{by_name}");
    assert_eq!(alice.git.ok(&dir, &["ls-remote", &world.url(&format!("r/{}", repo.id))]), by_name);
    let bare = world.url("alice/demo");
    assert_eq!(alice.git.ok(&dir, &["ls-remote", bare.strip_suffix(".git").unwrap()]), by_name);
}

#[test]
fn big_packs_go_both_ways_while_keys_are_exchanged_again_and_again() {
    let world = World::new();
    let alice = world.person("alice");
    let repo = world.repo(&alice, "big", Visibility::Private);
    let work = alice.git.init_work_tree();
    alice.git.fast_import(&work, History { commits: 24, bytes_per_commit: 1 << 20, refs: 500 });
    let rekeying = |args: &[&str], dir: &std::path::Path| {
        let mut git = alice.git.command(dir, args);
        let ssh = git.get_envs().find(|(name, _)| *name == "GIT_SSH_COMMAND").unwrap().1.unwrap().to_owned();
        let mut ssh = ssh.into_string().unwrap();
        ssh.push_str(" -o RekeyLimit=1M");
        let output = git.env("GIT_SSH_COMMAND", ssh).output().unwrap();
        assert!(output.status.success(), "{}", crate::world::stderr(&output));
    };
    let url = world.url(&repo.slug());
    rekeying(&["push", "--progress", &url, "main", "--tags"], &work);
    let dir = alice.git.fresh_dir();
    rekeying(&["clone", "--quiet", "--bare", &url, "copy.git"], &dir);
    let copy = dir.join("copy.git");
    assert_eq!(alice.git.ok(&copy, &["rev-parse", "main"]), alice.git.ok(&work, &["rev-parse", "main"]));
    assert_eq!(alice.git.ok(&copy, &["for-each-ref", "refs/tags"]).lines().count(), 500);
    alice.git.ok(&copy, &["fsck"]);
}

#[test]
fn refs_that_are_refused_are_reported_and_the_others_move() {
    let world = World::new();
    let alice = world.person("alice");
    let repo = world.repo_with_commit(&alice, "demo", Visibility::Private);
    let url = world.url(&repo.slug());
    let work = alice.git.init_work_tree();
    let oid = alice.git.commit_file(&work, "other.txt", "other\n", "Unrelated");
    let refused = alice.git.fails(&work, &["push", &url, ":refs/heads/main", "main:refs/heads/topic"]);
    assert!(refused.contains("[remote rejected] main"), "{refused}");
    assert!(alice.git.ok(&work, &["ls-remote", &url, "refs/heads/topic"]).starts_with(&oid));
}

#[test]
fn a_push_without_a_pack_that_is_refused_is_answered_at_once() {
    let world = World::new();
    let alice = world.person("alice");
    let repo = world.repo_with_commit(&alice, "demo", Visibility::Private);
    let work = alice.git.init_work_tree();
    let begun = Instant::now();
    let refused = alice.git.fails(&work, &["push", &world.url(&repo.slug()), ":refs/heads/main"]);
    assert!(refused.contains("[remote rejected] main"), "{refused}");
    assert!(begun.elapsed() < world.forge.settings().git.idle_timeout / 2);
}

#[test]
fn a_client_that_goes_away_takes_its_git_with_it() {
    let world = World::new();
    let alice = world.person("alice");
    let repo = world.repo_with_commit(&alice, "demo", Visibility::Private);
    let path = std::fs::canonicalize(world.path(&repo)).unwrap();
    let running = || {
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .any(|process| std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == path))
    };
    let mut fetch = world.ssh(&alice, &["-T"], &["git-upload-pack '/alice/demo.git'"]);
    let mut child = fetch.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut start = [0; 44];
    child.stdout.as_mut().unwrap().read_exact(&mut start).unwrap();
    assert!(!running(), "the server lists refs by itself");
    // Git starts when the client has said what it wants, and waits for what the client has.
    let wanted = String::from_utf8_lossy(&start[4..]).into_owned();
    child.stdin.as_mut().unwrap().write_all(format!("0032want {wanted}\n0000").as_bytes()).unwrap();
    eventually(Duration::from_secs(20), running);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually(Duration::from_secs(20), || !running());
}
