//! Acknowledged is kept, refused has not moved, and what waits is served as soon as what it waits for is here.

use super::integrity::{begin_unrelated, has_nostr_ref, nostr_ref, proposal, unrelated};
use super::scene::{Scene, WAITS, noise, now, state};
use crate::support::{builder, query};
use abide_testkit::{Engine, Key};
use rstest::rstest;

fn main_of(scene: &Scene, key: &Key, identifier: &str) -> Option<String> {
    let listed = scene.refs(key, identifier);
    listed.into_iter().find(|(name, _)| name == "refs/heads/main").map(|(_, oid)| oid)
}

fn archive(scene: &Scene) {
    query(&scene.server, "UPDATE repos SET archived_at = 1");
}

/// The served repository of a pull request closes before the commit comes, the other one waits for its first push.
#[rstest]
fn a_commit_that_no_repository_can_take_is_not_acknowledged(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] deleted: bool,
) {
    let mut scene = Scene::new(engine);
    let (key, other) = (scene.owner.clone(), Key::new(2));
    scene.served(&key, "demo", &[]);
    scene.announce(&other, "other", &[]);
    let commit = scene.git.commit_file(&scene.work, "feature", "1", "a feature");
    let event = proposal(&commit, &[key.coordinate("demo"), other.coordinate("other")]);
    assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));
    match deleted {
        true => assert!(scene.relay.publish(&key.event(now(), 5, &[&["a", &key.coordinate("demo")]], "")).0),
        false => archive(&scene),
    }

    let to = format!("{commit}:{}", nostr_ref(&event));
    let reported = scene.push_fails(&other, "other", &[&to]);
    assert!(reported.contains("no open repository"), "{reported}");
    assert!(!scene.is_served(&event));

    begin_unrelated(&mut scene, &other, "other");
    assert!(!scene.is_served(&event), "its commit has not come");
    scene.push(&other, "other", &[&to]);
    assert!(scene.is_served(&event));
    assert!(scene.refs(&other, "other").contains(&(nostr_ref(&event), commit)));
    scene.assert_healthy();
}

#[rstest]
fn a_pull_request_for_an_archived_and_a_waiting_repository_waits_with_the_announcement(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] archived_first: bool,
) {
    let mut scene = Scene::new(engine);
    let (key, other) = (scene.owner.clone(), Key::new(2));
    scene.served(&key, "demo", &[]);
    archive(&scene);
    scene.announce(&other, "other", &[]);
    let commit = scene.git.commit_file(&scene.work, "feature", "1", "a feature");
    let mut repos = [key.coordinate("demo"), other.coordinate("other")];
    if !archived_first {
        repos.reverse();
    }
    let event = proposal(&commit, &repos);
    assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));
    scene.push(&other, "other", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(!scene.is_served(&event));
    begin_unrelated(&mut scene, &other, "other");
    assert!(scene.is_served(&event));
    assert!(scene.refs(&other, "other").contains(&(nostr_ref(&event), commit)));
    assert!(!has_nostr_ref(&scene, &key, "demo"), "an archived repository takes nothing");
    scene.assert_healthy();
}

/// The pull request is refused only once its objects are put beside its repositories: before that no branch moves.
#[rstest]
fn branches_of_an_atomic_push_stay_if_its_pull_request_is_refused(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::on(builder(engine).env("ABIDE_GRASP__UNSIGNED_PER_ADDRESS", "4KiB").start());
    let key = scene.owner.clone();
    scene.first = scene.git.commit_file(&scene.work, "noise", noise(1, 9_000), "more than may be copied");
    scene.served(&key, "demo", &[]);
    let (other, _) = unrelated(&mut scene, "other");
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    scene.git.ok(&scene.work, &["checkout", "-q", "-b", "feature", &scene.first]);
    let commit = scene.git.commit_file(&scene.work, "feature", "1", "a feature");
    let said = state(&key, now(), "demo", &[("refs/heads/main", &second)], Some("main"));
    scene.state_waits(&said);
    let event = proposal(&commit, &[key.coordinate("demo"), other.coordinate("other")]);
    assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));

    let to = format!("{commit}:{}", nostr_ref(&event));
    let reported = scene.push_fails(&key, "demo", &["--atomic", "main", &to]);
    assert!(
        reported.contains("lacks more objects than this push had") && reported.contains("atomic push"),
        "{reported}"
    );
    assert_eq!(main_of(&scene, &key, "demo").as_ref(), Some(&scene.first), "refused is not moved");
    assert!(!scene.is_served(&said) && !scene.is_served(&event));

    // Each by itself: the branch moves, and git is told so.
    let reported = scene.push_fails(&key, "demo", &["main", &to]);
    assert!(
        reported.contains("lacks more objects than this push had") && reported.contains("main -> main"),
        "{reported}"
    );
    assert!(!reported.contains("atomic push"), "{reported}");
    assert_eq!(main_of(&scene, &key, "demo"), Some(second));
    assert!(scene.is_served(&said) && !scene.is_served(&event));
    let reserved = query(&scene.server, "SELECT count(*) FROM quota_reservations");
    assert_eq!(reserved, "0", "what was refused holds no quota");
    scene.assert_healthy();
}

#[rstest]
fn a_waiting_pull_request_is_served_once_its_commit_comes_with_a_branch(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] descendant: bool,
) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let commit = scene.git.commit_file(&scene.work, "a", "a", "second");
    let tip = match descendant {
        true => scene.git.commit_file(&scene.work, "b", "b", "third"),
        false => commit.clone(),
    };
    let event = proposal(&commit, &[key.coordinate("demo")]);
    let absent = proposal(&"7".repeat(40), &[key.coordinate("demo")]);
    for event in [&event, &absent] {
        assert_eq!(scene.relay.publish(event), (true, WAITS.to_owned()));
    }
    let said = state(&key, now(), "demo", &[("refs/heads/main", &tip)], Some("main"));
    scene.state_waits(&said);
    scene.push(&key, "demo", &["main"]);
    assert!(scene.is_served(&said) && scene.is_served(&event));
    assert!(scene.refs(&key, "demo").contains(&(nostr_ref(&event), commit)));
    assert!(!scene.is_served(&absent));
    assert_eq!(query(&scene.server, "SELECT count(*) FROM purgatory_proposals"), "1");
    scene.assert_healthy();
}

#[rstest]
fn a_waiting_pull_request_is_served_once_its_commit_comes_with_a_first_push(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let (key, other) = (scene.owner.clone(), Key::new(2));
    scene.served(&key, "demo", &[]);
    scene.announce(&other, "other", &[]);
    let commit = scene.git.commit_file(&scene.work, "a", "a", "second");
    let event = proposal(&commit, &[key.coordinate("demo"), other.coordinate("other")]);
    assert_eq!(scene.relay.publish(&event), (true, WAITS.to_owned()));
    scene.state_waits(&state(&other, now(), "other", &[("refs/heads/main", &commit)], Some("main")));
    scene.push(&other, "other", &["main"]);
    assert!(scene.is_served(&event));
    for (key, identifier) in [(&key, "demo"), (&other, "other")] {
        assert!(scene.refs(key, identifier).contains(&(nostr_ref(&event), commit.clone())), "{identifier}");
    }
    scene.assert_healthy();
}

#[rstest]
fn a_waiting_pull_request_is_served_once_its_commit_comes_with_another(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let commit = scene.git.commit_file(&scene.work, "a", "a", "second");
    let coordinate = key.coordinate("demo");
    let one = proposal(&commit, std::slice::from_ref(&coordinate));
    let other = Key::new(8).event(now(), 1618, &[&["a", &coordinate], &["c", &commit]], "mine");
    for event in [&one, &other] {
        assert_eq!(scene.relay.publish(event), (true, WAITS.to_owned()));
    }
    scene.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&one))]);
    assert!(scene.is_served(&one) && scene.is_served(&other));
    assert!(scene.refs(&key, "demo").contains(&(nostr_ref(&other), commit)));
    assert_eq!(query(&scene.server, "SELECT count(*) FROM purgatory_proposals"), "0");
    scene.assert_healthy();
}

#[rstest]
fn a_state_without_refs_that_waits_is_served_with_the_announcement(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let (key, helper, stranger) = (scene.owner.clone(), Key::new(2), Key::new(3));
    let hex = helper.public().to_hex();
    scene.announce(&key, "demo", &[&["maintainers", &hex]]);
    // Somebody else's, who announces the same identifier and has nothing to do with it.
    scene.announce(&stranger, "demo", &[]);
    let first = scene.first.clone();
    let said = state(&key, now() - 3, "demo", &[("refs/heads/main", &first)], Some("main"));
    let older = state(&helper, now() - 2, "demo", &[], None);
    let empty = state(&helper, now() - 1, "demo", &[], None);
    let elsewhere = state(&stranger, now() - 1, "demo", &[], None);
    for event in [&said, &older, &empty, &elsewhere] {
        scene.state_waits(event);
    }
    let mut live = abide_testkit::Nostr::connect(&scene.server.url());
    live.subscribe("states", &[serde_json::json!({ "kinds": [30618], "authors": [hex] })]);
    scene.push(&key, "demo", &["main"]);
    assert!(scene.is_served(&said) && scene.is_served(&empty));
    assert_eq!(live.live("states").id, empty.id);
    assert!(!scene.is_served(&older) && !scene.is_served(&elsewhere));
    assert_eq!(query(&scene.server, "SELECT count(*) FROM purgatory_states"), "1", "the stranger's repository waits");
    assert_eq!(main_of(&scene, &key, "demo"), Some(first), "nothing follows it");
    scene.assert_healthy();
}

#[rstest]
fn head_does_not_stay_at_a_branch_that_is_gone(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.announce(&key, "demo", &[]);
    let first = scene.first.clone();
    let head = |scene: &Scene| {
        let listed = scene.git.ok(&scene.work, &["ls-remote", "--symref", &scene.url(&key, "demo"), "HEAD"]);
        listed.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    // No state names HEAD.
    let refs = [("refs/heads/a", first.as_str()), ("refs/heads/master", &first)];
    scene.state_waits(&state(&key, now() - 5, "demo", &refs, None));
    let pushed = [format!("{first}:refs/heads/a"), format!("{first}:refs/heads/master")];
    scene.push(&key, "demo", &[&pushed[0], &pushed[1]]);
    assert_eq!(head(&scene), "refs/heads/master");
    let dropped = state(&key, now() - 3, "demo", &[("refs/heads/a", &first), ("refs/heads/b", &first)], None);
    assert_eq!(scene.say(&dropped), (true, String::new()));
    assert_eq!(head(&scene), "refs/heads/a");
    let more = state(&key, now() - 1, "demo", &[("refs/heads/a", &first), ("refs/heads/main", &first)], None);
    assert_eq!(scene.say(&more), (true, String::new()));
    assert_eq!(head(&scene), "refs/heads/a", "its branch is there");
    let into = scene.git.fresh_dir();
    scene.git.ok(&into, &["clone", "-q", &scene.url(&key, "demo"), "copy"]);
    assert!(into.join("copy/README.md").exists(), "there is something to check out");
    scene.assert_healthy();
}
