//! Nothing enters a repository that is not complete in it, over any protocol.

use super::setup::{Setup, WAITS, now, state};
use abide_nostr::Event;
use abide_testkit::{Engine, Key, eventually};
use rstest::rstest;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub fn nostr_ref(event: &Event) -> String {
    format!("refs/nostr/{}", event.id.to_hex())
}

/// Someone else's repository, whose history has nothing to do with the first one's.
pub(super) fn unrelated(setup: &mut Setup, identifier: &str) -> (Key, String) {
    let key = Key::new(2);
    setup.announce(&key, identifier, &[]);
    let root = begin_unrelated(setup, &key, identifier);
    (key, root)
}

/// Publishes and pushes the first state of a repository that is announced; returns its commit.
pub(super) fn begin_unrelated(setup: &mut Setup, key: &Key, identifier: &str) -> String {
    let work = setup.git.init_work_tree();
    let root = setup.git.commit_file(&work, "other", "other\n", "another beginning");
    setup.state_waits(&state(key, now() - 5, identifier, &[("refs/heads/main", &root)], Some("main")));
    setup.git.ok(&work, &["push", "-q", &setup.url(key, identifier), "main"]);
    root
}

/// A pull request for repositories.
pub fn proposal(commit: &str, repos: &[String]) -> Event {
    let mut tags: Vec<Vec<&str>> = repos.iter().map(|repo| vec!["a", repo.as_str()]).collect();
    tags.push(vec!["c", commit]);
    let tags: Vec<&[&str]> = tags.iter().map(Vec::as_slice).collect();
    Key::new(9).event(now(), 1618, &tags, "please")
}

/// Clones everything that a repository has, and looks at every object of it.
fn clones_whole(setup: &Setup, key: &Key, identifier: &str) {
    let into = setup.git.fresh_dir();
    setup.git.ok(&into, &["clone", "-q", "--mirror", &setup.url(key, identifier), "copy"]);
    setup.git.ok(&into.join("copy"), &["fsck", "--strict", "--full"]);
}

pub(super) fn has_nostr_ref(setup: &Setup, key: &Key, identifier: &str) -> bool {
    setup.refs(key, identifier).iter().any(|(name, _)| name.starts_with("refs/nostr/"))
}

#[rstest]
fn a_commit_pushed_to_one_repository_does_not_enter_another_in_pieces(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let (other, _) = unrelated(&mut setup, "other");
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let event = proposal(&commit, &[other.coordinate("other")]);
    let to = format!("{commit}:{}", nostr_ref(&event));
    setup.push(&key, "demo", &[&to]);
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()), "its repository has nothing of the commit");
    assert!(!setup.is_served(&event));
    assert!(!has_nostr_ref(&setup, &other, "other") && !has_nostr_ref(&setup, &key, "demo"));
    clones_whole(&setup, &other, "other");
    let areas = std::fs::read_dir(setup.server.data_dir().join("incoming")).expect("it is there").count();
    assert_eq!(areas, 0, "what was pushed elsewhere is of no use");

    setup.push(&other, "other", &[&to]);
    assert!(setup.is_served(&event));
    assert!(setup.refs(&other, "other").contains(&(nostr_ref(&event), commit)));
    clones_whole(&setup, &other, "other");
    setup.assert_healthy();
}

#[rstest]
fn a_waiting_pull_request_is_released_only_where_it_is_for(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let (other, _) = unrelated(&mut setup, "other");
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let event = proposal(&commit, &[key.coordinate("demo")]);
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    let to = format!("{commit}:{}", nostr_ref(&event));
    let reported = setup.push_fails(&other, "other", &[&to]);
    assert!(reported.contains("other repository"), "{reported}");
    assert!(!setup.is_served(&event) && !has_nostr_ref(&setup, &other, "other"));
    setup.push(&key, "demo", &[&to]);
    assert!(setup.is_served(&event));
    let reported = setup.push_fails(&other, "other", &[&to]);
    assert!(reported.contains("other repository"), "also once it is served: {reported}");
    setup.assert_healthy();
}

/// The second repository shares nothing with the first: it is given all that it lacks, before either has the ref.
#[rstest]
fn a_pull_request_for_two_is_whole_in_both(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] event_first: bool,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let (other, _) = unrelated(&mut setup, "other");
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let event = proposal(&commit, &[key.coordinate("demo"), other.coordinate("other")]);
    if event_first {
        assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    }
    setup.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    if !event_first {
        assert_eq!(setup.relay.publish(&event), (true, String::new()));
    }
    assert!(setup.is_served(&event));
    for (key, identifier) in [(&key, "demo"), (&other, "other")] {
        assert!(setup.refs(key, identifier).contains(&(nostr_ref(&event), commit.clone())));
        clones_whole(&setup, key, identifier);
    }
    setup.assert_healthy();
}

#[rstest]
fn a_pull_request_reaches_a_repository_that_is_served_later(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let (key, other) = (setup.owner.clone(), Key::new(2));
    setup.served(&key, "demo", &[]);
    setup.announce(&other, "other", &[]);
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let event = proposal(&commit, &[key.coordinate("demo"), other.coordinate("other")]);
    setup.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert_eq!(setup.relay.publish(&event), (true, String::new()));
    begin_unrelated(&mut setup, &other, "other");
    eventually(Duration::from_secs(30), || has_nostr_ref(&setup, &other, "other"));
    clones_whole(&setup, &other, "other");
    setup.assert_healthy();
}

/// In all of them or in none: where one cannot take it, the event waits and no ref is made.
#[rstest]
fn a_pull_request_that_one_repository_cannot_take_is_released_nowhere(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::on(crate::support::builder(engine).env("ABIDE_GRASP__UNSIGNED_PER_ADDRESS", "4KiB").start());
    let key = setup.owner.clone();
    // Text that does not become shorter by packing.
    let next = |last: &mut u32, _| {
        *last = last.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(char::from(33 + (*last >> 24) as u8 % 90))
    };
    let noise: String = (0..9_000).scan(1_u32, next).collect();
    setup.first = setup.git.commit_file(&setup.work, "noise", &noise, "more than may be copied");
    setup.served(&key, "demo", &[]);
    let (other, _) = unrelated(&mut setup, "other");
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let event = proposal(&commit, &[key.coordinate("demo"), other.coordinate("other")]);
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    let reported = setup.push_fails(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(reported.contains("lacks more objects than this push had"), "{reported}");
    assert!(!setup.is_served(&event));
    assert!(!has_nostr_ref(&setup, &other, "other") && !has_nostr_ref(&setup, &key, "demo"));
    // The push goes to the repository that lacks more objects.
    setup.push(&other, "other", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(setup.is_served(&event) && has_nostr_ref(&setup, &key, "demo"));
    clones_whole(&setup, &other, "other");
    setup.assert_healthy();
}

/// The directory of the first repository.
fn directory(setup: &Setup) -> PathBuf {
    setup.directories().into_iter().min().expect("there is one")
}

fn loose(objects: &Path, oid: &str) -> PathBuf {
    objects.join(&oid[..2]).join(&oid[2..])
}

/// An object that lies in a repository does not stand for all that it reaches.
#[rstest]
fn what_lies_in_a_repository_without_its_history_is_not_there(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    let objects = directory(&setup).join("objects");
    let target = loose(&objects, &second);
    std::fs::create_dir_all(target.parent().expect("a shard")).expect("a directory is made");
    std::fs::copy(loose(&setup.work.join(".git/objects"), &second), &target).expect("an object is copied");

    let said = state(&key, now(), "demo", &[("refs/heads/main", &second)], Some("main"));
    setup.state_waits(&said);
    let event = proposal(&second, &[key.coordinate("demo")]);
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    assert!(setup.refs(&key, "demo").contains(&("refs/heads/main".to_owned(), setup.first.clone())));
    clones_whole(&setup, &key, "demo");
    setup.push(&key, "demo", &["main", &format!("{second}:{}", nostr_ref(&event))]);
    assert!(setup.is_served(&said) && setup.is_served(&event));
    clones_whole(&setup, &key, "demo");
}

/// A repository with a hole gives nothing to another that the same state rules.
#[rstest]
fn a_repository_with_a_hole_is_copied_to_nobody(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let (key, other) = (setup.owner.clone(), Key::new(2));
    let lead = key.public().to_hex();
    setup.served(&key, "demo", &[]);
    let tree = setup.git.ok(&setup.work, &["rev-parse", "main^{tree}"]);
    let objects = directory(&setup).join("objects");
    std::fs::remove_file(loose(&objects, tree.trim())).expect("a tree is lost");
    setup.announce(&other, "demo", &[&["maintainers", &lead]]);
    assert!(setup.refs(&other, "demo").is_empty());
    assert!(setup.status(&other, "demo").text().contains("waiting"), "{}", setup.status(&other, "demo").text());
    // The job may be trying again at this moment.
    eventually(Duration::from_secs(30), || setup.directories().len() == 1);
}
