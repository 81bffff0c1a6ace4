//! Announcements in purgatory.

use super::setup::{Setup, WAITS, now, npub, of, state};
use crate::support::{builder, query};
use abide_testkit::Engine;
use abide_testkit::Key;
use rstest::rstest;

#[rstest]
fn announcement_to_purgatory_git_data_promotes_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let announcement = setup.announce(&key, "demo", &[&["description", "A demo"]]);
    assert!(!setup.is_served(&announcement), "nothing is served before there is content");
    assert_eq!(setup.refs(&key, "demo"), [], "a waiting repository can be read, and has nothing");
    let empty = setup.git.fresh_dir();
    setup.git.ok(&empty, &["-c", "init.defaultBranch=mine", "clone", &setup.url(&key, "demo"), "clone"]);
    let head = setup.git.ok(&empty.join("clone"), &["symbolic-ref", "HEAD"]);
    assert_eq!(head.trim(), "refs/heads/mine", "no HEAD is promised before a state names one");
    assert!(setup.directories().is_empty(), "nothing is made before something is pushed");
    let refused = setup.push_fails(&key, "demo", &["main"]);
    assert!(refused.contains("no authorised state"), "{refused}");

    let said = state(&key, now() - 5, "demo", &[("refs/heads/main", &setup.first)], Some("main"));
    setup.state_waits(&said);
    assert_eq!(setup.say(&said), (true, "duplicate: in purgatory".to_owned()));
    assert_eq!(setup.relay.req(&[of(&key, "demo")]), []);
    assert_eq!(setup.relay.count(&[of(&key, "demo")]), 0);
    setup.push(&key, "demo", &["main"]);

    let mut served: Vec<_> = setup.relay.req(&[of(&key, "demo")]).iter().map(|event| event.id).collect();
    served.sort();
    let mut expected = vec![announcement.id, said.id];
    expected.sort();
    assert_eq!(served, expected, "both are served the moment the push returns");
    let head = [("HEAD".to_owned(), setup.first.clone()), ("refs/heads/main".to_owned(), setup.first.clone())];
    assert_eq!(setup.refs(&key, "demo"), head);
    let clone = setup.git.fresh_dir();
    setup.git.ok(&clone, &["clone", &setup.url(&key, "demo"), "clone"]);
    assert_eq!(setup.git.ok(&clone.join("clone"), &["rev-parse", "HEAD"]).trim(), setup.first);
    assert_eq!(setup.git.ok(&clone.join("clone"), &["symbolic-ref", "HEAD"]).trim(), "refs/heads/main");
    assert_eq!(setup.relay.publish(&announcement), (true, "duplicate: already have this event".to_owned()));
    let logged = query(&setup.server, "SELECT kind FROM domain_events WHERE repo_id IS NOT NULL ORDER BY id");
    assert_eq!(logged.lines().collect::<Vec<_>>(), ["repo_created", "announcement_promoted", "push"]);
    let trail = query(&setup.server, "SELECT action FROM audit_log WHERE action <> 'token_created' ORDER BY id");
    let expected = ["user_created", "announcement_promoted", "repo_created", "push"];
    assert_eq!(trail.lines().filter(|line| expected.contains(line)).collect::<Vec<_>>(), expected);
    abide_testkit::eventually(std::time::Duration::from_secs(30), || {
        let reported = abide_testkit::http::get(setup.server.http_addr(), "/explore/activity", None).text();
        reported.contains("created") && reported.contains(&setup.first)
    });
    setup.assert_healthy();
}

#[rstest]
fn announcement_expires_without_git_data_and_its_repository_goes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__PURGATORY_EXPIRY", "1s").start());
    let key = setup.owner.clone();
    let announcement = setup.announce(&key, "demo", &[]);
    // As a push leaves it that died before it had promoted anything.
    let id: i64 = query(&setup.server, "SELECT repo_id FROM purgatory_announcements").parse().expect("an id");
    let dir = setup.server.data_dir().join(format!("repos/{:02x}/{id}.git", id & 0xff));
    std::fs::create_dir_all(dir.join("objects")).expect("writable");
    abide_testkit::eventually(std::time::Duration::from_secs(30), || {
        setup.sweep();
        setup.git.run(&setup.work, &["ls-remote", &setup.url(&key, "demo")]).status.code() != Some(0)
    });
    assert!(setup.push_fails(&key, "demo", &["main"]).contains("not found"));
    assert!(!setup.is_served(&announcement));
    assert!(setup.directories().is_empty());
    assert_eq!(setup.relay.publish(&announcement), (true, WAITS.to_owned()), "whoever wants to may try again");
    setup.assert_healthy();
}

/// How many seconds something that waits has left, by its status.
fn left(entry: &serde_json::Value) -> i64 {
    let text = entry["expires_at"].as_str().expect("it says when it ends");
    let at = abide_core::time::parse_rfc3339(text).expect("a time").micros() / 1_000_000;
    at - now() as i64
}

#[rstest]
fn state_event_and_git_auth_extend_the_purgatory_expiry(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server =
        builder(engine).env("ABIDE_GRASP__PURGATORY_EXPIRY", "60s").env("ABIDE_GRASP__AFTER_PUSH", "600s").start();
    let mut setup = Setup::on(server);
    let key = setup.owner.clone();
    setup.announce(&key, "demo", &[]);
    // As if most of its time had passed.
    query(&setup.server, "UPDATE purgatory_announcements SET expires_at = expires_at - 40000000");
    let before = left(&setup.status(&key, "demo").json());
    assert!((1..=20).contains(&before), "{before}");
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    let first = setup.first.clone();
    let refs = [("refs/heads/main", second.as_str()), ("refs/heads/old", first.as_str())];
    setup.state_waits(&state(&key, now() - 5, "demo", &refs, Some("main")));
    let status = setup.status(&key, "demo").json();
    let after_state = left(&status);
    assert!((31..=60).contains(&after_state), "a state starts its time anew: {before}, {after_state}");
    assert_eq!(status["states"][0]["missing_count"], 2, "{status}");
    // A push that the state allows, cut off in its middle, leaves more time.
    let url = format!("/{}/demo.git/git-receive-pack", npub(&key));
    let zero = "0".repeat(40);
    let line = |text: String| format!("{:04x}{text}", text.len() + 4);
    let mut body = line(format!("{zero} {second} refs/heads/main\0 report-status side-band-64k\n"));
    body += &line(format!("{zero} {first} refs/heads/old\n"));
    body += "0000PACK";
    let answer = abide_testkit::http::Request::new("POST", &url)
        .header("Content-Type", "application/x-git-receive-pack-request")
        .body(body)
        .send(setup.server.http_addr());
    assert_eq!(answer.status, 200);
    let status = setup.status(&key, "demo").json();
    assert!(left(&status) > 500, "the announcement: {status}");
    assert!(left(&status["states"][0]) > 500, "and the state: {status}");
    assert_eq!(setup.metric("abide_purgatory_entries{kind=\"announcement\"}"), Some(1.0));
    setup.push(&key, "demo", &["main", &format!("{first}:refs/heads/old")]);
    assert_eq!(setup.metric("abide_purgatory_entries{kind=\"announcement\"}"), Some(0.0));
    assert_eq!(setup.metric("abide_purgatory_exits_total{kind=\"announcement\",reason=\"promotion\"}"), Some(1.0));
    setup.assert_healthy();
}

#[rstest]
fn newer_announcement_replaces_older_in_purgatory(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let older = setup.announcement(&key, now() - 20, "demo", &[&["name", "older"]]);
    let newer = setup.announcement(&key, now() - 10, "demo", &[&["name", "newer"]]);
    assert_eq!(setup.relay.publish(&newer), (true, WAITS.to_owned()));
    let (taken, reason) = setup.relay.publish(&older);
    assert!(!taken && reason.starts_with("invalid: a newer announcement"), "{reason}");
    let newest = setup.announcement(&key, now() - 5, "demo", &[&["name", "newest"]]);
    assert_eq!(setup.relay.publish(&newest), (true, WAITS.to_owned()));
    let said = state(&key, now() - 5, "demo", &[("refs/heads/main", &setup.first)], Some("main"));
    setup.state_waits(&said);
    setup.push(&key, "demo", &["main"]);
    assert!(setup.is_served(&newest));
    assert!(!setup.is_served(&newer));
    let replacement = setup.announcement(&key, now(), "demo", &[&["name", "again"]]);
    assert_eq!(setup.relay.publish(&replacement), (true, String::new()), "what is served is replaced at once");
    assert!(setup.is_served(&replacement) && !setup.is_served(&newest));
    setup.assert_healthy();
}

#[rstest]
fn service_change_clears_the_purgatory_entry(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.announce(&key, "demo", &[]);
    let elsewhere = key.event(
        now() - 5,
        30_617,
        &[&["d", "demo"], &["clone", "https://elsewhere.example/x.git"], &["relays", "wss://elsewhere.example"]],
        "",
    );
    let (taken, reason) = setup.relay.publish(&elsewhere);
    assert!(!taken && reason.starts_with("restricted:"), "{reason}");
    assert!(setup.push_fails(&key, "demo", &["main"]).contains("not found"));
    assert!(setup.directories().is_empty());
    setup.assert_healthy();
}

#[rstest]
fn owners_of_one_identifier_are_kept_apart(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let (alice, bob) = (Key::new(1), Key::new(2));
    let of_alice = setup.announce(&alice, "demo", &[]);
    let of_bob = setup.announce(&bob, "demo", &[]);
    let said = state(&alice, now() - 5, "demo", &[("refs/heads/main", &setup.first)], Some("main"));
    setup.state_waits(&said);
    assert!(setup.push_fails(&bob, "demo", &["main"]).contains("no authorised state"), "Alice does not speak for Bob");
    setup.push(&alice, "demo", &["main"]);
    assert!(setup.is_served(&of_alice) && !setup.is_served(&of_bob), "Bob's still waits");
    assert_eq!(setup.refs(&bob, "demo"), []);
    assert_ne!(npub(&alice), npub(&bob));
    setup.assert_healthy();
}

#[rstest]
fn what_does_not_list_this_server_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let url = setup.server.url();
    let ws = url.replacen("http", "ws", 1);
    let clone = setup.url(&key, "demo");
    let almost = format!("{url}.evil.example/x.git");
    for (clone, relay) in [
        ("https://elsewhere.example/x.git", ws.as_str()),
        (clone.as_str(), "wss://elsewhere.example"),
        (almost.as_str(), ws.as_str()),
        (clone.as_str(), &format!("wss://elsewhere.example/?{ws}")),
    ] {
        let event = key.event(now(), 30_617, &[&["d", "demo"], &["clone", clone], &["relays", relay]], "");
        let (taken, reason) = setup.relay.publish(&event);
        assert!(!taken && reason.starts_with("restricted:"), "{clone} {relay}: {reason}");
    }
    let empty = key.event(now(), 30_617, &[&["d", ""], &["clone", &clone], &["relays", &ws]], "");
    assert!(!setup.relay.publish(&empty).0);
    assert!(setup.push_fails(&key, "demo", &["main"]).contains("not found"), "git data before announcement");
    assert!(setup.directories().is_empty());
}

#[rstest]
fn a_maintainers_announcement_without_a_place_here_is_kept_beside_the_owners(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let (alice, bob, mallory) = (setup.owner.clone(), Key::new(2), Key::new(3));
    let elsewhere: &[&[&str]] =
        &[&["d", "demo"], &["clone", "https://elsewhere.example/x.git"], &["relays", "wss://elsewhere.example"]];
    let of_bob = bob.event(now() - 9, 30_617, elsewhere, "");
    assert!(!setup.relay.publish(&of_bob).0, "nobody here knows Bob yet");
    setup.announce(&alice, "demo", &[&["maintainers", &bob.public().to_hex()]]);
    assert_eq!(setup.relay.publish(&of_bob), (true, WAITS.to_owned()));
    assert!(!setup.relay.publish(&mallory.event(now() - 9, 30_617, elsewhere, "")).0);
    let said = state(&bob, now() - 5, "demo", &[("refs/heads/main", &setup.first)], Some("main"));
    setup.state_waits(&said);
    setup.push(&alice, "demo", &["main"]);
    assert!(setup.is_served(&of_bob), "it is served with the announcement that it belongs to");
    assert!(setup.push_fails(&bob, "demo", &["main"]).contains("not found"), "it has no repository here");
    setup.assert_healthy();
}

/// An announcement that is kept beside the owner's has threads, and no repository that could hold a commit.
#[rstest]
fn a_pull_request_needs_a_repository_here_and_an_issue_does_not(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let (alice, bob, author) = (setup.owner.clone(), Key::new(2), Key::new(9));
    setup.announce(&alice, "demo", &[&["maintainers", &bob.public().to_hex()]]);
    let elsewhere: &[&[&str]] =
        &[&["d", "demo"], &["clone", "https://elsewhere.example/x.git"], &["relays", "wss://elsewhere.example"]];
    assert_eq!(setup.relay.publish(&bob.event(now() - 9, 30_617, elsewhere, "")), (true, WAITS.to_owned()));
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let (of_alice, of_bob) = (alice.coordinate("demo"), bob.coordinate("demo"));
    let alone = author.event(now(), 1618, &[&["a", &of_bob], &["c", &commit]], "to Bob alone");
    let both = author.event(now(), 1618, &[&["a", &of_bob], &["a", &of_alice], &["c", &commit]], "to both");
    let issue = author.event(now(), 1621, &[&["a", &of_bob]], "an issue");
    let refused = |(taken, reason): (bool, String)| {
        assert!(!taken && reason.starts_with("restricted: no repository here can store the commit"), "{reason}");
    };
    refused(setup.relay.publish(&alone));
    for event in [&both, &issue] {
        assert_eq!(setup.relay.publish(event), (true, WAITS.to_owned()));
    }
    let first = setup.first.clone();
    setup.state_waits(&state(&alice, now() - 5, "demo", &[("refs/heads/main", &first)], Some("main")));
    setup.push(&alice, "demo", &[&format!("{first}:refs/heads/main")]);
    refused(setup.relay.publish(&alone));
    assert!(setup.is_served(&issue));
    setup.push(&alice, "demo", &[&format!("{commit}:refs/nostr/{}", both.id.to_hex())]);
    assert!(setup.is_served(&both));
    setup.assert_healthy();
}

#[rstest]
fn the_operator_says_who_may_announce(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (alice, bob, carol) = (Key::new(1), Key::new(2), Key::new(3));
    let list = |keys: [&Key; 2]| keys.map(npub).join(",");
    let server = builder(engine)
        .env("ABIDE_GRASP__ANNOUNCE", "off")
        .env("ABIDE_GRASP__ALLOW", list([&alice, &bob]))
        .env("ABIDE_GRASP__DENY", list([&bob, &Key::new(4)]))
        .start();
    let mut setup = Setup::on(server);
    setup.announce(&alice, "demo", &[]);
    for key in [&bob, &carol] {
        let event = setup.announcement(key, now() - 10, "demo", &[]);
        let (taken, reason) = setup.relay.publish(&event);
        assert!(!taken && ["restricted:", "blocked:"].iter().any(|prefix| reason.starts_with(prefix)), "{reason}");
    }
}
