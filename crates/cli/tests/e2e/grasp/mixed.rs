//! Pushes of several refs: each is judged by its own rule.

use super::setup::{Setup, WAITS, now, state};
use crate::support::query;
use abide_nostr::Event;
use abide_testkit::{Engine, Key};
use rstest::rstest;

fn proposal(setup: &Setup, at: u64, commit: &str) -> Event {
    let coordinate = setup.owner.coordinate("demo");
    Key::new(9).event(at, 1618, &[&["a", &coordinate], &["c", commit]], "please")
}

fn nostr_ref(event: &Event) -> String {
    format!("refs/nostr/{}", event.id.to_hex())
}

/// Commits that branch off the first: one on main, two features.
fn commits(setup: &Setup) -> [String; 3] {
    ["main", "one", "two"].map(|name| {
        setup.git.ok(&setup.work, &["checkout", "-q", "-B", name, &setup.first]);
        setup.git.commit_file(&setup.work, name, name, name)
    })
}

fn is_there(setup: &Setup, oid: &str) -> bool {
    let into = setup.git.fresh_dir();
    setup.git.ok(&into, &["init", "-q"]);
    setup.git.run(&into, &["fetch", "-q", &setup.url(&setup.owner, "demo"), oid]).status.success()
}

#[rstest]
fn each_ref_of_a_push_is_taken_or_refused_by_itself(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let [main, one, two] = commits(&setup);
    let said = state(&key, now(), "demo", &[("refs/heads/main", &main)], Some("main"));
    setup.state_waits(&said);
    let known = proposal(&setup, now(), &one);
    let wrong = proposal(&setup, now() - 1, &"7".repeat(40));
    let unknown = proposal(&setup, now() - 2, &two);
    for event in [&known, &wrong] {
        assert_eq!(setup.relay.publish(event), (true, WAITS.to_owned()));
    }
    let [known_ref, wrong_ref, unknown_ref] = [&known, &wrong, &unknown].map(nostr_ref);
    let refs = [
        format!("{main}:refs/heads/main"),
        format!("{one}:{known_ref}"),
        format!("{one}:{wrong_ref}"),
        format!("{two}:{unknown_ref}"),
        format!("{main}:refs/notes/x"),
    ];
    let refs: Vec<&str> = refs.iter().map(String::as_str).collect();

    let atomic: Vec<&str> = ["--atomic"].into_iter().chain(refs.iter().copied()).collect();
    let reported = setup.push_fails(&key, "demo", &atomic);
    assert!(reported.contains("commit mismatch") && reported.contains("atomic"), "{reported}");
    assert!(!setup.is_served(&said) && !setup.is_served(&known), "all or nothing");
    assert!(!is_there(&setup, &main) && !is_there(&setup, &one));

    let reported = setup.push_fails(&key, "demo", &refs);
    assert!(reported.contains("commit mismatch") && reported.contains("foreign ref"), "{reported}");
    assert!(reported.contains("awaiting PR event"), "{reported}");
    assert!(setup.is_served(&said) && setup.is_served(&known));
    let listed = setup.refs(&key, "demo");
    for (name, oid) in [("refs/heads/main", &main), (known_ref.as_str(), &one)] {
        assert!(listed.contains(&(name.to_owned(), oid.clone())), "{listed:?}");
    }
    assert!(
        !listed.iter().any(|(name, _)| [wrong_ref.as_str(), &unknown_ref, "refs/notes/x"].contains(&name.as_str()))
    );
    assert!(!is_there(&setup, &two), "it came with the others, and waits for its event");
    assert_eq!(setup.relay.publish(&unknown), (true, String::new()));
    assert!(setup.refs(&key, "demo").contains(&(unknown_ref, two)));
    setup.assert_healthy();
}

#[rstest]
fn a_state_that_one_branch_contradicts_does_not_keep_proposals_out(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let [main, one, two] = commits(&setup);
    let events = [proposal(&setup, now(), &one), proposal(&setup, now() - 1, &two)];
    let refs = [
        format!("{main}:refs/heads/main"),
        format!("{one}:{}", nostr_ref(&events[0])),
        format!("{two}:{}", nostr_ref(&events[1])),
    ];
    let refs: Vec<&str> = refs.iter().map(String::as_str).collect();
    let reported = setup.push_fails(&key, "demo", &refs);
    assert!(reported.contains("no authorised state"), "{reported}");
    assert!(!is_there(&setup, &main) && !is_there(&setup, &one));
    for event in &events {
        assert_eq!(setup.relay.publish(event), (true, String::new()), "both commits wait");
    }
    setup.assert_healthy();
}

#[rstest]
fn an_atomic_push_of_branch_and_proposal_is_taken_whole(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let [main, one, _] = commits(&setup);
    let said = state(&key, now(), "demo", &[("refs/heads/main", &main)], Some("main"));
    setup.state_waits(&said);
    let known = proposal(&setup, now(), &one);
    assert_eq!(setup.relay.publish(&known), (true, WAITS.to_owned()));
    setup.push(
        &key,
        "demo",
        &["--atomic", &format!("{main}:refs/heads/main"), &format!("{one}:{}", nostr_ref(&known))],
    );
    assert!(setup.is_served(&said) && setup.is_served(&known));
    setup.assert_healthy();
}

#[rstest]
fn a_state_without_refs_moves_nothing_and_can_be_followed_by_another(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let (_, before) = setup.served(&key, "demo", &[]);
    let listed = setup.refs(&key, "demo");
    let none = state(&key, now() - 2, "demo", &[], None);
    assert_eq!(setup.say(&none), (true, String::new()));
    assert!(setup.is_served(&none) && !setup.is_served(&before));
    assert_eq!(setup.refs(&key, "demo"), listed);
    let reported = setup.push_fails(&key, "demo", &["--delete", "main"]);
    assert!(reported.contains("no authorised state"), "{reported}");
    let newer = setup.announcement(&key, now(), "demo", &[]);
    assert_eq!(setup.relay.publish(&newer), (true, String::new()));
    assert_eq!(setup.refs(&key, "demo"), listed, "nor later");
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    let said = state(&key, now(), "demo", &[("refs/heads/main", &second)], Some("main"));
    setup.state_waits(&said);
    setup.push(&key, "demo", &["main"]);
    assert!(setup.is_served(&said));
    setup.assert_healthy();
}

#[rstest]
fn a_state_without_refs_leaves_the_states_of_other_maintainers(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let (alice, bob) = (setup.owner.clone(), Key::new(2));
    setup.served(&alice, "demo", &[&["maintainers", &bob.public().to_hex()]]);
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    let of_bob = state(&bob, now() - 3, "demo", &[("refs/heads/main", &second)], Some("main"));
    let of_alice = state(&alice, now() - 3, "demo", &[("refs/heads/other", &second)], None);
    let none = state(&alice, now() - 2, "demo", &[], None);
    setup.state_waits(&of_bob);
    setup.state_waits(&of_alice);
    assert_eq!(setup.say(&none), (true, String::new()));
    let reported = setup.push_fails(&alice, "demo", &[&format!("{second}:refs/heads/other")]);
    assert!(reported.contains("no authorised state"), "{reported}");
    setup.push(&alice, "demo", &["main"]);
    assert!(setup.is_served(&of_bob) && setup.is_served(&none));
    assert!(setup.refs(&alice, "demo").contains(&("refs/heads/main".into(), second)));
    setup.assert_healthy();
}

#[rstest]
fn states_that_can_never_be_followed_wait_and_head_is_read_in_both_spellings(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    for odd in ["main", &"0".repeat(40), &"a".repeat(64)] {
        setup.state_waits(&key.event(now(), 30_618, &[&["d", "demo"], &["refs/heads/main", odd]], odd));
    }
    let reported = setup.status(&key, "demo").text();
    assert!(reported.contains("unreadable"), "{reported}");
    let first = setup.first.clone();
    let refs: [&[&str]; 3] = [&["refs/heads/main", &first], &["refs/heads/dev", &first], &["HEAD", "refs/heads/dev"]];
    let tags: Vec<&[&str]> = [&["d", "demo"] as &[&str]].into_iter().chain(refs).collect();
    assert_eq!(setup.say(&key.event(now() + 1, 30_618, &tags, "")), (true, String::new()));
    let head = setup.git.ok(&setup.work, &["ls-remote", "--symref", &setup.url(&key, "demo"), "HEAD"]);
    assert!(head.contains("ref: refs/heads/dev"), "{head}");
    setup.assert_healthy();
}

#[rstest]
fn a_state_with_an_unreadable_object_id_expires(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let (_, before) = setup.served(&key, "demo", &[]);
    let listed = setup.refs(&key, "demo");
    let odd = key.event(now(), 30_618, &[&["d", "demo"], &["refs/heads/main", "main"]], "");
    setup.state_waits(&odd);
    let reported = setup.push_fails(&key, "demo", &[&format!("{}:refs/heads/other", setup.first)]);
    assert!(reported.contains("no authorised state"), "{reported}");
    query(&setup.server, "UPDATE purgatory_states SET expires_at = 1");
    setup.sweep();
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_states"), "0");
    assert!(!setup.is_served(&odd) && setup.is_served(&before));
    assert_eq!(setup.refs(&key, "demo"), listed);
    setup.assert_healthy();
}

#[rstest]
fn deleting_a_branch_that_never_was_is_fine_and_said(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let url = setup.url(&key, "demo");
    let pushed = setup.git.run(&setup.work, &["push", &url, ":refs/heads/gone"]);
    let reported = String::from_utf8_lossy(&pushed.stderr).into_owned();
    assert!(pushed.status.success(), "{reported}");
    assert!(reported.contains("warning: deleting a non-existent ref: refs/heads/gone"), "{reported}");
    setup.assert_healthy();
}
