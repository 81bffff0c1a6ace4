//! Issues, PR events and comments that come by nostr have the same effects as local ones: inbox, mail, webhook, feed and stream.

use super::setup::{Setup, WAITS, now, npub};
use crate::beside::Beside as _;
use crate::signed::keep;
use crate::support::{Person, builder, person, query};
use crate::webhooks::receiver::Receiver;
use abide_nostr::Event;
use abide_testkit::http::{self, Request};
use abide_testkit::{Engine, Key, eventually};
use rstest::rstest;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

/// alice's repository, which her key governs; bob watches it, a receiver has a hook, and mallory has only a key.
struct World {
    setup: Setup,
    bob: Person,
    hooks: String,
    inbox: String,
    receiver: Receiver,
    author: Key,
}

fn world(engine: Engine) -> World {
    let server = builder(engine).env("ABIDE_OUTBOUND__ALLOW", "127.0.0.1").start();
    let (_, bob) = (person(&server, "alice"), person(&server, "bob"));
    query(&server, "UPDATE emails SET verified_at = 1");
    query(&server, &format!("UPDATE users SET npub = '{}' WHERE name = 'alice'", npub(&Key::new(1))));
    let (hooks, inbox) = (server.add_token("alice", "hooks,repo"), server.add_token("bob", "notifications,repo"));
    World { setup: Setup::on(server), bob, hooks, inbox, receiver: Receiver::start(), author: Key::new(9) }
}

impl World {
    fn send(&self, method: &str, path: &str, token: &str, body: &Value) -> http::Response {
        let request = Request::new(method, &format!("/api/v3{path}")).token(Some(token)).json(body);
        let answer = request.send(self.setup.server.http_addr());
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text());
        answer
    }

    fn listen(&self) {
        let config = json!({ "url": self.receiver.url(), "content_type": "json" });
        self.send("POST", "/repos/alice/demo/hooks", &self.hooks, &json!({ "config": config, "events": ["*"] }));
        self.send("PUT", "/repos/alice/demo/subscription", &self.bob.token, &json!({ "subscribed": true }));
    }

    fn get(&self, path: &str, token: Option<&str>) -> String {
        http::get(self.setup.server.http_addr(), path, token).text()
    }

    fn notifications(&self) -> Vec<Value> {
        let reported: Value =
            serde_json::from_str(&self.get("/api/v3/notifications?all=true", Some(&self.inbox))).expect("JSON");
        reported.as_array().cloned().expect("a list")
    }

    /// Waits until bob has an unread notification with this title, for this reason.
    #[track_caller]
    fn hears(&self, title: &str, reason: &str) {
        eventually(SOON, || {
            let reported = self.get("/api/v3/notifications", Some(&self.inbox));
            let reported: Vec<Value> = serde_json::from_str(&reported).expect("JSON");
            reported.iter().any(|reported| reported["subject"]["title"] == title && reported["reason"] == reason)
        });
    }

    /// Marks all notifications of bob as read.
    fn read_all(&self) {
        self.send("PUT", "/notifications", &self.inbox, &json!({}));
    }

    fn mails(&self) -> String {
        let files = fs::read_dir(self.setup.server.data_dir().join("outbox")).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.filter(|mail| mail.contains("To: bob@example.org")).collect::<Vec<_>>().join("\n")
    }

    fn publish(&mut self, event: &Event) {
        let (taken, why) = self.setup.relay.publish(event);
        assert!(taken, "{why}");
    }

    fn issue(&self, text: &str) -> Event {
        let coordinate = self.setup.owner.coordinate("demo");
        self.author.event(now(), 1621, &[&["a", &coordinate], &["subject", "The lamp is broken"]], text)
    }

    fn comment(&self, on: &Event, text: &str) -> Event {
        let id = on.id.to_hex();
        Key::new(8).event(now(), 1111, &[&["E", &id], &["e", &id], &["K", "1621"]], text)
    }

    /// The kinds of domain events with a nostr thread, in order.
    fn kinds(&self) -> Vec<String> {
        let all =
            query(&self.setup.server, "SELECT kind FROM domain_events WHERE source_kind = 'nostr_thread' ORDER BY id");
        all.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn delivered(&self, event: &str, action: &str) -> Value {
        let find = || {
            let all = self.receiver.of(event).into_iter();
            all.map(|got| got.body).find(|body| body["action"] == action)
        };
        eventually(SOON, || find().is_some());
        find().expect("it was there")
    }
}

#[rstest]
fn an_issue_and_its_comments_are_told_in_every_way(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut world = world(engine);
    let key = world.setup.owner.clone();
    world.setup.served(&key, "demo", &[]);
    world.listen();

    let issue = world.issue("It does **not** shine.");
    world.publish(&issue);
    let page = format!("/alice/demo/nostr/{}", issue.id.to_hex());
    eventually(SOON, || world.notifications().len() == 1);
    let reported = &world.notifications()[0];
    assert_eq!(reported["subject"]["title"], "The lamp is broken");
    assert_eq!(reported["subject"]["type"], "Issue");
    assert_eq!(reported["reason"], "subscribed");
    assert!(reported["subject"]["url"].as_str().is_some_and(|url| url.ends_with(&page)), "{reported}");
    eventually(SOON, || world.mails().contains("The lamp is broken"));
    assert!(world.mails().contains("It does **not** shine.") && world.mails().contains(&page), "{}", world.mails());
    let body = world.delivered("issues", "opened");
    assert_eq!(body["issue"]["title"], "The lamp is broken");
    assert_eq!(body["issue"]["body"], "It does **not** shine.");
    assert_eq!(body["issue"]["state"], "open");
    assert_eq!(body["issue"]["number"], Value::Null);
    assert_eq!(body["issue"]["nostr"]["id"], issue.id.to_hex());
    assert_eq!(body["sender"]["login"], npub(&world.author));
    assert_eq!(body["repository"]["full_name"], "alice/demo");
    for feed in ["/alice/demo/activity", "/alice/demo/activity.atom", "/explore/activity"] {
        let shown = world.get(feed, None);
        assert!(shown.contains("The lamp is broken") && shown.contains(&page), "{feed}: {shown}");
    }
    let events: Value = serde_json::from_str(&world.get("/api/v3/repos/alice/demo/events", None)).expect("JSON");
    assert_eq!(events[0]["type"], "IssuesEvent");
    assert_eq!(events[0]["payload"]["issue"]["nostr"]["id"], issue.id.to_hex());

    let comment = world.comment(&issue, "Try another bulb.");
    world.publish(&comment);
    let body = world.delivered("issue_comment", "created");
    assert_eq!(body["comment"]["body"], "Try another bulb.");
    assert_eq!(body["issue"]["title"], "The lamp is broken");
    eventually(SOON, || world.get("/alice/demo/activity.atom", None).contains("Try another bulb."));
    assert_eq!(world.notifications().len(), 1, "one thread");

    // A second copy, and a status of somebody whose signature does not count, emit nothing.
    world.setup.relay.publish(&comment);
    let id = issue.id.to_hex();
    world.publish(&Key::new(8).event(now(), 1632, &[&["e", &id, "", "root"]], ""));
    world.publish(&world.author.event(now() + 1, 1632, &[&["e", &id, "", "root"]], ""));
    assert_eq!(world.delivered("issues", "closed")["issue"]["state"], "closed");
    world.publish(&key.event(now() + 2, 1630, &[&["e", &id, "", "root"]], ""));
    assert_eq!(world.delivered("issues", "reopened")["issue"]["state"], "open");
    assert_eq!(world.kinds(), ["issue_created", "issue_comment_created", "issue_closed", "issue_reopened"]);

    // No payload holds text, and text that its author deletes is gone everywhere.
    let payloads = query(&world.setup.server, "SELECT payload FROM domain_events");
    assert!(!payloads.contains("bulb") && !payloads.contains("lamp"), "{payloads}");
    world.publish(&Key::new(8).event(now() + 3, 5, &[&["e", &comment.id.to_hex()]], ""));
    assert!(!world.get("/alice/demo/activity.atom", None).contains("bulb"));
    world.publish(&world.author.event(now() + 3, 5, &[&["e", &id]], ""));
    assert!(!world.get("/alice/demo/activity", None).contains("lamp"));
    assert!(!world.get("/api/v3/repos/alice/demo/events", None).contains("lamp"));
    assert!(world.notifications().is_empty());
    world.setup.assert_healthy();
}

#[rstest]
fn a_pull_request_is_told_when_its_commit_is_here(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut world = world(engine);
    let key = world.setup.owner.clone();
    world.setup.served(&key, "demo", &[]);
    world.listen();
    let commit = world.setup.git.commit_file(&world.setup.work, "feature", "1", "a feature");
    let coordinate = key.coordinate("demo");
    let tags: &[&[&str]] =
        &[&["a", &coordinate], &["c", &commit], &["subject", "A brighter lamp"], &["branch-name", "lamp"]];
    let pull = world.author.event(now(), 1618, tags, "please");
    assert_eq!(world.setup.relay.publish(&pull), (true, WAITS.to_owned()));
    assert!(world.kinds().is_empty(), "a PR event without its commit notifies nobody");
    world.setup.push(&key, "demo", &[&format!("{commit}:refs/nostr/{}", pull.id.to_hex())]);
    let body = world.delivered("pull_request", "opened");
    assert_eq!(body["pull_request"]["title"], "A brighter lamp");
    assert_eq!(body["pull_request"]["head"]["sha"], commit);
    assert_eq!(body["pull_request"]["merged"], false);
    eventually(SOON, || world.notifications().len() == 1);
    assert_eq!(world.notifications()[0]["subject"]["type"], "PullRequest");
    assert!(world.get("/alice/demo/activity", None).contains("A brighter lamp"));

    let id = pull.id.to_hex();
    world.publish(&key.event(now() + 1, 1631, &[&["e", &id, "", "root"]], ""));
    assert_eq!(world.delivered("pull_request", "closed")["pull_request"]["merged"], true);
    assert_eq!(world.kinds(), ["pr_opened", "pr_merged"]);
    assert_eq!(query(&world.setup.server, "SELECT count(*) FROM event_failures"), "0");
}

#[rstest]
fn patches_updates_and_mentions_reach_watchers(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut world = world(engine);
    let key = world.setup.owner.clone();
    let by_bob = Key::new(7);
    query(&world.setup.server, &format!("UPDATE users SET npub = '{}' WHERE name = 'bob'", npub(&by_bob)));
    world.setup.served(&key, "demo", &[]);
    world.listen();
    let coordinate = key.coordinate("demo");

    let patch = world.author.event(now(), 1617, &[&["a", &coordinate], &["subject", "A patch of light"]], "the patch");
    world.publish(&patch);
    world.hears("A patch of light", "subscribed");
    assert_eq!(world.delivered("pull_request", "opened")["pull_request"]["title"], "A patch of light");

    let first = world.setup.git.commit_file(&world.setup.work, "feature", "1", "a feature");
    let second = world.setup.git.commit_file(&world.setup.work, "feature", "2", "a better feature");
    let tags: &[&[&str]] = &[&["a", &coordinate], &["c", &first], &["subject", "A brighter lamp"]];
    let pull = world.author.event(now(), 1618, tags, "please");
    let tags: &[&[&str]] = &[&["a", &coordinate], &["E", &pull.id.to_hex()], &["c", &second]];
    let update = world.author.event(now() + 1, 1619, tags, "");
    for (event, commit) in [(&pull, &first), (&update, &second)] {
        world.read_all();
        assert_eq!(world.setup.relay.publish(event), (true, WAITS.to_owned()));
        world.setup.push(&key, "demo", &[&format!("{commit}:refs/nostr/{}", event.id.to_hex())]);
        world.hears("A brighter lamp", "subscribed");
    }
    assert_eq!(world.delivered("pull_request", "synchronize")["pull_request"]["title"], "A brighter lamp");

    let text = format!("Who knows, nostr:{}?", npub(&by_bob));
    let issue = world.issue(&text);
    world.publish(&issue);
    world.hears("The lamp is broken", "mention");
    eventually(SOON, || {
        ["A patch of light", "A brighter lamp", "The lamp is broken"].iter().all(|title| world.mails().contains(title))
    });
    assert_eq!(world.kinds(), ["pr_opened", "pr_opened", "pr_synchronized", "issue_created"]);
    assert_eq!(query(&world.setup.server, "SELECT count(*) FROM event_failures"), "0");
}

#[rstest]
fn what_waited_with_an_announcement_is_told_when_it_is_served(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut world = world(engine);
    let key = world.setup.owner.clone();
    world.setup.announce(&key, "demo", &[]);
    let issue = world.issue("It does not shine.");
    let comment = world.comment(&issue, "Try another bulb.");
    for event in [&issue, &comment] {
        assert_eq!(world.setup.relay.publish(event), (true, WAITS.to_owned()));
    }
    assert!(world.kinds().is_empty());
    let first = world.setup.first.clone();
    let state = super::setup::state(&key, now() - 5, "demo", &[("refs/heads/main", &first)], Some("main"));
    world.setup.state_waits(&state);
    world.setup.push(&key, "demo", &["main"]);
    assert_eq!(world.kinds(), ["issue_created", "issue_comment_created"]);
}

#[rstest]
fn a_comment_that_is_served_before_its_pull_request_is_told_with_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut world = world(engine);
    let key = world.setup.owner.clone();
    world.setup.announce(&key, "demo", &[]);
    let commit = world.setup.git.commit_file(&world.setup.work, "feature", "1", "a feature");
    let pull = world.author.event(now(), 1618, &[&["a", &key.coordinate("demo")], &["c", &commit]], "please");
    let comment = world.comment(&pull, "Rather not.");
    let closed = key.event(now(), 1632, &[&["e", &pull.id.to_hex(), "", "root"]], "");
    for event in [&pull, &comment, &closed] {
        assert_eq!(world.setup.relay.publish(event), (true, WAITS.to_owned()));
    }
    world.setup.push(&key, "demo", &[&format!("{commit}:refs/nostr/{}", pull.id.to_hex())]);
    let first = world.setup.first.clone();
    let state = super::setup::state(&key, now() - 5, "demo", &[("refs/heads/main", &first)], Some("main"));
    world.setup.state_waits(&state);
    world.setup.push(&key, "demo", &[&format!("{first}:refs/heads/main")]);
    eventually(SOON, || world.kinds().len() >= 3);
    assert_eq!(world.kinds(), ["pr_opened", "pr_comment_created", "pr_closed"]);
    // Once: a later event is reported alone.
    let again = world.comment(&pull, "Really not.");
    world.publish(&again);
    assert_eq!(world.kinds(), ["pr_opened", "pr_comment_created", "pr_closed", "pr_comment_created"]);
}

#[rstest]
fn a_comment_that_names_the_repository_may_come_before_its_issue(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut world = world(engine);
    let key = world.setup.owner.clone();
    world.setup.served(&key, "demo", &[]);
    let (coordinate, issue) = (key.coordinate("demo"), world.issue("It does not shine."));
    let id = issue.id.to_hex();
    let early = |text: &str| Key::new(8).event(now(), 1111, &[&["E", &id], &["e", &id], &["a", &coordinate]], text);
    world.publish(&early("Try another bulb."));
    world.publish(&early("Or a candle."));
    assert!(world.kinds().is_empty());
    world.publish(&issue);
    assert_eq!(world.kinds(), ["issue_created", "issue_comment_created", "issue_comment_created"]);
}

#[rstest]
fn statuses_are_judged_without_reading_those_before_them(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut world = world(engine);
    let key = world.setup.owner.clone();
    world.setup.served(&key, "demo", &[]);
    let issue = world.issue("It does not shine.");
    world.publish(&issue);
    let (id, at, author) = (issue.id.to_hex(), now() - 60, world.author.clone());
    let status = |later: u64, kind: u16, text: &str| author.event(at + later, kind, &[&["e", &id, "", "root"]], text);
    let large = "x".repeat(200_000);
    let flood: Vec<Event> =
        (0..200).map(|n| status(20, 1632, &format!("{n}{}", &large[..if n < 4 { 200_000 } else { 9 }]))).collect();
    keep(&world.setup.server, &flood);
    // From here on, whoever reads one of them says so in the log.
    query(&world.setup.server, "UPDATE nostr_events SET json = 'unreadable' WHERE kind = 1632");
    for n in 0..20 {
        world.publish(&status(10, 1632, &n.to_string()));
    }
    assert_eq!(world.kinds(), ["issue_created"], "older words change nothing");
    world.publish(&status(30, 1630, ""));
    assert_eq!(world.kinds(), ["issue_created", "issue_reopened"]);
    for page in ["/alice/demo/issues".to_owned(), format!("/alice/demo/nostr/{id}")] {
        assert!(world.get(&page, None).contains("badge ok\">Open"), "{page}");
    }
    assert!(!world.setup.server.log().contains("cannot be read"), "{}", world.setup.server.log());
}

#[rstest]
fn strangers_are_told_of_so_often_and_no_more(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut world = world(engine);
    let key = world.setup.owner.clone();
    world.setup.served(&key, "demo", &[]);
    let (coordinate, at) = (key.coordinate("demo"), now());
    for n in 0..25 {
        let issue = world.author.event(at - n, 1621, &[&["a", &coordinate]], "again");
        world.publish(&issue);
    }
    assert_eq!(world.kinds().len(), 20, "of one key in a day");
    let by_bob = Key::new(7);
    query(&world.setup.server, &format!("UPDATE users SET npub = '{}' WHERE name = 'bob'", npub(&by_bob)));
    for n in 0..25 {
        let issue = by_bob.event(at - n, 1621, &[&["a", &coordinate]], "again");
        world.publish(&issue);
    }
    assert_eq!(world.kinds().len(), 45, "an account answers for what it says");
}
