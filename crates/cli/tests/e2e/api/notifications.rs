//! Notifications over REST, in GitHub's shapes.

use super::{Api, assert_error, assert_refused};
use crate::beside::Beside as _;
use crate::support::{Person, person, server};
use abide_testkit::{Engine, Server, eventually};
use rstest::rstest;
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

/// Alice's project, which bob watches; his token reads notifications.
fn setup(engine: Engine) -> (Server, Person, String) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "project", false);
    let watched = Api::of(&server, &bob).put("/repos/alice/project/subscription", json!({ "subscribed": true }));
    assert_eq!(watched.status, 200, "{}", watched.text());
    let token = server.add_token("bob", "notifications,repo:read");
    (server, alice, token)
}

fn open(owner: &Api<'_>, title: &str, body: &str) -> Value {
    let made = owner.post("/repos/alice/project/issues", json!({ "title": title, "body": body }));
    assert_eq!(made.status, 201, "{}", made.text());
    made.json()
}

/// Waits until so much is unread and returns it.
#[track_caller]
fn unread(api: &Api<'_>, path: &str, count: usize) -> Vec<Value> {
    let mut found = Vec::new();
    eventually(SOON, || {
        found = api.read(path).as_array().cloned().unwrap_or_default();
        found.len() == count
    });
    found
}

#[rstest]
fn what_one_is_told_is_listed_read_and_put_away(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (server, alice, token) = setup(engine);
    let (owner, bob) = (Api::of(&server, &alice), Api::with(&server, &token));
    open(&owner, "First", "");
    unread(&bob, "/notifications", 1);
    open(&owner, "Second", "@bob");
    let reported = unread(&bob, "/notifications", 2);
    let second = &reported[0];
    assert_eq!(second["subject"]["title"], "Second");
    assert_eq!(second["subject"]["type"], "Issue");
    assert_eq!((&second["reason"], &reported[1]["reason"]), (&json!("mention"), &json!("subscribed")));
    assert_eq!((&second["unread"], &second["last_read_at"]), (&json!(true), &json!(null)));
    assert_eq!(second["repository"]["full_name"], "alice/project");
    let issue = owner.read("/repos/alice/project/issues/2");
    assert_eq!(second["subject"]["url"], issue["url"]);
    let id = second["id"].as_str().expect("GitHub's are text");
    let thread = format!("/notifications/threads/{id}");
    assert!(second["url"].as_str().is_some_and(|url| url.ends_with(&thread)), "{second}");

    assert_eq!(unread(&bob, "/notifications?participating=true", 1)[0]["id"], *id);
    assert_eq!(unread(&bob, "/repos/alice/project/notifications", 2).len(), 2);
    assert_eq!(unread(&bob, "/notifications?per_page=1&page=2", 1)[0]["subject"]["title"], "First");
    assert_eq!(bob.read("/notifications?before=2020-01-01T00:00:00Z"), json!([]));
    assert_eq!(unread(&bob, "/notifications?since=2020-01-01T00:00:00Z", 2).len(), 2);
    assert_refused(&bob.get("/notifications?since=yesterday"), "since", "invalid");

    assert_eq!(bob.patch(&thread, json!({})).status, 205);
    assert_eq!(unread(&bob, "/notifications", 1)[0]["subject"]["title"], "First");
    let read = bob.read(&thread);
    assert_eq!(read["unread"], false);
    assert!(read["last_read_at"].is_string(), "{read}");
    assert_eq!(unread(&bob, "/notifications?all=true", 2).len(), 2);
    assert_eq!(bob.delete(&thread).status, 204);
    assert_eq!(unread(&bob, "/notifications?all=true", 1)[0]["subject"]["title"], "First");

    let until = json!({ "last_read_at": "2020-01-01T00:00:00Z" });
    assert_eq!(bob.put("/notifications", until).status, 205);
    assert_eq!(bob.read("/notifications").as_array().map(Vec::len), Some(1), "it came later");
    assert_refused(&bob.put("/notifications", json!({ "last_read_at": "x" })), "last_read_at", "invalid");
    assert_eq!(bob.put("/repos/alice/project/notifications", json!({})).status, 205);
    assert_eq!(bob.read("/notifications"), json!([]));
    open(&owner, "Third", "");
    unread(&bob, "/notifications", 1);
    assert_eq!(bob.put("/notifications", json!({})).status, 205);
    assert_eq!(bob.read("/notifications"), json!([]));
}

#[rstest]
fn a_thread_is_muted_and_heard_again(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (server, alice, token) = setup(engine);
    let (owner, bob) = (Api::of(&server, &alice), Api::with(&server, &token));
    open(&owner, "Noise", "");
    let thread = unread(&bob, "/notifications", 1)[0]["id"].as_str().expect("text").to_owned();
    let subscription = format!("/notifications/threads/{thread}/subscription");
    let holds = bob.read(&subscription);
    assert_eq!((&holds["subscribed"], &holds["ignored"]), (&json!(true), &json!(false)), "{holds}");
    assert_eq!(bob.put(&subscription, json!({ "ignored": true })).json()["ignored"], true);
    assert_eq!(bob.put("/notifications", json!({})).status, 205);
    let say = |text: &str| owner.post("/repos/alice/project/issues/1/comments", json!({ "body": text })).status;
    assert_eq!(say("more"), 201);
    open(&owner, "Other", "");
    assert_eq!(unread(&bob, "/notifications", 1)[0]["subject"]["title"], "Other", "the muted one is silent");
    assert_eq!(say("@bob"), 201);
    unread(&bob, "/notifications", 2);
    assert_eq!(bob.put(&subscription, json!({ "ignored": false })).json()["subscribed"], true);
    assert_eq!(bob.delete(&subscription).status, 204);
    assert_eq!(bob.read(&subscription)["ignored"], true);
}

#[rstest]
fn a_thread_is_nobody_elses_and_goes_with_the_access(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (server, alice, token) = setup(engine);
    let (owner, bob) = (Api::of(&server, &alice), Api::with(&server, &token));
    open(&owner, "Plans", "");
    let thread = unread(&bob, "/notifications", 1)[0]["id"].as_str().expect("text").to_owned();
    let path = format!("/notifications/threads/{thread}");
    let others = Api::with(&server, &server.add_token("alice", "notifications"));
    let absent = others.get("/notifications/threads/987654321");
    for (method, path) in [
        ("GET", path.clone()),
        ("PATCH", path.clone()),
        ("DELETE", path.clone()),
        ("PUT", format!("{path}/subscription")),
    ] {
        let refused = others.send(method, &path, &json!({}));
        assert_error(&refused, 404);
        assert_eq!(refused.text(), absent.text());
    }
    assert_eq!(bob.read(&path)["unread"], true, "nothing of that did anything");
    let hidden = owner.patch("/repos/alice/project", json!({ "private": true }));
    assert_eq!(hidden.status, 200, "{}", hidden.text());
    assert_eq!(bob.read("/notifications?all=true"), json!([]));
    assert_eq!(bob.get(&path).text(), absent.text());
    assert_error(&bob.get("/repos/alice/project/notifications"), 404);
}
