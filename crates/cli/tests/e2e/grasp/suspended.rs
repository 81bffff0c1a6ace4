//! The key of a suspended account opens nothing, whatever the road. Logging in and signed API requests are among the tests
//! of keys and of the API.

use super::setup::{Setup, now, npub, state};
use crate::beside::Beside as _;
use crate::support::query;
use abide_testkit::{Engine, Key, Nostr};
use rstest::rstest;

const BLOCKED: &str = "blocked: the account of this key is suspended";

/// Suspends the account of a key.
fn suspend(setup: &Setup, key: &Key) {
    query(&setup.server, &format!("UPDATE users SET suspended_at = 1 WHERE npub = '{}'", npub(key)));
}

fn readmit(setup: &Setup) {
    query(&setup.server, "UPDATE users SET suspended_at = NULL");
}

#[track_caller]
fn assert_blocked((accepted, text): &(bool, String)) {
    assert!(!accepted && text.starts_with(BLOCKED), "{accepted} {text}");
}

/// A repository whose owner was suspended after it was served.
fn served(engine: Engine, more: &[&[&str]]) -> Setup {
    let mut setup = Setup::new(engine);
    let owner = setup.owner.clone();
    setup.served(&owner, "demo", more);
    suspend(&setup, &owner);
    setup
}

#[rstest]
fn a_state_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = served(engine, &[]);
    let owner = setup.owner.clone();
    let second = setup.git.commit_file(&setup.work, "b", "b", "second");
    let next = state(&owner, now(), "demo", &[("refs/heads/main", &second)], Some("main"));
    assert_blocked(&setup.say(&next));
    let back = state(&owner, now() - 1, "demo", &[("refs/heads/main", &setup.first)], Some("main"));
    assert_blocked(&setup.say(&back));
    readmit(&setup);
    setup.state_waits(&next);
    setup.push(&owner, "demo", &["main"]);
    setup.assert_healthy();
}

#[rstest]
fn an_announcement_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = served(engine, &[]);
    let owner = setup.owner.clone();
    for identifier in ["demo", "another"] {
        let announced = setup.announcement(&owner, now(), identifier, &[]);
        assert_blocked(&setup.relay.publish(&announced));
    }
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_announcements"), "0");
}

#[rstest]
fn patches_pull_requests_and_what_belongs_to_a_repository_are_refused(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = served(engine, &[]);
    let (owner, other) = (setup.owner.clone(), Key::new(7));
    setup.served(&other, "other", &[]);
    let (repo, commit) = (other.coordinate("other"), "c".repeat(40));
    let id = "ab".repeat(32);
    let kinds: [(u16, &[&[&str]]); 9] = [
        (1617, &[&["a", &repo]]),
        (1617, &[&["a", &repo], &["c", &commit]]),
        (1618, &[&["a", &repo], &["c", &commit]]),
        (1619, &[&["a", &repo], &["c", &commit], &["E", &id]]),
        (1621, &[&["a", &repo]]),
        (1630, &[&["a", &repo]]),
        (1111, &[&["A", &repo]]),
        (0, &[]),
        // Passed on and not stored.
        (20_001, &[&["a", &repo]]),
    ];
    for (kind, tags) in kinds {
        assert_blocked(&setup.relay.publish(&owner.event(now(), kind, tags, "{}")));
    }
    // One of the same batch by somebody else is taken.
    let (bad, good) = (owner.event(now(), 1621, kinds[4].1, "x"), other.event(now(), 1621, kinds[4].1, "x"));
    for event in [&bad, &good] {
        setup.relay.say(&serde_json::json!(["EVENT", event]));
    }
    assert_blocked(&setup.relay.ok(&bad));
    assert_eq!(setup.relay.ok(&good), (true, String::new()));
    assert!(setup.is_served(&good) && !setup.is_served(&bad));
}

#[rstest]
fn a_deletion_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = served(engine, &[]);
    let owner = setup.owner.clone();
    let deletion = owner.event(now(), 5, &[&["a", &owner.coordinate("demo")]], "");
    assert_blocked(&setup.relay.publish(&deletion));
    assert_eq!(setup.refs(&owner, "demo").len(), 2, "HEAD and main are still there");
}

#[rstest]
fn a_push_under_a_waiting_state_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let owner = setup.owner.clone();
    setup.served(&owner, "demo", &[]);
    let second = setup.git.commit_file(&setup.work, "b", "b", "second");
    let next = state(&owner, now(), "demo", &[("refs/heads/main", &second)], Some("main"));
    setup.state_waits(&next);
    suspend(&setup, &owner);
    let reported = setup.push_fails(&owner, "demo", &["main"]);
    assert!(reported.contains("suspended: the account of the key that owns this repository"), "{reported}");
    assert!(!setup.is_served(&next));
    readmit(&setup);
    setup.push(&owner, "demo", &["main"]);
}

#[rstest]
fn a_repository_of_a_suspended_owner_takes_nothing_from_anybody(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let helper = Key::new(2);
    let hex = helper.public().to_hex();
    let listed: &[&str] = &["maintainers", &hex];
    let mut setup = served(engine, &[listed]);
    let owner = setup.owner.clone();
    let second = setup.git.commit_file(&setup.work, "b", "b", "second");
    let next = state(&helper, now(), "demo", &[("refs/heads/main", &second)], Some("main"));
    let (accepted, text) = setup.say(&next);
    assert!(!accepted && text.starts_with("blocked: the account of the repository's owner"), "{text}");
    let proposed = format!("main:refs/nostr/{}", "ab".repeat(32));
    for refs in [&["main"][..], &[proposed.as_str()], &[":main"]] {
        let reported = setup.push_fails(&owner, "demo", refs);
        assert!(reported.contains("suspended"), "{reported}");
    }
    assert_eq!(setup.refs(&owner, "demo")[0].1, setup.first);
}

#[rstest]
fn a_suspended_maintainer_allows_nothing_in_the_repositories_of_others(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let helper = Key::new(2);
    let hex = helper.public().to_hex();
    let listed: &[&str] = &["maintainers", &hex];
    let mut setup = Setup::new(engine);
    let owner = setup.owner.clone();
    // The helper has an account of their own by a repository of their own.
    setup.served(&helper, "other", &[]);
    setup.served(&owner, "demo", &[listed]);
    let second = setup.git.commit_file(&setup.work, "b", "b", "second");
    let refs: &[(&str, &str)] = &[("refs/heads/main", &second)];
    let waits = state(&helper, now() - 2, "demo", refs, Some("main"));
    setup.state_waits(&waits);
    suspend(&setup, &helper);
    let reported = setup.push_fails(&owner, "demo", &["main"]);
    assert!(reported.contains("no authorised state"), "{reported}");
    assert_blocked(&setup.say(&state(&helper, now() - 1, "demo", refs, Some("main"))));
    // The owner goes on.
    let own = state(&owner, now(), "demo", refs, Some("main"));
    setup.state_waits(&own);
    setup.push(&owner, "demo", &["main"]);
    assert_eq!(setup.refs(&owner, "demo")[0].1, second);
    setup.assert_healthy();
}

#[rstest]
fn the_commit_of_a_waiting_pull_request_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let helper = Key::new(2);
    let mut setup = Setup::new(engine);
    let owner = setup.owner.clone();
    setup.served(&helper, "other", &[]);
    setup.served(&owner, "demo", &[]);
    let second = setup.git.commit_file(&setup.work, "b", "b", "second");
    let proposed = helper.event(now(), 1618, &[&["a", &owner.coordinate("demo")], &["c", &second]], "");
    setup.state_waits(&proposed);
    suspend(&setup, &helper);
    let reported = setup.push_fails(&owner, "demo", &[&format!("main:refs/nostr/{}", proposed.id)]);
    assert!(reported.contains("suspended: the account of the key that signed this"), "{reported}");
    assert!(!setup.is_served(&proposed));
}

/// One rule for both: a repository that takes no changes is left out, and keeps the pull request from none of the others.
#[rstest]
#[case::suspended(true, "blocked: the account of the repository's owner is suspended")]
#[case::archived(false, "restricted: the repository is archived")]
fn a_closed_repository_keeps_a_pull_request_from_no_other(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] suspended: bool,
    #[case] reason: &str,
) {
    let (mut setup, helper) = (Setup::new(engine), Key::new(2));
    let owner = setup.owner.clone();
    setup.served(&owner, "demo", &[]);
    setup.served(&helper, "other", &[]);
    match suspended {
        true => suspend(&setup, &helper),
        false => _ = query(&setup.server, "UPDATE repos SET archived_at = 1 WHERE name = 'other'"),
    }
    let second = setup.git.commit_file(&setup.work, "b", "b", "second");
    let (one, both) = (other_and_demo(&helper, &owner), Key::new(9));
    let alone = both.event(now(), 1618, &[&["a", &one[0]], &["c", &second]], "");
    let (accepted, text) = setup.say(&alone);
    assert!(!accepted && text.starts_with(reason), "{text}");

    let proposed = both.event(now(), 1618, &[&["a", &one[0]], &["a", &one[1]], &["c", &second]], "");
    setup.state_waits(&proposed);
    setup.push(&owner, "demo", &[&format!("main:refs/nostr/{}", proposed.id)]);
    assert!(setup.is_served(&proposed));
    let has = |key: &Key, identifier: &str| {
        setup.refs(key, identifier).iter().any(|(name, _)| name.starts_with("refs/nostr/"))
    };
    assert!(has(&owner, "demo") && !has(&helper, "other"));
    setup.assert_healthy();
}

fn other_and_demo(helper: &Key, owner: &Key) -> [String; 2] {
    [helper.coordinate("other"), owner.coordinate("demo")]
}

#[rstest]
fn a_proof_of_the_key_to_the_relay_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = served(engine, &[]);
    let relay = setup.server.url().replacen("http", "ws", 1);
    let mut client = Nostr::connect(&setup.server.url());
    assert_blocked(&client.auth(&setup.owner, &relay));
    assert_eq!(client.auth(&Key::new(9), &relay), (true, String::new()));
}

/// The suspension outlasts the account: without it, the key would be a stranger's.
#[rstest]
fn the_key_of_an_account_that_was_deleted_while_suspended_stays_refused(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (mut setup, member) = (Setup::new(engine), Key::new(2));
    let owner = setup.owner.clone();
    setup.served(&owner, "demo", &[]);
    setup.server.add_user("mallory");
    query(&setup.server, &format!("UPDATE users SET npub = '{}' WHERE name = 'mallory'", npub(&member)));
    setup.served(&member, "tool", &[]);
    let second = setup.git.commit_file(&setup.work, "b", "b", "second");
    let proposed = member.event(now(), 1618, &[&["a", &owner.coordinate("demo")], &["c", &second]], "");
    setup.state_waits(&proposed);
    setup.server.cli_ok(&["user", "suspend", "mallory"]);
    setup.server.cli_ok(&["user", "remove", "mallory", "--yes"]);
    setup.server.restart();
    setup.relay = Nostr::connect(&setup.server.url());

    let repo = owner.coordinate("demo");
    let announced = setup.announcement(&member, now(), "another", &[]);
    let state = state(&member, now(), "demo", &[("refs/heads/main", &setup.first)], Some("main"));
    let issue = member.event(now(), 1621, &[&["a", &repo]], "an issue");
    let patch = member.event(now(), 1617, &[&["a", &repo]], "a patch");
    let pull = member.event(now(), 1618, &[&["a", &repo], &["c", &second]], "a pull request");
    let deletion = member.event(now(), 5, &[&["e", &proposed.id.to_hex()]], "");
    for event in [&announced, &state, &issue, &patch, &pull, &deletion] {
        assert_blocked(&setup.relay.publish(event));
    }
    let reported = setup.push_fails(&owner, "demo", &[&format!("{second}:refs/nostr/{}", proposed.id)]);
    assert!(reported.contains("suspended"), "{reported}");
    let relay = setup.server.url().replacen("http", "ws", 1);
    assert_blocked(&setup.relay.auth(&member, &relay));

    setup.server.cli_ok(&["user", "unsuspend", &npub(&member)]);
    assert_eq!(setup.relay.publish(&issue), (true, String::new()));
    setup.assert_healthy();
}
