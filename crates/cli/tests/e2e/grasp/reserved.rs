//! Git data of strangers is taken from their quotas before it is stored: many pushes at once share one quota.

use super::setup::{Setup, noise, now, state};
use crate::support::{builder, query};
use abide_testkit::{Engine, Key};
use rstest::rstest;
use std::process::Output;

const PUSHES: usize = 8;

/// Commits that share nothing, each of about 325 kB.
fn large_commits(setup: &Setup) -> Vec<String> {
    let commit = |number: usize| {
        let seed = u32::try_from(number + 7).expect("few");
        setup.git.ok(&setup.work, &["checkout", "-q", "--orphan", &format!("large-{number}")]);
        setup.git.commit_file(&setup.work, "noise", noise(seed, 400_000), "a large file")
    };
    (0..PUSHES).map(commit).collect()
}

/// Runs pushes at once.
fn push_all(setup: &Setup, pushes: &[(String, String)]) -> Vec<Output> {
    std::thread::scope(|scope| {
        let push = |(url, refs): &(String, String)| {
            let (git, work, url, refs) = (&setup.git, &setup.work, url.clone(), refs.clone());
            scope.spawn(move || git.run(work, &["push", "-q", &url, &refs]))
        };
        let running: Vec<_> = pushes.iter().map(push).collect();
        running.into_iter().map(|one| one.join().expect("git ran")).collect()
    })
}

#[rstest]
fn pushes_at_once_share_the_quota_of_their_key(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    // 64 KiB and a small commit for each repository, and one large one.
    let mut setup = Setup::on(builder(engine).env("ABIDE_QUOTA__KEY_REPO_BYTES", "1245kB").start());
    let owner = setup.owner.clone();
    let commits = large_commits(&setup);
    let first = setup.first.clone();
    let names: Vec<String> = (0..PUSHES).map(|number| format!("demo-{number}")).collect();
    for (name, commit) in names.iter().zip(&commits) {
        setup.announce(&owner, name, &[]);
        setup.state_waits(&state(&owner, now() - 5, name, &[("refs/heads/main", &first)], Some("main")));
        setup.push(&owner, name, &[&format!("{first}:refs/heads/main")]);
        setup.state_waits(&state(&owner, now(), name, &[("refs/heads/main", commit)], Some("main")));
    }
    let pushes: Vec<(String, String)> = names
        .iter()
        .zip(&commits)
        .map(|(name, commit)| (setup.url(&owner, name), format!("+{commit}:refs/heads/main")))
        .collect();
    let done = push_all(&setup, &pushes);
    let taken = done.iter().filter(|output| output.status.success()).count();
    assert_eq!(taken, 1, "{done:?}");
    for output in done.iter().filter(|output| !output.status.success()) {
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(reported.contains("quota") || reported.contains("larger than"), "{reported}");
    }
    let charged = "SELECT count(*) FROM nostr_keys WHERE repo_bytes > 900000 AND repo_bytes <= 1245000";
    assert_eq!(query(&setup.server, charged), "1");
    assert_eq!(query(&setup.server, "SELECT count(*) FROM quota_reservations"), "0", "what is not used is given back");
    setup.assert_healthy();
}

#[rstest]
fn commits_without_an_event_that_come_at_once_share_the_room_of_their_address(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__UNSIGNED_PER_ADDRESS", "600kB").start());
    let owner = setup.owner.clone();
    setup.served(&owner, "demo", &[]);
    let commits = large_commits(&setup);
    let url = setup.url(&owner, "demo");
    let refs = |(number, commit): (usize, &String)| format!("{commit}:refs/nostr/{:064x}", number + 1);
    let pushes: Vec<(String, String)> = commits.iter().enumerate().map(|one| (url.clone(), refs(one))).collect();
    let done = push_all(&setup, &pushes);
    assert_eq!(done.iter().filter(|output| output.status.success()).count(), 1, "{done:?}");
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_proposals"), "1");
    let areas = std::fs::read_dir(setup.server.data_dir().join("incoming")).expect("it is there").flatten();
    let kept = areas.filter(|area| area.file_name().to_string_lossy().starts_with("aside-")).count();
    assert_eq!(kept, 1, "what found no room is gone");
    setup.assert_healthy();
}

/// A process that dies with a reservation keeps nothing from its successor.
#[rstest]
fn what_a_dead_server_reserved_is_free_again(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_QUOTA__KEY_REPO_BYTES", "500kB").start());
    let owner = setup.owner.clone();
    setup.served(&owner, "demo", &[]);
    let large = setup.git.commit_file(&setup.work, "noise", noise(3, 400_000), "a large file");
    setup.state_waits(&state(&owner, now(), "demo", &[("refs/heads/main", &large)], Some("main")));
    setup.server.restart_with_failpoint(abide_core::failpoint::PUSH_INTENT_COMMITTED);
    let reported = setup.push_fails(&owner, "demo", &["main"]);
    setup.server.wait_exit();
    assert_eq!(query(&setup.server, "SELECT count(*) FROM quota_reservations"), "1", "{reported}");
    setup.server.restart();
    assert_eq!(query(&setup.server, "SELECT count(*) FROM quota_reservations"), "0");
    setup.push(&owner, "demo", &["main"]);
    assert_eq!(setup.refs(&owner, "demo")[0].1, large);
    setup.assert_healthy();
}

/// Another key for each push: the quota of the address they come from is shared.
#[rstest]
fn pushes_at_once_share_the_quota_of_their_address(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_QUOTA__ADDRESS_BYTES_PER_DAY", "600kB").start());
    let commits = large_commits(&setup);
    let keys: Vec<Key> = (10..).take(PUSHES).map(Key::new).collect();
    for (key, commit) in keys.iter().zip(&commits) {
        setup.announce(key, "demo", &[]);
        setup.state_waits(&state(key, now(), "demo", &[("refs/heads/main", commit)], Some("main")));
    }
    let pushes: Vec<(String, String)> = keys
        .iter()
        .zip(&commits)
        .map(|(key, commit)| (setup.url(key, "demo"), format!("{commit}:refs/heads/main")))
        .collect();
    let done = push_all(&setup, &pushes);
    assert_eq!(done.iter().filter(|output| output.status.success()).count(), 1, "{done:?}");
    assert_eq!(query(&setup.server, "SELECT count(*) FROM nostr_repos"), "1");
    setup.assert_healthy();
}
