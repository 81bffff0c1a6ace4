//! Signed states: what they allow, and what they make of refs.

use super::setup::{Setup, WAITS, now, npub, of, state};
use crate::support::builder;
use abide_testkit::{Engine, Key, Nostr, eventually, http};
use rstest::rstest;
use std::time::Duration;

#[rstest]
fn event_arrives_git_data_exists(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let refs = [("refs/heads/main", setup.first.as_str()), ("refs/heads/other", setup.first.as_str())];
    let said = state(&key, now() - 3, "demo", &refs, Some("other"));
    assert_eq!(setup.say(&said), (true, String::new()), "all its objects are here: it never waits");
    assert!(setup.is_served(&said));
    let listed = setup.refs(&key, "demo");
    assert!(listed.contains(&("refs/heads/other".into(), setup.first.clone())), "{listed:?}");
    let head = setup.git.ok(&setup.work, &["ls-remote", "--symref", &setup.url(&key, "demo"), "HEAD"]);
    assert!(head.contains("ref: refs/heads/other"), "{head}");
    let fewer = state(&key, now() - 2, "demo", &[("refs/heads/other", &setup.first)], None);
    assert_eq!(setup.say(&fewer), (true, String::new()));
    assert!(!setup.refs(&key, "demo").iter().any(|(name, _)| name == "refs/heads/main"), "what it does not name goes");
    setup.assert_healthy();
}

#[rstest]
fn event_arrives_git_data_does_not_exist_and_a_matching_push_releases_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    let said = state(&key, now() - 3, "demo", &[("refs/heads/main", &second)], Some("main"));
    assert_eq!(setup.say(&said), (true, WAITS.to_owned()));
    assert_eq!(setup.say(&said), (true, "duplicate: in purgatory".to_owned()), "the same event submitted twice");
    assert!(!setup.is_served(&said));
    let status = setup.status(&key, "demo").json();
    assert_eq!(
        (&status["status"], &status["states"][0]["missing"][0]["sha"]),
        (&"served".into(), &second.clone().into())
    );
    let page = http::get(setup.server.http_addr(), &format!("/{}/demo", npub(&key)), None).text();
    assert!(page.contains("is waiting for its push: 1 of 1"), "{page}");
    assert!(
        setup.refs(&key, "demo").iter().all(|(_, oid)| *oid == setup.first),
        "nothing moves before its data is here"
    );
    let mut listener = Nostr::connect(&setup.server.url());
    listener.subscribe("new", &[of(&key, "demo")]);
    setup.push(&key, "demo", &["main"]);
    assert!(setup.is_served(&said), "by the time the push returns");
    assert_eq!(listener.live("new").id, said.id);
    assert!(setup.say(&said).0, "the same event submitted again");
    setup.assert_healthy();
}

#[rstest]
fn event_expires_in_purgatory_and_its_repository_stays(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__PURGATORY_EXPIRY", "4s").start());
    let key = setup.owner.clone();
    let (announcement, _) = setup.served(&key, "demo", &[]);
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    let said = state(&key, now() - 3, "demo", &[("refs/heads/main", &second)], Some("main"));
    setup.state_waits(&said);
    eventually(Duration::from_secs(30), || {
        setup.sweep();
        setup.status(&key, "demo").json()["states"].as_array().is_some_and(Vec::is_empty)
    });
    assert!(setup.push_fails(&key, "demo", &["main"]).contains("no authorised state"));
    assert!(setup.is_served(&announcement));
    setup.state_waits(&said);
    setup.push(&key, "demo", &["main"]);
    assert!(setup.is_served(&said), "whoever wants to may try again");
    setup.assert_healthy();
}

#[rstest]
fn git_push_arrives_no_matching_event(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    let reported = setup.push_fails(&key, "demo", &["main"]);
    assert!(reported.contains("no authorised state") && reported.contains("[remote rejected]"), "{reported}");
    assert!(setup.refs(&key, "demo").iter().all(|(_, oid)| *oid == setup.first));
    let foreign = setup.push_fails(&key, "demo", &["main:refs/pull/1/head"]);
    assert!(foreign.contains("foreign ref"), "{foreign}");
    let said = state(&key, now() - 3, "demo", &[("refs/heads/main", &second)], Some("main"));
    setup.state_waits(&said);
    setup.push(&key, "demo", &["main"]);
    assert!(setup.is_served(&said));
    setup.assert_healthy();
}

#[rstest]
fn multiple_state_events_for_the_same_identifier(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    let third = setup.git.commit_file(&setup.work, "b", "b", "third");
    let at = now();
    let older = state(&key, at - 4, "demo", &[("refs/heads/main", &second)], Some("main"));
    let newer = state(&key, at - 3, "demo", &[("refs/heads/main", &third)], Some("main"));
    setup.state_waits(&older);
    setup.state_waits(&newer);
    // Old data after the new state: late binding finds the state that it belongs to.
    setup.push(&key, "demo", &[&format!("{second}:refs/heads/main")]);
    assert!(setup.is_served(&older) && !setup.is_served(&newer));
    setup.push(&key, "demo", &["main"]);
    assert!(setup.is_served(&newer) && !setup.is_served(&older), "the slot holds the newest");
    assert!(setup.refs(&key, "demo").contains(&("refs/heads/main".into(), third)));
    let replay = setup.say(&older);
    assert!(!replay.0 && replay.1.starts_with("invalid:"), "an older one never comes back: {replay:?}");
    setup.assert_healthy();
}

/// `grasp.maintainers = "reciprocal"`: being listed gives no rights before the listed key lists a maintainer back.
#[rstest]
fn in_the_reciprocal_model_a_listed_key_signs_once_it_lists_a_maintainer_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__MAINTAINERS", "reciprocal").start());
    let (alice, bob) = (setup.owner.clone(), Key::new(2));
    let (of_alice, of_bob) = (alice.public().to_hex(), bob.public().to_hex());
    setup.served(&alice, "demo", &[&["maintainers", &of_bob]]);
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    let said = state(&bob, now() - 3, "demo", &[("refs/heads/main", &second)], Some("main"));
    let (accepted, reason) = setup.say(&said);
    assert!(!accepted && reason.starts_with("restricted: "), "{reason}");

    // Elsewhere than here, so that it is kept beside the repository of alice.
    let (clone, relays) = (["clone", "https://elsewhere.example/x.git"], ["relays", "wss://elsewhere.example"]);
    let back: &[&[&str]] = &[&["d", "demo"], &clone, &relays, &["maintainers", &of_alice]];
    let (accepted, reason) = setup.relay.publish(&bob.event(now() - 9, 30_617, back, ""));
    assert!(accepted, "{reason}");
    setup.state_waits(&said);
    setup.push(&alice, "demo", &["main"]);
    assert!(setup.is_served(&said));
    assert!(setup.refs(&alice, "demo").contains(&("refs/heads/main".into(), second)));
    setup.assert_healthy();
}

#[rstest]
fn maintainers_of_maintainers_count(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let (alice, bob, carol, mallory) = (Key::new(1), Key::new(2), Key::new(3), Key::new(4));
    let list = |key: &Key| key.public().to_hex();
    setup.announce(&alice, "demo", &[&["maintainers", &list(&bob)]]);
    let of_bob = setup.announce(&bob, "demo", &[&["maintainers", &list(&carol)]]);
    let first = setup.first.clone();
    let refs = [("refs/heads/main", first.as_str())];
    let strange = setup.say(&state(&mallory, now() - 5, "demo", &refs, Some("main")));
    assert!(!strange.0 && strange.1.starts_with("restricted:"), "{strange:?}");
    let said = state(&carol, now() - 5, "demo", &refs, Some("main"));
    setup.state_waits(&said);
    setup.push(&alice, "demo", &["main"]);
    // The same state rules Bob's repository too: aligning it is its data, and promotes it.
    assert!(setup.is_served(&said) && setup.is_served(&of_bob));
    assert_eq!(setup.refs(&alice, "demo"), setup.refs(&bob, "demo"));
    setup.assert_healthy();
}

#[rstest]
fn an_empty_push_promotes_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let announcement = setup.announce(&key, "demo", &[]);
    let url = format!("/{}/demo.git/git-receive-pack", super::setup::npub(&key));
    let probe = abide_testkit::http::Request::new("POST", &url)
        .header("Content-Type", "application/x-git-receive-pack-request")
        .body("0000")
        .send(setup.server.http_addr());
    assert_eq!(probe.status, 200);
    assert!(!setup.is_served(&announcement));
    assert!(setup.directories().is_empty());
}

/// The way of clients that publish the state first: by the time they push, the ref is gone and they name no old object.
#[rstest]
fn deleting_a_branch_that_the_state_has_deleted_succeeds(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let first = setup.first.clone();
    let both = [("refs/heads/main", first.as_str()), ("refs/heads/other", first.as_str())];
    assert_eq!(setup.say(&state(&key, now() - 3, "demo", &both, Some("main"))), (true, String::new()));
    assert_eq!(setup.say(&state(&key, now() - 2, "demo", &both[..1], Some("main"))), (true, String::new()));
    let zero = "0".repeat(40);
    for (name, answer) in [("refs/heads/other", "ok refs/heads/other"), ("refs/heads/main", "ng refs/heads/main")] {
        let command = format!("{zero} {zero} {name}\0report-status");
        let url = format!("/{}/demo.git/git-receive-pack", super::setup::npub(&key));
        let pushed = abide_testkit::http::Request::new("POST", &url)
            .header("Content-Type", "application/x-git-receive-pack-request")
            .body(format!("{:04x}{command}0000", command.len() + 4))
            .send(setup.server.http_addr());
        assert!(pushed.status == 200 && pushed.text().contains(answer), "{}", pushed.text());
    }
    assert!(setup.refs(&key, "demo").contains(&("refs/heads/main".into(), first)));
    setup.assert_healthy();
}
