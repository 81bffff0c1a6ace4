//! A site where people do things: several repositories, a discussion, and a receiver that fails.

use super::push_samples;
use crate::beside::Beside as _;
use crate::support::{self, Person, query};
use crate::webhooks::receiver::Receiver;
use abide_testkit::{Engine, Server, eventually, http};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// Where ann administers, bob and carol take part, and one of two receivers answers 503.
pub fn site(engine: Engine) -> Server {
    let server =
        support::builder(engine).env("ABIDE_SIGNUP__MODE", "open").env("ABIDE_OUTBOUND__ALLOW", "127.0.0.1").start();
    let people = [support::admin(&server, "ann"), support::person(&server, "bob"), support::person(&server, "carol")];
    let [ann, bob, carol] = &people;
    for (owner, name, about, topics) in [
        (
            ann,
            "tool",
            "Adds numbers without ever overflowing, on every platform we could get hold of",
            "rust,arithmetic",
        ),
        (ann, "field-notes", "What we saw on the way, week by week", "writing,maps,birds"),
        (bob, "weather", "Reads the station on the roof and draws the day", "python,sensors,raspberry-pi"),
        (carol, "a-rather-long-repository-name-for-a-phone", "Shows what a long name does to a narrow page", ""),
    ] {
        owner.create(&server, name, false);
        push_samples(&owner.git, &server.http_url(owner.name, name));
        let at = format!("/repos/{}/{name}", owner.name);
        send(&server, owner, "PATCH", &at, json!({ "description": about }));
        let names: Vec<_> = topics.split(',').filter(|topic| !topic.is_empty()).collect();
        send(&server, owner, "PUT", &format!("{at}/topics"), json!({ "names": names }));
    }
    ann.create(&server, "diary", true);
    let ok = Receiver::start();
    let failing = Receiver::start();
    failing.answer(503);
    let hooks = server.add_token("ann", "repo,hooks");
    for receiver in [&ok, &failing] {
        let hook = json!({ "config": { "url": receiver.url(), "content_type": "json", "secret": "x" }, "events": ["star", "issues", "push"] });
        let made = http::post(server.http_addr(), "/api/v3/repos/ann/tool/hooks", Some(&hooks), &hook);
        assert_eq!(made.status, 201, "{}", made.text());
    }
    for (person, others) in [(ann, ["bob", "carol"]), (bob, ["ann", "carol"]), (carol, ["ann", "bob"])] {
        for other in others {
            send(&server, person, "PUT", &format!("/user/following/{other}"), json!({}));
        }
    }
    for (person, slugs) in [
        (ann, &["bob/weather", "ann/tool", "ann/field-notes"][..]),
        (bob, &["ann/tool", "ann/field-notes", "carol/a-rather-long-repository-name-for-a-phone"]),
        (carol, &["ann/tool", "bob/weather"]),
    ] {
        for slug in slugs {
            send(&server, person, "PUT", &format!("/user/starred/{slug}"), json!({}));
            send(&server, person, "PUT", &format!("/repos/{slug}/subscription"), json!({ "subscribed": true }));
        }
    }
    discuss(&server, &people);
    server.cli_ok(&["jobs", "run", "trending:count"]);
    eventually(SOON, || count(&server, "notifications WHERE read_at IS NULL") > 2);
    eventually(SOON, || count(&server, "webhook_deliveries WHERE status = 503") > 0);
    server
}

fn discuss(server: &Server, [ann, bob, carol]: &[Person; 3]) {
    for (name, color, about) in [
        ("bug", "d73a4a", "Something does not work"),
        ("good first issue", "7057ff", "A place to start"),
        ("documentation", "0075ca", "Words, not code"),
    ] {
        let label = json!({ "name": name, "color": color, "description": about });
        send(server, ann, "POST", "/repos/ann/tool/labels", label);
    }
    let milestone = json!({ "title": "1.0", "description": "Fit for strangers", "due_on": "2027-03-01T00:00:00Z" });
    send(server, ann, "POST", "/repos/ann/tool/milestones", milestone);
    for (author, title, body) in [
        (
            bob,
            "The sum of nothing is not nothing",
            "`sum()` of an empty list says 1.\n\n1. Open the shell\n2. Add nothing\n\n@ann, is that meant?",
        ),
        (carol, "Say in the guide how to build it", "I had to guess that a compiler is needed."),
        (
            bob,
            "Numbers with more digits than anyone will ever need are rounded without a word, which cost me an afternoon",
            "Seen on a phone.",
        ),
        (carol, "Thank you", "It works here."),
    ] {
        send(server, author, "POST", "/repos/ann/tool/issues", json!({ "title": title, "body": body }));
    }
    let changes = json!({ "labels": ["bug", "good first issue"], "assignees": ["ann"], "milestone": 1 });
    send(server, ann, "PATCH", "/repos/ann/tool/issues/1", changes);
    send(server, ann, "PATCH", "/repos/ann/tool/issues/2", json!({ "labels": ["documentation"] }));
    for (author, number, body) in [
        (
            ann,
            1,
            "It is not. I can see it here too:\n\n```rust\nassert_eq!(sum(&[]), 0);\n```\n\n> is that meant?\n\nNo.",
        ),
        (carol, 1, "The same as #3, I think. @bob, which version was it?"),
        (bob, 1, "1.0, from yesterday."),
        (bob, 2, "I can write that."),
    ] {
        let at = format!("/repos/ann/tool/issues/{number}/comments");
        send(server, author, "POST", &at, json!({ "body": body }));
    }
    send(server, ann, "PATCH", "/repos/ann/tool/issues/4", json!({ "state": "closed" }));
}

fn send(server: &Server, person: &Person, method: &str, path: &str, body: Value) {
    let answer = http::json(method, server.http_addr(), &format!("/api/v3{path}"), Some(&person.token), &body);
    assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text());
}

fn count(server: &Server, of: &str) -> i64 {
    query(server, &format!("SELECT count(*) FROM {of}")).parse().expect("a count is a number")
}
