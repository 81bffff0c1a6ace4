//! Pushes of several refs: each is judged by its own rule.

use super::scene::{Scene, WAITS, now, state};
use crate::support::query;
use abide_nostr::Event;
use abide_testkit::{Engine, Key};
use rstest::rstest;

fn proposal(scene: &Scene, at: u64, commit: &str) -> Event {
    let coordinate = scene.owner.coordinate("demo");
    Key::new(9).event(at, 1618, &[&["a", &coordinate], &["c", commit]], "please")
}

fn nostr_ref(event: &Event) -> String {
    format!("refs/nostr/{}", event.id.to_hex())
}

/// Commits that branch off the first: one on main, two features.
fn commits(scene: &Scene) -> [String; 3] {
    ["main", "one", "two"].map(|name| {
        scene.git.ok(&scene.work, &["checkout", "-q", "-B", name, &scene.first]);
        scene.git.commit_file(&scene.work, name, name, name)
    })
}

fn is_there(scene: &Scene, oid: &str) -> bool {
    let into = scene.git.fresh_dir();
    scene.git.ok(&into, &["init", "-q"]);
    scene.git.run(&into, &["fetch", "-q", &scene.url(&scene.owner, "demo"), oid]).status.success()
}

#[rstest]
fn each_ref_of_a_push_is_taken_or_refused_by_itself(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let [main, one, two] = commits(&scene);
    let said = state(&key, now(), "demo", &[("refs/heads/main", &main)], Some("main"));
    scene.state_waits(&said);
    let known = proposal(&scene, now(), &one);
    let wrong = proposal(&scene, now() - 1, &"7".repeat(40));
    let unknown = proposal(&scene, now() - 2, &two);
    for event in [&known, &wrong] {
        assert_eq!(scene.relay.publish(event), (true, WAITS.to_owned()));
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
    let reported = scene.push_fails(&key, "demo", &atomic);
    assert!(reported.contains("commit mismatch") && reported.contains("atomic"), "{reported}");
    assert!(!scene.is_served(&said) && !scene.is_served(&known), "all or nothing");
    assert!(!is_there(&scene, &main) && !is_there(&scene, &one));

    let reported = scene.push_fails(&key, "demo", &refs);
    assert!(reported.contains("commit mismatch") && reported.contains("foreign ref"), "{reported}");
    assert!(reported.contains("awaiting PR event"), "{reported}");
    assert!(scene.is_served(&said) && scene.is_served(&known));
    let listed = scene.refs(&key, "demo");
    for (name, oid) in [("refs/heads/main", &main), (known_ref.as_str(), &one)] {
        assert!(listed.contains(&(name.to_owned(), oid.clone())), "{listed:?}");
    }
    assert!(
        !listed.iter().any(|(name, _)| [wrong_ref.as_str(), &unknown_ref, "refs/notes/x"].contains(&name.as_str()))
    );
    assert!(!is_there(&scene, &two), "it came with the others, and waits for its event");
    assert_eq!(scene.relay.publish(&unknown), (true, String::new()));
    assert!(scene.refs(&key, "demo").contains(&(unknown_ref, two)));
    scene.assert_healthy();
}

#[rstest]
fn a_state_that_one_branch_contradicts_does_not_keep_proposals_out(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let [main, one, two] = commits(&scene);
    let events = [proposal(&scene, now(), &one), proposal(&scene, now() - 1, &two)];
    let refs = [
        format!("{main}:refs/heads/main"),
        format!("{one}:{}", nostr_ref(&events[0])),
        format!("{two}:{}", nostr_ref(&events[1])),
    ];
    let refs: Vec<&str> = refs.iter().map(String::as_str).collect();
    let reported = scene.push_fails(&key, "demo", &refs);
    assert!(reported.contains("no authorised state"), "{reported}");
    assert!(!is_there(&scene, &main) && !is_there(&scene, &one));
    for event in &events {
        assert_eq!(scene.relay.publish(event), (true, String::new()), "both commits wait");
    }
    scene.assert_healthy();
}

#[rstest]
fn an_atomic_push_of_branch_and_proposal_is_taken_whole(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let [main, one, _] = commits(&scene);
    let said = state(&key, now(), "demo", &[("refs/heads/main", &main)], Some("main"));
    scene.state_waits(&said);
    let known = proposal(&scene, now(), &one);
    assert_eq!(scene.relay.publish(&known), (true, WAITS.to_owned()));
    scene.push(
        &key,
        "demo",
        &["--atomic", &format!("{main}:refs/heads/main"), &format!("{one}:{}", nostr_ref(&known))],
    );
    assert!(scene.is_served(&said) && scene.is_served(&known));
    scene.assert_healthy();
}

#[rstest]
fn a_state_without_refs_moves_nothing_and_can_be_followed_by_another(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    let (_, before) = scene.served(&key, "demo", &[]);
    let listed = scene.refs(&key, "demo");
    let none = state(&key, now() - 2, "demo", &[], None);
    assert_eq!(scene.say(&none), (true, String::new()));
    assert!(scene.is_served(&none) && !scene.is_served(&before));
    assert_eq!(scene.refs(&key, "demo"), listed);
    let reported = scene.push_fails(&key, "demo", &["--delete", "main"]);
    assert!(reported.contains("no authorised state"), "{reported}");
    let newer = scene.announcement(&key, now(), "demo", &[]);
    assert_eq!(scene.relay.publish(&newer), (true, String::new()));
    assert_eq!(scene.refs(&key, "demo"), listed, "nor later");
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    let said = state(&key, now(), "demo", &[("refs/heads/main", &second)], Some("main"));
    scene.state_waits(&said);
    scene.push(&key, "demo", &["main"]);
    assert!(scene.is_served(&said));
    scene.assert_healthy();
}

#[rstest]
fn a_state_without_refs_leaves_the_states_of_other_maintainers(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let (alice, bob) = (scene.owner.clone(), Key::new(2));
    scene.served(&alice, "demo", &[&["maintainers", &bob.public().to_hex()]]);
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    let of_bob = state(&bob, now() - 3, "demo", &[("refs/heads/main", &second)], Some("main"));
    let of_alice = state(&alice, now() - 3, "demo", &[("refs/heads/other", &second)], None);
    let none = state(&alice, now() - 2, "demo", &[], None);
    scene.state_waits(&of_bob);
    scene.state_waits(&of_alice);
    assert_eq!(scene.say(&none), (true, String::new()));
    let reported = scene.push_fails(&alice, "demo", &[&format!("{second}:refs/heads/other")]);
    assert!(reported.contains("no authorised state"), "{reported}");
    scene.push(&alice, "demo", &["main"]);
    assert!(scene.is_served(&of_bob) && scene.is_served(&none));
    assert!(scene.refs(&alice, "demo").contains(&("refs/heads/main".into(), second)));
    scene.assert_healthy();
}

#[rstest]
fn states_that_can_never_be_followed_wait_and_head_is_read_in_both_spellings(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    for odd in ["main", &"0".repeat(40), &"a".repeat(64)] {
        scene.state_waits(&key.event(now(), 30_618, &[&["d", "demo"], &["refs/heads/main", odd]], odd));
    }
    let reported = scene.status(&key, "demo").text();
    assert!(reported.contains("unreadable"), "{reported}");
    let first = scene.first.clone();
    let refs: [&[&str]; 3] = [&["refs/heads/main", &first], &["refs/heads/dev", &first], &["HEAD", "refs/heads/dev"]];
    let tags: Vec<&[&str]> = [&["d", "demo"] as &[&str]].into_iter().chain(refs).collect();
    assert_eq!(scene.say(&key.event(now() + 1, 30_618, &tags, "")), (true, String::new()));
    let head = scene.git.ok(&scene.work, &["ls-remote", "--symref", &scene.url(&key, "demo"), "HEAD"]);
    assert!(head.contains("ref: refs/heads/dev"), "{head}");
    scene.assert_healthy();
}

#[rstest]
fn a_state_with_an_unreadable_object_id_expires(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    let (_, before) = scene.served(&key, "demo", &[]);
    let listed = scene.refs(&key, "demo");
    let odd = key.event(now(), 30_618, &[&["d", "demo"], &["refs/heads/main", "main"]], "");
    scene.state_waits(&odd);
    let reported = scene.push_fails(&key, "demo", &[&format!("{}:refs/heads/other", scene.first)]);
    assert!(reported.contains("no authorised state"), "{reported}");
    query(&scene.server, "UPDATE purgatory_states SET expires_at = 1");
    scene.sweep();
    assert_eq!(query(&scene.server, "SELECT count(*) FROM purgatory_states"), "0");
    assert!(!scene.is_served(&odd) && scene.is_served(&before));
    assert_eq!(scene.refs(&key, "demo"), listed);
    scene.assert_healthy();
}

#[rstest]
fn deleting_a_branch_that_never_was_is_fine_and_said(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let url = scene.url(&key, "demo");
    let pushed = scene.git.run(&scene.work, &["push", &url, ":refs/heads/gone"]);
    let reported = String::from_utf8_lossy(&pushed.stderr).into_owned();
    assert!(pushed.status.success(), "{reported}");
    assert!(reported.contains("warning: deleting a non-existent ref: refs/heads/gone"), "{reported}");
    scene.assert_healthy();
}
