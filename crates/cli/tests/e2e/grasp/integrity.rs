//! Nothing enters a repository that is not complete in it, over any protocol.

use super::scene::{Scene, WAITS, now, state};
use abide_nostr::Event;
use abide_testkit::{Engine, Key, eventually};
use rstest::rstest;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub fn nostr_ref(event: &Event) -> String {
    format!("refs/nostr/{}", event.id.to_hex())
}

/// Someone else's repository, whose history has nothing to do with the first one's.
pub(super) fn unrelated(scene: &mut Scene, identifier: &str) -> (Key, String) {
    let key = Key::new(2);
    scene.announce(&key, identifier, &[]);
    let root = begin_unrelated(scene, &key, identifier);
    (key, root)
}

/// Publishes and pushes the first state of a repository that is announced; returns its commit.
pub(super) fn begin_unrelated(scene: &mut Scene, key: &Key, identifier: &str) -> String {
    let work = scene.git.init_work_tree();
    let root = scene.git.commit_file(&work, "other", "other\n", "another beginning");
    scene.state_waits(&state(key, now() - 5, identifier, &[("refs/heads/main", &root)], Some("main")));
    scene.git.ok(&work, &["push", "-q", &scene.url(key, identifier), "main"]);
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
fn clones_whole(scene: &Scene, key: &Key, identifier: &str) {
    let into = scene.git.fresh_dir();
    scene.git.ok(&into, &["clone", "-q", "--mirror", &scene.url(key, identifier), "copy"]);
    scene.git.ok(&into.join("copy"), &["fsck", "--strict", "--full"]);
}

pub(super) fn has_nostr_ref(scene: &Scene, key: &Key, identifier: &str) -> bool {
    scene.refs(key, identifier).iter().any(|(name, _)| name.starts_with("refs/nostr/"))
}

#[rstest]
fn a_commit_pushed_to_one_repository_does_not_enter_another_in_pieces(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let (other, _) = unrelated(&mut scene, "other");
    let commit = scene.git.commit_file(&scene.work, "feature", "1", "a feature");
    let event = proposal(&commit, &[other.coordinate("other")]);
    let to = format!("{commit}:{}", nostr_ref(&event));
    scene.push(&key, "demo", &[&to]);
    assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()), "its repository has nothing of the commit");
    assert!(!scene.is_served(&event));
    assert!(!has_nostr_ref(&scene, &other, "other") && !has_nostr_ref(&scene, &key, "demo"));
    clones_whole(&scene, &other, "other");
    let areas = std::fs::read_dir(scene.server.data_dir().join("incoming")).expect("it is there").count();
    assert_eq!(areas, 0, "what was pushed elsewhere is of no use");

    scene.push(&other, "other", &[&to]);
    assert!(scene.is_served(&event));
    assert!(scene.refs(&other, "other").contains(&(nostr_ref(&event), commit)));
    clones_whole(&scene, &other, "other");
    scene.assert_healthy();
}

#[rstest]
fn a_waiting_pull_request_is_released_only_where_it_is_for(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let (other, _) = unrelated(&mut scene, "other");
    let commit = scene.git.commit_file(&scene.work, "feature", "1", "a feature");
    let event = proposal(&commit, &[key.coordinate("demo")]);
    assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));
    let to = format!("{commit}:{}", nostr_ref(&event));
    let reported = scene.push_fails(&other, "other", &[&to]);
    assert!(reported.contains("other repository"), "{reported}");
    assert!(!scene.is_served(&event) && !has_nostr_ref(&scene, &other, "other"));
    scene.push(&key, "demo", &[&to]);
    assert!(scene.is_served(&event));
    let reported = scene.push_fails(&other, "other", &[&to]);
    assert!(reported.contains("other repository"), "also once it is served: {reported}");
    scene.assert_healthy();
}

/// The second repository shares nothing with the first: it is given all that it lacks, before either has the ref.
#[rstest]
fn a_pull_request_for_two_is_whole_in_both(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] event_first: bool,
) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let (other, _) = unrelated(&mut scene, "other");
    let commit = scene.git.commit_file(&scene.work, "feature", "1", "a feature");
    let event = proposal(&commit, &[key.coordinate("demo"), other.coordinate("other")]);
    if event_first {
        assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));
    }
    scene.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    if !event_first {
        assert_eq!(scene.relay.publish(&event), (true, String::new()));
    }
    assert!(scene.is_served(&event));
    for (key, identifier) in [(&key, "demo"), (&other, "other")] {
        assert!(scene.refs(key, identifier).contains(&(nostr_ref(&event), commit.clone())));
        clones_whole(&scene, key, identifier);
    }
    scene.assert_healthy();
}

#[rstest]
fn a_pull_request_reaches_a_repository_that_is_served_later(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let (key, other) = (scene.owner.clone(), Key::new(2));
    scene.served(&key, "demo", &[]);
    scene.announce(&other, "other", &[]);
    let commit = scene.git.commit_file(&scene.work, "feature", "1", "a feature");
    let event = proposal(&commit, &[key.coordinate("demo"), other.coordinate("other")]);
    scene.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert_eq!(scene.relay.publish(&event), (true, String::new()));
    begin_unrelated(&mut scene, &other, "other");
    eventually(Duration::from_secs(30), || has_nostr_ref(&scene, &other, "other"));
    clones_whole(&scene, &other, "other");
    scene.assert_healthy();
}

/// In all of them or in none: where one cannot take it, the event waits and no ref is made.
#[rstest]
fn a_pull_request_that_one_repository_cannot_take_is_released_nowhere(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::on(crate::support::builder(engine).env("ABIDE_GRASP__UNSIGNED_PER_ADDRESS", "4KiB").start());
    let key = scene.owner.clone();
    // Text that does not become shorter by packing.
    let next = |last: &mut u32, _| {
        *last = last.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(char::from(33 + (*last >> 24) as u8 % 90))
    };
    let noise: String = (0..9_000).scan(1_u32, next).collect();
    scene.first = scene.git.commit_file(&scene.work, "noise", &noise, "more than may be copied");
    scene.served(&key, "demo", &[]);
    let (other, _) = unrelated(&mut scene, "other");
    let commit = scene.git.commit_file(&scene.work, "feature", "1", "a feature");
    let event = proposal(&commit, &[key.coordinate("demo"), other.coordinate("other")]);
    assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));
    let reported = scene.push_fails(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(reported.contains("lacks more objects than this push had"), "{reported}");
    assert!(!scene.is_served(&event));
    assert!(!has_nostr_ref(&scene, &other, "other") && !has_nostr_ref(&scene, &key, "demo"));
    // The push goes to the repository that lacks more objects.
    scene.push(&other, "other", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(scene.is_served(&event) && has_nostr_ref(&scene, &key, "demo"));
    clones_whole(&scene, &other, "other");
    scene.assert_healthy();
}

/// The directory of the first repository.
fn directory(scene: &Scene) -> PathBuf {
    scene.directories().into_iter().min().expect("there is one")
}

fn loose(objects: &Path, oid: &str) -> PathBuf {
    objects.join(&oid[..2]).join(&oid[2..])
}

/// An object that lies in a repository does not stand for all that it reaches.
#[rstest]
fn what_lies_in_a_repository_without_its_history_is_not_there(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    let objects = directory(&scene).join("objects");
    let target = loose(&objects, &second);
    std::fs::create_dir_all(target.parent().expect("a shard")).expect("a directory is made");
    std::fs::copy(loose(&scene.work.join(".git/objects"), &second), &target).expect("an object is copied");

    let said = state(&key, now(), "demo", &[("refs/heads/main", &second)], Some("main"));
    scene.state_waits(&said);
    let event = proposal(&second, &[key.coordinate("demo")]);
    assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));
    assert!(scene.refs(&key, "demo").contains(&("refs/heads/main".to_owned(), scene.first.clone())));
    clones_whole(&scene, &key, "demo");
    scene.push(&key, "demo", &["main", &format!("{second}:{}", nostr_ref(&event))]);
    assert!(scene.is_served(&said) && scene.is_served(&event));
    clones_whole(&scene, &key, "demo");
}

/// A repository with a hole gives nothing to another that the same state rules.
#[rstest]
fn a_repository_with_a_hole_is_copied_to_nobody(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let (key, other) = (scene.owner.clone(), Key::new(2));
    let lead = key.public().to_hex();
    scene.served(&key, "demo", &[]);
    let tree = scene.git.ok(&scene.work, &["rev-parse", "main^{tree}"]);
    let objects = directory(&scene).join("objects");
    std::fs::remove_file(loose(&objects, tree.trim())).expect("a tree is lost");
    scene.announce(&other, "demo", &[&["maintainers", &lead]]);
    assert!(scene.refs(&other, "demo").is_empty());
    assert!(scene.status(&other, "demo").text().contains("waiting"), "{}", scene.status(&other, "demo").text());
    // The job may be trying again at this moment.
    eventually(Duration::from_secs(30), || scene.directories().len() == 1);
}
