//! Signed states: what they allow, and what they make of refs.

use super::scene::{Scene, WAITS, now, npub, of, state};
use crate::support::builder;
use abide_testkit::{Engine, Key, Nostr, eventually, http};
use rstest::rstest;
use std::time::Duration;

#[rstest]
fn event_arrives_git_data_exists(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let refs = [("refs/heads/main", scene.first.as_str()), ("refs/heads/other", scene.first.as_str())];
    let said = state(&key, now() - 3, "demo", &refs, Some("other"));
    assert_eq!(scene.say(&said), (true, String::new()), "all its objects are here: it never waits");
    assert!(scene.is_served(&said));
    let listed = scene.refs(&key, "demo");
    assert!(listed.contains(&("refs/heads/other".into(), scene.first.clone())), "{listed:?}");
    let head = scene.git.ok(&scene.work, &["ls-remote", "--symref", &scene.url(&key, "demo"), "HEAD"]);
    assert!(head.contains("ref: refs/heads/other"), "{head}");
    let fewer = state(&key, now() - 2, "demo", &[("refs/heads/other", &scene.first)], None);
    assert_eq!(scene.say(&fewer), (true, String::new()));
    assert!(!scene.refs(&key, "demo").iter().any(|(name, _)| name == "refs/heads/main"), "what it does not name goes");
    scene.assert_healthy();
}

#[rstest]
fn event_arrives_git_data_does_not_exist_and_a_matching_push_releases_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    let said = state(&key, now() - 3, "demo", &[("refs/heads/main", &second)], Some("main"));
    assert_eq!(scene.say(&said), (true, WAITS.to_owned()));
    assert_eq!(scene.say(&said), (true, "duplicate: in purgatory".to_owned()), "the same event submitted twice");
    assert!(!scene.is_served(&said));
    let status = scene.status(&key, "demo").json();
    assert_eq!(
        (&status["status"], &status["states"][0]["missing"][0]["sha"]),
        (&"served".into(), &second.clone().into())
    );
    let page = http::get(scene.server.http_addr(), &format!("/{}/demo", npub(&key)), None).text();
    assert!(page.contains("is waiting for its push: 1 of 1"), "{page}");
    assert!(
        scene.refs(&key, "demo").iter().all(|(_, oid)| *oid == scene.first),
        "nothing moves before its data is here"
    );
    let mut listener = Nostr::connect(&scene.server.url());
    listener.subscribe("new", &[of(&key, "demo")]);
    scene.push(&key, "demo", &["main"]);
    assert!(scene.is_served(&said), "by the time the push returns");
    assert_eq!(listener.live("new").id, said.id);
    assert!(scene.say(&said).0, "the same event submitted again");
    scene.assert_healthy();
}

#[rstest]
fn event_expires_in_purgatory_and_its_repository_stays(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::on(builder(engine).env("ABIDE_GRASP__PURGATORY_EXPIRY", "4s").start());
    let key = scene.owner.clone();
    let (announcement, _) = scene.served(&key, "demo", &[]);
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    let said = state(&key, now() - 3, "demo", &[("refs/heads/main", &second)], Some("main"));
    scene.state_waits(&said);
    eventually(Duration::from_secs(30), || {
        scene.sweep();
        scene.status(&key, "demo").json()["states"].as_array().is_some_and(Vec::is_empty)
    });
    assert!(scene.push_fails(&key, "demo", &["main"]).contains("no authorised state"));
    assert!(scene.is_served(&announcement));
    scene.state_waits(&said);
    scene.push(&key, "demo", &["main"]);
    assert!(scene.is_served(&said), "whoever wants to may try again");
    scene.assert_healthy();
}

#[rstest]
fn git_push_arrives_no_matching_event(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    let reported = scene.push_fails(&key, "demo", &["main"]);
    assert!(reported.contains("no authorised state") && reported.contains("[remote rejected]"), "{reported}");
    assert!(scene.refs(&key, "demo").iter().all(|(_, oid)| *oid == scene.first));
    let foreign = scene.push_fails(&key, "demo", &["main:refs/pull/1/head"]);
    assert!(foreign.contains("foreign ref"), "{foreign}");
    let said = state(&key, now() - 3, "demo", &[("refs/heads/main", &second)], Some("main"));
    scene.state_waits(&said);
    scene.push(&key, "demo", &["main"]);
    assert!(scene.is_served(&said));
    scene.assert_healthy();
}

#[rstest]
fn multiple_state_events_for_the_same_identifier(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    let third = scene.git.commit_file(&scene.work, "b", "b", "third");
    let at = now();
    let older = state(&key, at - 4, "demo", &[("refs/heads/main", &second)], Some("main"));
    let newer = state(&key, at - 3, "demo", &[("refs/heads/main", &third)], Some("main"));
    scene.state_waits(&older);
    scene.state_waits(&newer);
    // Old data after the new state: late binding finds the state that it belongs to.
    scene.push(&key, "demo", &[&format!("{second}:refs/heads/main")]);
    assert!(scene.is_served(&older) && !scene.is_served(&newer));
    scene.push(&key, "demo", &["main"]);
    assert!(scene.is_served(&newer) && !scene.is_served(&older), "the slot holds the newest");
    assert!(scene.refs(&key, "demo").contains(&("refs/heads/main".into(), third)));
    let replay = scene.say(&older);
    assert!(!replay.0 && replay.1.starts_with("invalid:"), "an older one never comes back: {replay:?}");
    scene.assert_healthy();
}

/// `grasp.maintainers = "reciprocal"`: being listed gives no rights before the listed key lists a maintainer back.
#[rstest]
fn in_the_reciprocal_model_a_listed_key_signs_once_it_lists_a_maintainer_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::on(builder(engine).env("ABIDE_GRASP__MAINTAINERS", "reciprocal").start());
    let (alice, bob) = (scene.owner.clone(), Key::new(2));
    let (of_alice, of_bob) = (alice.public().to_hex(), bob.public().to_hex());
    scene.served(&alice, "demo", &[&["maintainers", &of_bob]]);
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    let said = state(&bob, now() - 3, "demo", &[("refs/heads/main", &second)], Some("main"));
    let (accepted, reason) = scene.say(&said);
    assert!(!accepted && reason.starts_with("restricted: "), "{reason}");

    // Elsewhere than here, so that it is kept beside the repository of alice.
    let (clone, relays) = (["clone", "https://elsewhere.example/x.git"], ["relays", "wss://elsewhere.example"]);
    let back: &[&[&str]] = &[&["d", "demo"], &clone, &relays, &["maintainers", &of_alice]];
    let (accepted, reason) = scene.relay.publish(&bob.event(now() - 9, 30_617, back, ""));
    assert!(accepted, "{reason}");
    scene.state_waits(&said);
    scene.push(&alice, "demo", &["main"]);
    assert!(scene.is_served(&said));
    assert!(scene.refs(&alice, "demo").contains(&("refs/heads/main".into(), second)));
    scene.assert_healthy();
}

#[rstest]
fn maintainers_of_maintainers_count(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let (alice, bob, carol, mallory) = (Key::new(1), Key::new(2), Key::new(3), Key::new(4));
    let list = |key: &Key| key.public().to_hex();
    scene.announce(&alice, "demo", &[&["maintainers", &list(&bob)]]);
    let of_bob = scene.announce(&bob, "demo", &[&["maintainers", &list(&carol)]]);
    let first = scene.first.clone();
    let refs = [("refs/heads/main", first.as_str())];
    let strange = scene.say(&state(&mallory, now() - 5, "demo", &refs, Some("main")));
    assert!(!strange.0 && strange.1.starts_with("restricted:"), "{strange:?}");
    let said = state(&carol, now() - 5, "demo", &refs, Some("main"));
    scene.state_waits(&said);
    scene.push(&alice, "demo", &["main"]);
    // The same state rules Bob's repository too: aligning it is its data, and promotes it.
    assert!(scene.is_served(&said) && scene.is_served(&of_bob));
    assert_eq!(scene.refs(&alice, "demo"), scene.refs(&bob, "demo"));
    scene.assert_healthy();
}

#[rstest]
fn an_empty_push_promotes_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    let announcement = scene.announce(&key, "demo", &[]);
    let url = format!("/{}/demo.git/git-receive-pack", super::scene::npub(&key));
    let probe = abide_testkit::http::Request::new("POST", &url)
        .header("Content-Type", "application/x-git-receive-pack-request")
        .body("0000")
        .send(scene.server.http_addr());
    assert_eq!(probe.status, 200);
    assert!(!scene.is_served(&announcement));
    assert!(scene.directories().is_empty());
}

/// The way of clients that publish the state first: by the time they push, the ref is gone and they name no old object.
#[rstest]
fn deleting_a_branch_that_the_state_has_deleted_succeeds(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let first = scene.first.clone();
    let both = [("refs/heads/main", first.as_str()), ("refs/heads/other", first.as_str())];
    assert_eq!(scene.say(&state(&key, now() - 3, "demo", &both, Some("main"))), (true, String::new()));
    assert_eq!(scene.say(&state(&key, now() - 2, "demo", &both[..1], Some("main"))), (true, String::new()));
    let zero = "0".repeat(40);
    for (name, answer) in [("refs/heads/other", "ok refs/heads/other"), ("refs/heads/main", "ng refs/heads/main")] {
        let command = format!("{zero} {zero} {name}\0report-status");
        let url = format!("/{}/demo.git/git-receive-pack", super::scene::npub(&key));
        let pushed = abide_testkit::http::Request::new("POST", &url)
            .header("Content-Type", "application/x-git-receive-pack-request")
            .body(format!("{:04x}{command}0000", command.len() + 4))
            .send(scene.server.http_addr());
        assert!(pushed.status == 200 && pushed.text().contains(answer), "{}", pushed.text());
    }
    assert!(scene.refs(&key, "demo").contains(&("refs/heads/main".into(), first)));
    scene.assert_healthy();
}
