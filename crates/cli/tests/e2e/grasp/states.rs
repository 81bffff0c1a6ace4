//! Signed states: what they allow, and what they make of refs.

use super::scene::{Scene, now, state};
use abide_testkit::Engine;
use abide_testkit::Key;
use rstest::rstest;

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
fn git_push_arrives_no_matching_event(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    let told = scene.push_fails(&key, "demo", &["main"]);
    assert!(told.contains("no authorised state") && told.contains("[remote rejected]"), "{told}");
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
