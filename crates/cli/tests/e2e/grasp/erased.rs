//! Deleting an account with its content reaches what its nostr key signed.

use super::setup::{Setup, now, npub};
use crate::support::{person, query, settled};
use abide_testkit::{Engine, Key};
use rstest::rstest;

#[rstest]
fn what_a_deleted_account_signed_goes_with_its_content_and_does_not_come_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let (alice, bob) = (Key::new(21), Key::new(22));
    person(&setup.server, "alice");
    query(&setup.server, &format!("UPDATE users SET npub = '{}' WHERE name = 'alice'", npub(&alice)));
    setup.served(&bob, "tool", &[]);
    let repo = bob.coordinate("tool");
    let issue = alice.event(now() - 9, 1621, &[&["a", &repo], &["subject", "About marmalade"]], "marmalade");
    let issue_id = issue.id.to_hex();
    let on_issue: &[&[&str]] = &[&["A", &repo], &["E", &issue_id], &["K", "1621"], &["e", &issue_id], &["k", "1621"]];
    let comment = alice.event(now() - 8, 1111, on_issue, "marmalade again");
    let patch = alice.event(now() - 7, 1617, &[&["a", &repo]], "From marmalade");
    let answer = bob.event(now() - 6, 1111, on_issue, "honey");
    for event in [&issue, &comment, &patch, &answer] {
        assert_eq!(setup.relay.publish(event), (true, String::new()));
    }
    let (announced, stated) = setup.served(&alice, "own", &[]);
    let waiting = setup.announce(&alice, "waits", &[]);
    let own = query(&setup.server, "SELECT repo_id FROM nostr_repos WHERE identifier = 'own'");

    setup.server.cli_ok(&["user", "remove", "alice", "--content", "removed", "--yes"]);
    settled(&setup.server);
    for event in [&issue, &comment, &patch, &announced, &stated, &waiting] {
        assert!(!setup.is_served(event), "{}", event.content);
    }
    assert!(setup.is_served(&answer), "what others wrote stays");
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_announcements"), "0");
    assert_eq!(query(&setup.server, "SELECT count(*) FROM nostr_events WHERE json LIKE '%marmalade%'"), "0");
    // Another relay has them still, and hands them on.
    for event in [&issue, &comment, &patch, &waiting] {
        let (accepted, reported) = setup.relay.publish(event);
        assert!(!accepted && reported.contains("deleted"), "{accepted} {reported}");
        assert!(!setup.is_served(event));
    }
    // The key is nobody's, and may speak again like any other.
    let again = alice.event(now(), 1621, &[&["a", &repo]], "cherries");
    assert_eq!(setup.relay.publish(&again), (true, String::new()));

    // Its repositories have the usual grace, with all that belongs to them.
    setup.server.cli_ok(&["repo", "restore", &own]);
    assert!(setup.is_served(&announced) && setup.is_served(&stated));
    setup.assert_healthy();
}

#[rstest]
fn what_a_deleted_account_signed_stays_if_its_content_is_kept(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let (alice, bob) = (Key::new(21), Key::new(22));
    person(&setup.server, "alice");
    query(&setup.server, &format!("UPDATE users SET npub = '{}' WHERE name = 'alice'", npub(&alice)));
    setup.served(&bob, "tool", &[]);
    let issue = alice.event(now() - 9, 1621, &[&["a", &bob.coordinate("tool")]], "marmalade");
    assert_eq!(setup.relay.publish(&issue), (true, String::new()));
    setup.server.cli_ok(&["user", "remove", "alice", "--yes"]);
    settled(&setup.server);
    assert!(setup.is_served(&issue));
}
