//! Events that belong to an announcement in purgatory wait with it.

use super::setup::{Setup, WAITS, now, npub, state};
use crate::support::{builder, query};
use abide_nostr::Event;
use abide_testkit::http::Request;
use abide_testkit::{Engine, Key, eventually};
use rstest::rstest;
use std::time::Duration;

fn nostr_ref(event: &Event) -> String {
    format!("refs/nostr/{}", event.id.to_hex())
}

/// An issue, a comment on it, a patch and a pull request for a repository.
fn conversation(owner: &Key, commit: &str) -> [Event; 4] {
    let (author, coordinate) = (Key::new(9), owner.coordinate("demo"));
    let issue = author.event(now(), 1621, &[&["a", &coordinate]], "an issue");
    let id = issue.id.to_hex();
    let comment = Key::new(8).event(now(), 1111, &[&["E", &id], &["e", &id]], "a comment");
    let patch = author.event(now(), 1617, &[&["a", &coordinate]], "diff --git a/x b/x\n");
    let pull = author.event(now(), 1618, &[&["a", &coordinate], &["c", commit]], "please");
    [issue, comment, patch, pull]
}

/// Publishes the state of the first commit and pushes it.
fn promote(setup: &mut Setup, key: &Key) {
    let first = setup.first.clone();
    setup.state_waits(&state(key, now() - 5, "demo", &[("refs/heads/main", &first)], Some("main")));
    setup.push(key, "demo", &[&format!("{first}:refs/heads/main")]);
}

#[rstest]
fn what_is_for_a_waiting_repository_is_served_when_it_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] commit_first: bool,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.announce(&key, "demo", &[]);
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let events = conversation(&key, &commit);
    for event in &events {
        assert_eq!(setup.relay.publish(event), (true, WAITS.to_owned()), "kind {}", event.kind);
        assert_eq!(setup.relay.publish(event), (true, "duplicate: in purgatory".to_owned()), "kind {}", event.kind);
        assert!(!setup.is_served(event));
    }
    let pull = &events[3];
    let to = format!("{commit}:{}", nostr_ref(pull));
    if commit_first {
        let wrong = setup.push_fails(&key, "demo", &[&format!("{}:{}", setup.first, nostr_ref(pull))]);
        assert!(wrong.contains("commit mismatch"), "{wrong}");
        setup.push(&key, "demo", &[&to]);
        assert!(setup.refs(&key, "demo").is_empty(), "a PR event promotes nothing");
    }
    let mut live = abide_testkit::Nostr::connect(&setup.server.url());
    live.subscribe("issues", &[serde_json::json!({ "kinds": [1621] })]);
    promote(&mut setup, &key);
    assert_eq!(live.live("issues").id, events[0].id);
    for event in &events[..3] {
        assert!(setup.is_served(event), "kind {}", event.kind);
    }
    if !commit_first {
        assert!(!setup.is_served(pull), "it waits for its commit");
        setup.push(&key, "demo", &[&to]);
    }
    assert!(setup.is_served(pull));
    assert!(setup.refs(&key, "demo").contains(&(nostr_ref(pull), commit)));
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_attached"), "0");
    setup.assert_healthy();
}

#[rstest]
fn what_is_for_a_waiting_repository_goes_with_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__PURGATORY_EXPIRY", "3s").start());
    let key = setup.owner.clone();
    setup.announce(&key, "demo", &[]);
    let events = conversation(&key, &"1".repeat(40));
    for event in &events {
        assert_eq!(setup.relay.publish(event), (true, WAITS.to_owned()));
    }
    let author = Key::new(9);
    let id = events[2].id.to_hex();
    assert!(setup.relay.publish(&author.event(now(), 5, &[&["e", &id]], "")).0, "its author deletes the patch");
    eventually(Duration::from_secs(30), || {
        setup.sweep();
        setup.status(&key, "demo").status == 404
    });
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_attached"), "0");
    let (taken, reason) = setup.relay.publish(&events[0]);
    assert!(!taken && reason.starts_with("restricted:"), "{reason}");
    setup.announce(&key, "demo", &[]);
    assert_eq!(setup.relay.publish(&events[0]), (true, WAITS.to_owned()), "it may come again");
    let (taken, reason) = setup.relay.publish(&events[2]);
    assert!(!taken && reason.contains("deleted"), "{reason}");
    setup.assert_healthy();
}

#[rstest]
fn what_waits_with_an_announcement_is_bounded(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.announce(&key, "demo", &[]);
    let coordinate = key.coordinate("demo");
    let long = "x".repeat(200 << 10);
    let at = now();
    let answers: Vec<_> =
        (0..6).map(|n| setup.relay.publish(&Key::new(9).event(at - n, 1621, &[&["a", &coordinate]], &long))).collect();
    assert_eq!(answers.iter().filter(|(taken, _)| *taken).count(), 5, "a mebibyte of one key");
    assert!(answers[5].1.starts_with("rate-limited:"), "{}", answers[5].1);
    let small = Key::new(8).event(now(), 1621, &[&["a", &coordinate]], "an issue");
    assert_eq!(setup.relay.publish(&small), (true, WAITS.to_owned()), "others are not kept out");
    setup.assert_healthy();
}

/// A push that a waiting pull request allows leaves it at least a quarter of an hour, whatever comes of the push.
#[rstest]
fn a_pull_request_does_not_expire_while_its_commit_is_pushed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__PURGATORY_EXPIRY", "60s").start());
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let pull = &conversation(&key, &commit)[3];
    assert_eq!(setup.relay.publish(pull), (true, WAITS.to_owned()));
    let left = |setup: &Setup| {
        let seconds = "SELECT (expires_at - created_at) / 1000000 FROM purgatory_proposals";
        query(&setup.server, seconds).parse::<i64>().expect("a number")
    };
    assert_eq!(left(&setup), 60);
    cut_off(&setup, &key, &commit, pull);
    assert!(left(&setup) >= 15 * 60, "{} s", left(&setup));
    setup.assert_healthy();
}

/// The same for a pull request that waits with an announcement: both stay.
#[rstest]
fn an_announcement_does_not_expire_while_the_commit_of_its_pull_request_is_pushed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__PURGATORY_EXPIRY", "60s").start());
    let key = setup.owner.clone();
    setup.announce(&key, "demo", &[]);
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let pull = &conversation(&key, &commit)[3];
    assert_eq!(setup.relay.publish(pull), (true, WAITS.to_owned()));
    let left = |setup: &Setup| {
        let seconds = "SELECT (expires_at - created_at) / 1000000 FROM purgatory_announcements";
        query(&setup.server, seconds).parse::<i64>().expect("a number")
    };
    assert_eq!(left(&setup), 60);
    cut_off(&setup, &key, &commit, pull);
    assert!(left(&setup) >= 15 * 60, "{} s", left(&setup));
    setup.assert_healthy();
}

/// Pushes a pack that is cut off: allowed at first, and then good for nothing.
fn cut_off(setup: &Setup, key: &Key, commit: &str, pull: &Event) {
    let line = format!("{} {commit} {}\0report-status\n", "0".repeat(40), nostr_ref(pull));
    let body = format!("{:04x}{line}0000PACK", line.len() + 4);
    let path = format!("/{}/demo.git/git-receive-pack", npub(key));
    let request = Request::new("POST", &path).header("content-type", "application/x-git-receive-pack-request");
    let answer = request.body(body.as_bytes()).send(setup.server.http_addr());
    assert!(answer.text().contains("unpack"), "{}", answer.text());
}

/// A waiting event is no nearer to a repository than a served one.
#[rstest]
fn replies_that_wait_with_an_announcement_are_bounded_in_steps(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.announce(&key, "demo", &[]);
    let issue = conversation(&key, &"1".repeat(40))[0].clone();
    assert_eq!(setup.relay.publish(&issue), (true, WAITS.to_owned()));
    let reply = |to: &Event, text: &str| Key::new(8).event(now(), 1111, &[&["e", &to.id.to_hex()]], text);
    let mut chain = vec![issue];
    for n in 1..=10 {
        let next = reply(&chain[n - 1], &n.to_string());
        assert_eq!(setup.relay.publish(&next), (true, WAITS.to_owned()), "{n}");
        chain.push(next);
    }
    let too_far = |setup: &mut Setup, text: &str| {
        let (taken, reason) = setup.relay.publish(&reply(&chain[10], text));
        assert!(!taken && reason.starts_with("restricted: the event is more than 10 references away"), "{reason}");
    };
    too_far(&mut setup, "while it waits");
    promote(&mut setup, &key);
    for event in &chain {
        assert!(setup.is_served(event), "{}", event.content);
    }
    too_far(&mut setup, "once it is served");
    assert_eq!(setup.relay.publish(&reply(&chain[9], "near enough")), (true, String::new()));
    setup.assert_healthy();
}

#[rstest]
fn announced_anew_after_the_grace_and_before_the_sweep_it_comes_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let listed = setup.refs(&key, "demo");
    let coordinate = key.coordinate("demo");
    assert!(setup.relay.publish(&key.event(now() - 2, 5, &[&["a", &coordinate]], "")).0);
    assert!(setup.git.run(&setup.work, &["ls-remote", &setup.url(&key, "demo")]).status.code() != Some(0));
    let eight_days = 8 * 24 * 3_600_000_000_i64;
    query(&setup.server, &format!("UPDATE repos SET deleted_at = deleted_at - {eight_days}"));
    let newer = setup.announcement(&key, now(), "demo", &[]);
    assert_eq!(setup.relay.publish(&newer), (true, String::new()));
    assert_eq!(setup.refs(&key, "demo"), listed);
    setup.server.cli_ok(&["jobs", "run", "lifecycle:sweep"]);
    assert_eq!(setup.refs(&key, "demo"), listed, "and the sweep leaves it alone");
    setup.assert_healthy();
}

#[rstest]
fn a_replacement_extends_the_announcement(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.announce(&key, "demo", &[]);
    query(&setup.server, "UPDATE purgatory_announcements SET expires_at = expires_at - 1700000000");
    let ends = |setup: &Setup| {
        let sql = "SELECT expires_at FROM purgatory_announcements";
        query(&setup.server, sql).parse::<i64>().expect("a number")
    };
    let before = ends(&setup);
    let newer = setup.announcement(&key, now(), "demo", &[]);
    assert_eq!(setup.relay.publish(&newer), (true, WAITS.to_owned()));
    assert!(ends(&setup) >= before + 1_700_000_000, "its time starts anew");
    setup.sweep();
    assert_eq!(setup.status(&key, "demo").status, 200);
}

#[rstest]
fn a_states_end_leaves_the_waiting_announcement_its_own_time(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.announce(&key, "demo", &[]);
    let first = setup.first.clone();
    let said = state(&key, now() - 5, "demo", &[("refs/heads/main", &first)], Some("main"));
    setup.state_waits(&said);
    let ends = |setup: &Setup| query(&setup.server, "SELECT expires_at FROM purgatory_announcements");
    let before = ends(&setup);
    query(&setup.server, "UPDATE purgatory_states SET expires_at = expires_at - 2000000000");
    setup.sweep();
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_states"), "0");
    assert_eq!(ends(&setup), before);
    let reported = setup.push_fails(&key, "demo", &["main"]);
    assert!(reported.contains("no authorised state"), "{reported}");
    promote(&mut setup, &key);
    assert!(!setup.refs(&key, "demo").is_empty());
    setup.assert_healthy();
}

/// A pull request for a served repository, a comment on it, and a reply to that, which all tag nothing else.
fn thread(setup: &mut Setup, commit: &str) -> [Event; 3] {
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let pull = conversation(&key, commit)[3].clone();
    let on = |event: &Event, author: u32, text: &str| {
        let (root, id) = (pull.id.to_hex(), event.id.to_hex());
        Key::new(author).event(now(), 1111, &[&["E", &root], &["K", "1618"], &["e", &id], &["k", "1111"]], text)
    };
    let comment = on(&pull, 8, "a comment");
    let reply = Key::new(7).event(now(), 1111, &[&["e", &comment.id.to_hex()]], "a reply");
    let events = [pull, comment, reply];
    for event in &events {
        assert_eq!(setup.relay.publish(event), (true, WAITS.to_owned()), "{}", event.content);
        assert_eq!(setup.relay.publish(event), (true, "duplicate: in purgatory".to_owned()), "{}", event.content);
        assert!(!setup.is_served(event));
    }
    events
}

#[rstest]
fn comments_on_a_waiting_pull_request_are_served_when_it_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    setup.git.ok(&setup.work, &["branch", "-q", "feature"]);
    setup.git.ok(&setup.work, &["reset", "-q", "--hard", &setup.first]);
    let events = thread(&mut setup, &commit);
    setup.server.restart();
    setup.relay = abide_testkit::Nostr::connect(&setup.server.url());
    let mut live = abide_testkit::Nostr::connect(&setup.server.url());
    live.subscribe("comments", &[serde_json::json!({ "kinds": [1111] })]);
    setup.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&events[0]))]);
    for event in &events {
        assert!(setup.is_served(event), "{}", event.content);
    }
    assert_eq!([live.live("comments").id, live.live("comments").id], [events[1].id, events[2].id]);
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_attached"), "0");
    setup.assert_healthy();
}

#[rstest]
fn comments_on_a_waiting_pull_request_go_with_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] deleted: bool,
) {
    let mut setup = Setup::new(engine);
    let events = thread(&mut setup, &"1".repeat(40));
    if deleted {
        let id = events[0].id.to_hex();
        assert!(setup.relay.publish(&Key::new(9).event(now(), 5, &[&["e", &id]], "")).0);
    } else {
        query(&setup.server, "UPDATE purgatory_proposals SET expires_at = expires_at - 2000000000");
        setup.sweep();
    }
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_proposals"), "0");
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_attached"), "0");
    let (taken, reason) = setup.relay.publish(&events[1]);
    assert!(!taken && reason.starts_with("restricted:"), "{reason}");
    setup.assert_healthy();
}

#[rstest]
fn what_waits_with_a_pull_request_is_bounded(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let pull = thread(&mut setup, &"1".repeat(40))[0].clone();
    let (id, long, at) = (pull.id.to_hex(), "x".repeat(200 << 10), now());
    let answers: Vec<_> =
        (0..6).map(|n| setup.relay.publish(&Key::new(6).event(at - n, 1111, &[&["E", &id]], &long))).collect();
    assert_eq!(answers.iter().filter(|(taken, _)| *taken).count(), 5, "a mebibyte of one key");
    assert!(answers[5].1.starts_with("rate-limited:"), "{}", answers[5].1);
}
