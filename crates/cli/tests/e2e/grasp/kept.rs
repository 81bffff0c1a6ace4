//! Acknowledged is kept, refused has not moved, and what waits is served as soon as what it waits for is here.

use super::integrity::{begin_unrelated, has_nostr_ref, nostr_ref, proposal, unrelated};
use super::setup::{Setup, WAITS, noise, now, state};
use crate::support::{builder, query};
use abide_testkit::{Engine, Key};
use rstest::rstest;

fn main_of(setup: &Setup, key: &Key, identifier: &str) -> Option<String> {
    let listed = setup.refs(key, identifier);
    listed.into_iter().find(|(name, _)| name == "refs/heads/main").map(|(_, oid)| oid)
}

fn archive(setup: &Setup) {
    query(&setup.server, "UPDATE repos SET archived_at = 1");
}

/// The served repository of a pull request closes before the commit comes, the other one waits for its first push.
#[rstest]
fn a_commit_that_no_repository_can_take_is_not_acknowledged(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] deleted: bool,
) {
    let mut setup = Setup::new(engine);
    let (key, other) = (setup.owner.clone(), Key::new(2));
    setup.served(&key, "demo", &[]);
    setup.announce(&other, "other", &[]);
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let event = proposal(&commit, &[key.coordinate("demo"), other.coordinate("other")]);
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    match deleted {
        true => assert!(setup.relay.publish(&key.event(now(), 5, &[&["a", &key.coordinate("demo")]], "")).0),
        false => archive(&setup),
    }

    let to = format!("{commit}:{}", nostr_ref(&event));
    let reported = setup.push_fails(&other, "other", &[&to]);
    assert!(reported.contains("no open repository"), "{reported}");
    assert!(!setup.is_served(&event));

    begin_unrelated(&mut setup, &other, "other");
    assert!(!setup.is_served(&event), "its commit has not come");
    setup.push(&other, "other", &[&to]);
    assert!(setup.is_served(&event));
    assert!(setup.refs(&other, "other").contains(&(nostr_ref(&event), commit)));
    setup.assert_healthy();
}

#[rstest]
fn a_pull_request_for_an_archived_and_a_waiting_repository_waits_with_the_announcement(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] archived_first: bool,
) {
    let mut setup = Setup::new(engine);
    let (key, other) = (setup.owner.clone(), Key::new(2));
    setup.served(&key, "demo", &[]);
    archive(&setup);
    setup.announce(&other, "other", &[]);
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let mut repos = [key.coordinate("demo"), other.coordinate("other")];
    if !archived_first {
        repos.reverse();
    }
    let event = proposal(&commit, &repos);
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    setup.push(&other, "other", &[&format!("{commit}:{}", nostr_ref(&event))]);
    assert!(!setup.is_served(&event));
    begin_unrelated(&mut setup, &other, "other");
    assert!(setup.is_served(&event));
    assert!(setup.refs(&other, "other").contains(&(nostr_ref(&event), commit)));
    assert!(!has_nostr_ref(&setup, &key, "demo"), "an archived repository takes nothing");
    setup.assert_healthy();
}

/// The pull request is refused only once its objects are put beside its repositories: before that no branch moves.
#[rstest]
fn branches_of_an_atomic_push_stay_if_its_pull_request_is_refused(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__UNSIGNED_PER_ADDRESS", "4KiB").start());
    let key = setup.owner.clone();
    setup.first = setup.git.commit_file(&setup.work, "noise", noise(1, 9_000), "more than may be copied");
    setup.served(&key, "demo", &[]);
    let (other, _) = unrelated(&mut setup, "other");
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    setup.git.ok(&setup.work, &["checkout", "-q", "-b", "feature", &setup.first]);
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let said = state(&key, now(), "demo", &[("refs/heads/main", &second)], Some("main"));
    setup.state_waits(&said);
    let event = proposal(&commit, &[key.coordinate("demo"), other.coordinate("other")]);
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));

    let to = format!("{commit}:{}", nostr_ref(&event));
    let reported = setup.push_fails(&key, "demo", &["--atomic", "main", &to]);
    assert!(
        reported.contains("lacks more objects than this push had") && reported.contains("atomic push"),
        "{reported}"
    );
    assert_eq!(main_of(&setup, &key, "demo").as_ref(), Some(&setup.first), "refused is not moved");
    assert!(!setup.is_served(&said) && !setup.is_served(&event));

    // Each by itself: the branch moves, and git is told so.
    let reported = setup.push_fails(&key, "demo", &["main", &to]);
    assert!(
        reported.contains("lacks more objects than this push had") && reported.contains("main -> main"),
        "{reported}"
    );
    assert!(!reported.contains("atomic push"), "{reported}");
    assert_eq!(main_of(&setup, &key, "demo"), Some(second));
    assert!(setup.is_served(&said) && !setup.is_served(&event));
    let reserved = query(&setup.server, "SELECT count(*) FROM quota_reservations");
    assert_eq!(reserved, "0", "what was refused holds no quota");
    setup.assert_healthy();
}

#[rstest]
fn a_waiting_pull_request_is_served_once_its_commit_comes_with_a_branch(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] descendant: bool,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let commit = setup.git.commit_file(&setup.work, "a", "a", "second");
    let tip = match descendant {
        true => setup.git.commit_file(&setup.work, "b", "b", "third"),
        false => commit.clone(),
    };
    let event = proposal(&commit, &[key.coordinate("demo")]);
    let absent = proposal(&"7".repeat(40), &[key.coordinate("demo")]);
    for event in [&event, &absent] {
        assert_eq!(setup.relay.publish(event), (true, WAITS.to_owned()));
    }
    let said = state(&key, now(), "demo", &[("refs/heads/main", &tip)], Some("main"));
    setup.state_waits(&said);
    setup.push(&key, "demo", &["main"]);
    assert!(setup.is_served(&said) && setup.is_served(&event));
    assert!(setup.refs(&key, "demo").contains(&(nostr_ref(&event), commit)));
    assert!(!setup.is_served(&absent));
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_proposals"), "1");
    setup.assert_healthy();
}

#[rstest]
fn a_waiting_pull_request_is_served_once_its_commit_comes_with_a_first_push(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let (key, other) = (setup.owner.clone(), Key::new(2));
    setup.served(&key, "demo", &[]);
    setup.announce(&other, "other", &[]);
    let commit = setup.git.commit_file(&setup.work, "a", "a", "second");
    let event = proposal(&commit, &[key.coordinate("demo"), other.coordinate("other")]);
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    setup.state_waits(&state(&other, now(), "other", &[("refs/heads/main", &commit)], Some("main")));
    setup.push(&other, "other", &["main"]);
    assert!(setup.is_served(&event));
    for (key, identifier) in [(&key, "demo"), (&other, "other")] {
        assert!(setup.refs(key, identifier).contains(&(nostr_ref(&event), commit.clone())), "{identifier}");
    }
    setup.assert_healthy();
}

#[rstest]
fn a_waiting_pull_request_is_served_once_its_commit_comes_with_another(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let commit = setup.git.commit_file(&setup.work, "a", "a", "second");
    let coordinate = key.coordinate("demo");
    let one = proposal(&commit, std::slice::from_ref(&coordinate));
    let other = Key::new(8).event(now(), 1618, &[&["a", &coordinate], &["c", &commit]], "mine");
    for event in [&one, &other] {
        assert_eq!(setup.relay.publish(event), (true, WAITS.to_owned()));
    }
    setup.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&one))]);
    assert!(setup.is_served(&one) && setup.is_served(&other));
    assert!(setup.refs(&key, "demo").contains(&(nostr_ref(&other), commit)));
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_proposals"), "0");
    setup.assert_healthy();
}

#[rstest]
fn a_state_without_refs_that_waits_is_served_with_the_announcement(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let (key, helper, stranger) = (setup.owner.clone(), Key::new(2), Key::new(3));
    let hex = helper.public().to_hex();
    setup.announce(&key, "demo", &[&["maintainers", &hex]]);
    // Somebody else's, who announces the same identifier and has nothing to do with it.
    setup.announce(&stranger, "demo", &[]);
    let first = setup.first.clone();
    let said = state(&key, now() - 3, "demo", &[("refs/heads/main", &first)], Some("main"));
    let older = state(&helper, now() - 2, "demo", &[], None);
    let empty = state(&helper, now() - 1, "demo", &[], None);
    let elsewhere = state(&stranger, now() - 1, "demo", &[], None);
    for event in [&said, &older, &empty, &elsewhere] {
        setup.state_waits(event);
    }
    let mut live = abide_testkit::Nostr::connect(&setup.server.url());
    live.subscribe("states", &[serde_json::json!({ "kinds": [30618], "authors": [hex] })]);
    setup.push(&key, "demo", &["main"]);
    assert!(setup.is_served(&said) && setup.is_served(&empty));
    assert_eq!(live.live("states").id, empty.id);
    assert!(!setup.is_served(&older) && !setup.is_served(&elsewhere));
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_states"), "1", "the stranger's repository waits");
    assert_eq!(main_of(&setup, &key, "demo"), Some(first), "nothing follows it");
    setup.assert_healthy();
}

#[rstest]
fn head_does_not_stay_at_a_branch_that_is_gone(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.announce(&key, "demo", &[]);
    let first = setup.first.clone();
    let head = |setup: &Setup| {
        let listed = setup.git.ok(&setup.work, &["ls-remote", "--symref", &setup.url(&key, "demo"), "HEAD"]);
        listed.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    // No state names HEAD.
    let refs = [("refs/heads/a", first.as_str()), ("refs/heads/master", &first)];
    setup.state_waits(&state(&key, now() - 5, "demo", &refs, None));
    let pushed = [format!("{first}:refs/heads/a"), format!("{first}:refs/heads/master")];
    setup.push(&key, "demo", &[&pushed[0], &pushed[1]]);
    assert_eq!(head(&setup), "refs/heads/master");
    let dropped = state(&key, now() - 3, "demo", &[("refs/heads/a", &first), ("refs/heads/b", &first)], None);
    assert_eq!(setup.say(&dropped), (true, String::new()));
    assert_eq!(head(&setup), "refs/heads/a");
    let more = state(&key, now() - 1, "demo", &[("refs/heads/a", &first), ("refs/heads/main", &first)], None);
    assert_eq!(setup.say(&more), (true, String::new()));
    assert_eq!(head(&setup), "refs/heads/a", "its branch is there");
    let into = setup.git.fresh_dir();
    setup.git.ok(&into, &["clone", "-q", &setup.url(&key, "demo"), "copy"]);
    assert!(into.join("copy/README.md").exists(), "there is something to check out");
    setup.assert_healthy();
}
