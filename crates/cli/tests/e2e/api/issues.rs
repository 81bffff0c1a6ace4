//! Issues over REST, in GitHub's shapes.

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

#[rstest]
fn an_issue_is_opened_discussed_sorted_and_closed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "project", false);
    let (owner, guest, nobody) = (Api::of(&server, &alice), Api::of(&server, &bob), Api::nobody(&server));

    let issue = made(&guest.post(ISSUES, json!({ "title": "It crashes", "body": "@alice see", "labels": ["bug"] })));
    assert_eq!(
        (&issue["number"], &issue["state"], &issue["user"]["login"]),
        (&json!(1), &json!("open"), &json!("bob"))
    );
    assert_eq!(issue["labels"], json!([]), "a guest's labels are left out");
    let comment = made(&owner.post(&format!("{ISSUES}/1/comments"), json!({ "body": "Thanks" })));
    assert_eq!(comment["body"], "Thanks");
    let said = format!("{ISSUES}/comments/{}", comment["id"]);
    assert_eq!(owner.patch(&said, json!({ "body": "Thank you" })).json()["body"], "Thank you");
    assert_error(&guest.patch(&said, json!({ "body": "mine now" })), 403);
    assert_eq!(nobody.read(&format!("{ISSUES}/1/comments"))[0]["body"], "Thank you");

    // A list alone, as PyGithub sends it, and an object that holds one.
    let bug = owner.post(&format!("{ISSUES}/1/labels"), json!(["bug"]));
    assert_eq!((bug.status, &bug.json()[0]["name"]), (200, &json!("bug")), "{}", bug.text());
    let both = owner.post(&format!("{ISSUES}/1/labels"), json!({ "labels": ["ui", { "name": "Bug" }] }));
    assert_eq!(both.json().as_array().map(Vec::len), Some(2), "{}", both.text());
    assert_eq!(owner.delete(&format!("{ISSUES}/1/labels/ui")).json().as_array().map(Vec::len), Some(1));
    assert_error(&owner.delete(&format!("{ISSUES}/1/labels/ui")), 404);
    let plan = made(
        &owner.post("/repos/alice/project/milestones", json!({ "title": "v1", "due_on": "2026-12-31T00:00:00Z" })),
    );
    let sorted = owner.patch(&format!("{ISSUES}/1"), json!({ "assignees": ["alice"], "milestone": plan["number"] }));
    assert_eq!((sorted.status, &sorted.json()["assignee"]["login"]), (200, &json!("alice")), "{}", sorted.text());
    assert_eq!(sorted.json()["milestone"]["title"], "v1");
    let closed = guest.patch(&format!("{ISSUES}/1"), json!({ "state": "closed", "state_reason": "not_planned" }));
    assert_eq!(closed.json()["state_reason"], "not_planned", "authors close their own: {}", closed.text());
    assert_eq!(closed.json()["closed_by"]["login"], "bob");
    let planned = owner.read("/repos/alice/project/milestones/1");
    assert_eq!((&planned["closed_issues"], &planned["open_issues"]), (&json!(1), &json!(0)));

    let reported: Vec<Value> = nobody.read(&format!("{ISSUES}/1/timeline")).as_array().cloned().unwrap_or_default();
    let kinds: Vec<_> = reported.iter().map(|entry| entry["event"].as_str().unwrap_or_default()).collect();
    assert_eq!(kinds, ["commented", "labeled", "labeled", "unlabeled", "assigned", "milestoned", "closed"]);
    assert_eq!(owner.read("/repos/alice/project")["open_issues_count"], 0);
    assert_eq!(owner.delete(&said).status, 204);
    assert_eq!(owner.read(&format!("{ISSUES}/1"))["comments"], 0);
}

#[rstest]
fn lists_are_filtered_ordered_and_paged(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "project", false);
    let (owner, guest) = (Api::of(&server, &alice), Api::of(&server, &bob));
    for (number, label) in [(1, "bug"), (2, "bug"), (3, "ui")] {
        made(&owner.post(ISSUES, json!({ "title": format!("issue {number}"), "labels": [label] })));
    }
    made(&guest.post(ISSUES, json!({ "title": "of a guest" })));
    owner.patch(&format!("{ISSUES}/2"), json!({ "state": "closed" }));
    let numbers = |query: &str| -> Vec<i64> {
        let found = owner.read(&format!("{ISSUES}?{query}"));
        found.as_array().into_iter().flatten().filter_map(|issue| issue["number"].as_i64()).collect()
    };
    assert_eq!(numbers(""), [4, 3, 1]);
    assert_eq!(numbers("state=all&direction=asc"), [1, 2, 3, 4]);
    assert_eq!(numbers("state=closed"), [2]);
    assert_eq!(numbers("labels=bug&state=all"), [2, 1]);
    assert_eq!(numbers("labels=bug,ui"), [0; 0]);
    assert_eq!(numbers("creator=bob"), [4]);
    assert_eq!(numbers("assignee=none&per_page=1"), [4]);
    assert_eq!(numbers("milestone=*"), [0; 0]);
    assert_eq!(numbers("sort=updated&state=all")[0], 2);
    let first = owner.get(&format!("{ISSUES}?per_page=2"));
    assert!(first.header("link").is_some_and(|link| link.contains("rel=\"next\"")));
    for (query, field) in [
        ("state=odd", "state"),
        ("sort=odd", "sort"),
        ("direction=up", "direction"),
        ("since=now", "since"),
        ("milestone=x", "milestone"),
    ] {
        assert_refused(&owner.get(&format!("{ISSUES}?{query}")), field, "invalid");
    }
}

#[rstest]
fn what_is_wrong_is_said_and_what_is_private_is_not_there(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "project", true);
    let (owner, guest, nobody) = (Api::of(&server, &alice), Api::of(&server, &bob), Api::nobody(&server));
    made(&owner.post(ISSUES, json!({ "title": "plan" })));
    let comment = made(&owner.post(&format!("{ISSUES}/1/comments"), json!({ "body": "secret" })));
    made(&owner.post("/repos/alice/project/labels", json!({ "name": "bug", "color": "d73a4a" })));
    let absent = guest.get("/repos/alice/absent/issues");
    for tail in ["", "/1", "/1/comments", "/1/timeline", "/1/labels"] {
        for api in [&guest, &nobody] {
            let hidden = api.get(&format!("{ISSUES}{tail}"));
            assert_eq!((hidden.status, hidden.text()), (absent.status, absent.text()), "{tail}");
        }
    }
    assert_error(&guest.get(&format!("{ISSUES}/comments/{}", comment["id"])), 404);
    assert_error(&guest.get("/repos/alice/project/labels/bug"), 404);
    assert_error(&guest.post(ISSUES, json!({ "title": "x" })), 404);

    // An id of another repository opens nothing.
    alice.create(&server, "other", false);
    assert_error(&owner.get(&format!("/repos/alice/other/issues/comments/{}", comment["id"])), 404);
    assert_error(&owner.get("/repos/alice/other/issues/1"), 404);

    assert_refused(&owner.post(ISSUES, json!({})), "title", "missing_field");
    assert_refused(&owner.post(ISSUES, json!({ "title": " " })), "title", "invalid");
    assert_refused(&owner.post(ISSUES, json!({ "title": "x", "body": "a\u{0}b" })), "body", "invalid");
    assert_refused(&owner.post(ISSUES, json!({ "title": "x", "assignees": ["bob"] })), "assignees", "invalid");
    assert_refused(&owner.patch(&format!("{ISSUES}/1"), json!({ "milestone": 7 })), "milestone", "invalid");
    assert_refused(&owner.patch(&format!("{ISSUES}/1"), json!({ "state": "gone" })), "state", "invalid");
    let reason = json!({ "state": "open", "state_reason": "completed" });
    assert_refused(&owner.patch(&format!("{ISSUES}/1"), reason), "state_reason", "invalid");
    assert_refused(&owner.post("/repos/alice/project/labels", json!({ "name": "BUG" })), "name", "already_exists");
    assert_refused(
        &owner.post("/repos/alice/project/labels", json!({ "name": "x", "color": "red" })),
        "color",
        "invalid",
    );
    for number in ["0", "2", "01", "-1", "x", "99999999999999999999"] {
        assert_error(&owner.get(&format!("{ISSUES}/{number}")), 404);
    }
    assert_eq!(owner.patch("/repos/alice/project", json!({ "archived": true })).status, 200);
    assert_error(&owner.post(&format!("{ISSUES}/1/comments"), json!({ "body": "late" })), 403);
}

#[rstest]
fn a_push_that_says_so_closes_an_issue(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "project", false);
    let owner = Api::of(&server, &alice);
    for title in ["one", "two"] {
        made(&owner.post(ISSUES, json!({ "title": title })));
    }
    let dir = alice.git.init_work_tree();
    alice.git.commit_file(&dir, "a.txt", "a\n", "Start\n\nFixes #1");
    let url = server.http_url("alice", "project");
    alice.git.ok(&dir, &["push", "--quiet", &url, "main"]);
    abide_testkit::eventually(std::time::Duration::from_secs(30), || {
        owner.read(&format!("{ISSUES}/1"))["state"] == "closed"
    });
    assert_eq!(owner.read(&format!("{ISSUES}/2"))["state"], "open");
    alice.git.ok(&dir, &["checkout", "--quiet", "-b", "side"]);
    alice.git.commit_file(&dir, "b.txt", "b\n", "Fixes #2");
    alice.git.ok(&dir, &["push", "--quiet", &url, "side"]);
    alice.git.ok(&dir, &["push", "--quiet", &url, "side:main"]);
    abide_testkit::eventually(std::time::Duration::from_secs(30), || {
        owner.read(&format!("{ISSUES}/2"))["state"] == "closed"
    });
}
