//! Issues of many repositories over REST, and lists that go across the issues of one.

use super::{Api, assert_error, assert_refused};
use crate::support::{person, server};
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::{Value, json};

const ISSUES: &str = "/repos/alice/project/issues";

#[track_caller]
fn made(response: &abide_testkit::http::Response) -> Value {
    assert_eq!(response.status, 201, "{}", response.text());
    response.json()
}

/// The titles in a list.
fn titles(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|issue| issue["title"].as_str()).collect()
}

#[rstest]
fn issues_are_searched_for_across_repositories(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "project", false);
    alice.create(&server, "secret", true);
    bob.create(&server, "other", false);
    let (owner, guest, nobody) = (Api::of(&server, &alice), Api::of(&server, &bob), Api::nobody(&server));
    made(&owner.post(ISSUES, json!({ "title": "It crashes", "labels": ["bug"], "assignees": ["alice"] })));
    made(&owner.post("/repos/alice/secret/issues", json!({ "title": "Crash plan", "body": "with @bob" })));
    made(&guest.post("/repos/bob/other/issues", json!({ "title": "A crash, @alice" , "body": "@alice" })));
    owner.patch(&format!("{ISSUES}/1"), json!({ "state": "closed" }));

    let all = owner.read("/search/issues?q=crash");
    assert_eq!((&all["total_count"], &all["incomplete_results"]), (&json!(3), &json!(false)));
    let newest_first = ["A crash, @alice", "Crash plan", "It crashes"];
    assert_eq!(titles(&all["items"]), newest_first);
    let item = &all["items"][2];
    assert_eq!(
        (&item["score"], &item["state"], &item["labels"][0]["name"]),
        (&json!(1.0), &json!("closed"), &json!("bug"))
    );
    assert_eq!(item["repository_url"], format!("{}/api/v3/repos/alice/project", server.url()));
    for api in [&guest, &nobody] {
        let found = api.read("/search/issues?q=crash");
        assert_eq!(
            (&found["total_count"], titles(&found["items"])),
            (&json!(2), vec![newest_first[0], newest_first[2]])
        );
        let hidden = api.read("/search/issues?q=repo:alice/secret");
        assert_eq!(hidden, api.read("/search/issues?q=repo:alice/absent"), "what is private is not there");
        assert_eq!(hidden["total_count"], 0);
    }
    for (query, expected) in [
        ("q=crash&sort=created&order=asc", &["It crashes", "Crash plan", "A crash, @alice"][..]),
        ("q=crash&sort=updated", &["It crashes", "A crash, @alice", "Crash plan"]),
        ("q=crash+is:issue+is:open+repo:alice/secret", &["Crash plan"]),
        ("q=is:closed+label:bug+assignee:@me", &["It crashes"]),
        ("q=author:bob", &["A crash, @alice"]),
        ("q=mentions:@me", &["A crash, @alice"]),
        ("q=is:pr", &[]),
        ("q=crash%00+label:%22bug%00%22", &["It crashes"]),
    ] {
        assert_eq!(titles(&owner.read(&format!("/search/issues?{query}"))["items"]), expected, "{query}");
    }
    let paged = owner.get("/search/issues?q=crash&per_page=2");
    assert!(paged.header("link").is_some_and(|link| link.contains("q=crash&per_page=2&page=2>; rel=\"next\"")));
    assert_refused(&owner.get("/search/issues"), "q", "missing");
    assert_refused(&owner.get("/search/issues?q=x&order=up"), "order", "invalid");
    assert_refused(&owner.get("/search/issues?q=repo:alice/project+repo:bob/other"), "q", "invalid");
    assert_refused(&owner.get("/search/issues?q=x&per_page=100&page=102"), "page", "invalid");
}

#[rstest]
fn the_caller_is_shown_what_concerns_them(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "project", false);
    bob.create(&server, "other", false);
    let (owner, guest, nobody) = (Api::of(&server, &alice), Api::of(&server, &bob), Api::nobody(&server));
    made(&owner.post(ISSUES, json!({ "title": "hers", "labels": ["bug"], "assignees": ["alice"] })));
    made(&owner.post(ISSUES, json!({ "title": "done", "assignees": ["alice"] })));
    owner.patch(&format!("{ISSUES}/2"), json!({ "state": "closed" }));
    made(&guest.post("/repos/bob/other/issues", json!({ "title": "his", "body": "@alice" })));
    made(&owner.post("/repos/bob/other/issues", json!({ "title": "hers at his" })));

    for (path, expected) in [
        ("/issues", &["hers"][..]),
        ("/issues?state=all&direction=asc", &["hers", "done"]),
        ("/issues?labels=bug", &["hers"]),
        ("/issues?labels=other", &[]),
        ("/issues?labels=bug%0Aother", &[]),
        ("/issues?labels=bug%00", &[]),
        ("/issues?filter=created", &["hers at his", "hers"]),
        ("/user/issues?filter=created", &["hers"]),
        ("/issues?filter=mentioned", &["his"]),
        ("/issues?filter=subscribed&state=all", &["hers at his", "his", "done", "hers"]),
        ("/issues?filter=repos", &["hers"]),
        ("/issues?filter=all", &["hers at his", "his", "hers"]),
        ("/issues?filter=all&since=2099-01-01T00:00:00Z", &[]),
    ] {
        assert_eq!(titles(&owner.read(path)), expected, "{path}");
    }
    assert_eq!(owner.read("/issues?filter=mentioned")[0]["repository"]["full_name"], "bob/other");
    assert_eq!(guest.read("/issues"), json!([]));
    assert_error(&nobody.get("/issues"), 401);
    assert_refused(&owner.get("/issues?filter=odd"), "filter", "invalid");
    assert_refused(&owner.get("/issues?state=odd"), "state", "invalid");
    assert_refused(&owner.get("/issues?per_page=100&page=102"), "page", "invalid");
    assert_eq!(owner.patch("/repos/alice/project", json!({ "private": true })).status, 200);
    assert_eq!(titles(&owner.read("/issues")), ["hers"]);
    assert_eq!(guest.patch("/repos/bob/other", json!({ "private": true })).status, 200);
    assert_eq!(titles(&owner.read("/issues?filter=all")), ["hers"], "what she may not read concerns her no more");
}

#[rstest]
fn comments_changes_and_assignees_of_a_repository_are_listed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "project", false);
    let (owner, guest) = (Api::of(&server, &alice), Api::of(&server, &bob));
    for title in ["one", "two"] {
        made(&owner.post(ISSUES, json!({ "title": title })));
    }
    let first = made(&guest.post(&format!("{ISSUES}/2/comments"), json!({ "body": "first" })));
    made(&owner.post(&format!("{ISSUES}/1/comments"), json!({ "body": "second" })));
    let third = made(&owner.post(&format!("{ISSUES}/2/comments"), json!({ "body": "see #1" })));
    owner.patch(&format!("{ISSUES}/comments/{}", third["id"]), json!({ "body": "third" }));
    guest.patch(&format!("{ISSUES}/comments/{}", first["id"]), json!({ "body": "first of all" }));
    let said = |query: &str| -> Vec<String> {
        let list = owner.read(&format!("{ISSUES}/comments{query}"));
        let bodies = list.as_array().into_iter().flatten().filter_map(|comment| comment["body"].as_str());
        bodies.map(str::to_owned).collect()
    };
    assert_eq!(said(""), ["first of all", "second", "third"]);
    assert_eq!(said("?sort=created&direction=desc&per_page=2"), ["third", "second"]);
    assert_eq!(said("?sort=updated&direction=desc"), ["first of all", "third", "second"]);
    assert_eq!(said("?sort=updated"), ["second", "third", "first of all"]);
    assert_eq!(said("?since=2099-01-01T00:00:00Z"), [""; 0]);
    assert_eq!(owner.read(&format!("{ISSUES}/comments"))[0]["issue_url"], format!("{}/api/v3{ISSUES}/2", server.url()));
    assert_refused(&owner.get(&format!("{ISSUES}/comments?sort=odd")), "sort", "invalid");
    assert_refused(&owner.get(&format!("{ISSUES}/comments?direction=odd")), "direction", "invalid");

    owner.patch(&format!("{ISSUES}/1"), json!({ "title": "uno", "assignees": ["alice"], "state": "closed" }));
    let events = guest.read(&format!("{ISSUES}/1/events"));
    let kinds: Vec<_> = events.as_array().into_iter().flatten().map(|event| event["event"].clone()).collect();
    assert_eq!(kinds.len(), 3, "neither comments nor references: {kinds:?}");
    assert!(["renamed", "assigned", "closed"].iter().all(|kind| kinds.contains(&json!(kind))), "{kinds:?}");

    let assignees = "/repos/alice/project/assignees";
    assert_eq!(guest.get(&format!("{assignees}/alice")).status, 204);
    for name in ["bob", "nobody", "-"] {
        assert_error(&guest.get(&format!("{assignees}/{name}")), 404);
    }
    assert_eq!(owner.put("/repos/alice/project/collaborators/bob", json!({})).status, 204);
    assert_eq!(guest.get(&format!("{assignees}/bob")).status, 204);
    assert_eq!(owner.patch("/repos/alice/project", json!({ "private": true })).status, 200);
    let nobody = Api::nobody(&server);
    for path in [format!("{ISSUES}/comments"), format!("{ISSUES}/1/events"), format!("{assignees}/alice")] {
        assert_error(&nobody.get(&path), 404);
    }
}
