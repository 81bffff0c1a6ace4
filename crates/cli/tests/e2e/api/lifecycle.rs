//! A repository's life over REST: renamed, archived, hidden, deleted and restored, and the log of it.

use super::{Api, assert_conflict, assert_error, assert_refused, assert_taken};
use crate::support::{assert_healthy, builder, person, query, server};
use abide_core::Timestamp;
use abide_testkit::http::Response;
use abide_testkit::{Engine, Server};
use rstest::rstest;
use serde_json::{Value, json};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// Audit log of a repository, the latest first.
#[track_caller]
fn done(api: &Api<'_>, slug: &str) -> Vec<String> {
    let entries = api.read(&format!("/repos/{slug}/audit?per_page=100"));
    let action = |entry: &Value| entry["action"].as_str().expect("an action").to_owned();
    entries.as_array().expect("a list").iter().map(action).collect()
}

fn events(server: &Server) -> String {
    query(server, "SELECT count(*) FROM domain_events")
}

#[rstest]
fn a_renamed_repository_is_the_same_one(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    let before = alice.create(&server, "project", false);

    let renamed = api.patch("/repos/alice/project", json!({ "name": " Better ", "description": "Both at once" }));
    assert_eq!(renamed.status, 200, "{}", renamed.text());
    assert_eq!(renamed.header("x-abide-notice"), Some("repository names are lowercase; this one is named better"));
    let after = renamed.json();
    assert_eq!(after["id"], before["id"]);
    assert_eq!((&after["name"], &after["full_name"]), (&json!("better"), &json!("alice/better")));
    assert_eq!(after["url"], format!("{}/api/v3/repos/alice/better", server.url()));
    assert_eq!(after["permalink"], before["permalink"]);
    assert_eq!(api.read("/repos/alice/better")["description"], "Both at once");

    let entry = &api.read("/repos/alice/better/audit")[0];
    assert_eq!((&entry["action"], &entry["actor"]["login"]), (&json!("repo_renamed"), &json!("alice")));
    assert_eq!(entry["meta"], json!({ "old_name": "project", "new_name": "better" }));
    assert!(entry["id"].is_i64() && entry["created_at"].is_string() && entry["ip"].is_string(), "{entry}");
    assert_eq!(done(&api, "alice/better"), ["repo_renamed", "repo_edited", "repo_created"]);
    assert_healthy(&server);
}

#[rstest]
fn a_name_that_cannot_be_had_changes_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    alice.create(&server, "project", false);
    alice.create(&server, "taken", true);
    let rename = |name: &str| api.patch("/repos/alice/project", json!({ "name": name, "description": "half" }));

    let taken = rename("Taken");
    assert_taken(&taken);
    for (name, said) in [
        ("", "1 to 100 characters"),
        ("a b", "only letters"),
        ("a/b", "only letters"),
        ("..", "start with a letter or digit"),
        ("a.git", ".git"),
        ("settings", "reserved"),
    ] {
        let rule = assert_refused(&rename(name), "name", "invalid");
        assert!(rule.contains(said), "{name:?}: {rule}");
    }
    assert_eq!(api.read("/repos/alice/project")["description"], Value::Null, "nothing was half done");
    assert_eq!(done(&api, "alice/project"), ["repo_created"]);
}

#[rstest]
fn the_sixth_rename_waits_and_going_back_and_forth_counts(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    let id = alice.create(&server, "ping", false)["id"].to_string();
    for name in ["pong", "ping", "pong", "ping", "pong"] {
        let by_old_name = if name == "pong" { "ping" } else { "pong" };
        assert_eq!(api.patch(&format!("/repos/alice/{by_old_name}"), json!({ "name": name })).status, 200, "{name}");
    }

    let refused = api.patch("/repos/alice/pong", json!({ "name": "other", "description": "half" }));
    let message = assert_error(&refused, 429);
    assert!(message.contains("5 times in 30 days"), "{message}");
    let wait: u64 = refused.header("retry-after").and_then(|wait| wait.parse().ok()).expect("seconds to wait");
    assert!(wait > 29 * DAY.as_secs() && wait <= 30 * DAY.as_secs(), "{wait}");
    let repo = api.read("/repos/alice/pong");
    assert_eq!((&repo["name"], &repo["description"]), (&json!("pong"), &Value::Null));
    assert_eq!(api.patch("/repos/alice/pong", json!({ "name": "pong" })).status, 200, "the same name is no rename");

    // The first of them leaves the window.
    let first = format!("SELECT min(id) FROM audit_log WHERE action = 'repo_renamed' AND repo_id = {id}");
    let moved = format!("UPDATE audit_log SET created_at = created_at - 2592000000000 WHERE id = ({first})");
    query(&server, &moved);
    assert_eq!(api.patch("/repos/alice/pong", json!({ "name": "other" })).status, 200);
    assert_error(&api.patch("/repos/alice/other", json!({ "name": "another" })), 429);
}

#[test]
fn how_often_a_repository_may_be_renamed_is_configured() {
    let server = builder(Engine::Sqlite)
        .env("ABIDE_LIFECYCLE__RENAME_LIMIT", "1")
        .env("ABIDE_LIFECYCLE__RENAME_WINDOW", "90s")
        .start();
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    alice.create(&server, "a", false);
    assert_eq!(api.patch("/repos/alice/a", json!({ "name": "b" })).status, 200);
    let refused = api.patch("/repos/alice/b", json!({ "name": "c" }));
    assert!(assert_error(&refused, 429).contains("1 times in 90 seconds"), "{}", refused.text());
    let wait: u64 = refused.header("retry-after").and_then(|wait| wait.parse().ok()).expect("seconds to wait");
    assert!((1..=90).contains(&wait), "{wait}");
    alice.create(&server, "d", false);
    assert_eq!(api.patch("/repos/alice/d", json!({ "name": "e" })).status, 200, "each repository has its own count");
}

#[rstest]
fn transfers_do_not_use_up_the_rename_budget(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let (from, to) = (Api::of(&server, &alice), Api::of(&server, &bob));
    alice.create(&server, "r0", false);
    for (old, new) in [("r0", "r1"), ("r1", "r2"), ("r2", "r3"), ("r3", "r4")] {
        assert_eq!(from.patch(&format!("/repos/alice/{old}"), json!({ "name": new })).status, 200);
    }
    for (giver, owner, taker, new_owner) in [(&from, "alice", &to, "bob"), (&to, "bob", &from, "alice")] {
        let offer = giver.post(&format!("/repos/{owner}/r4/transfer"), json!({ "new_owner": new_owner }));
        assert_eq!(offer.status, 202, "{}", offer.text());
        let accept = format!("/repository_transfers/{}/accept", offer.json()["id"]);
        assert_eq!(taker.post(&accept, json!({})).status, 200);
    }
    assert_eq!(from.patch("/repos/alice/r4", json!({ "name": "r5" })).status, 200, "that was only the fifth");
    assert_error(&from.patch("/repos/alice/r5", json!({ "name": "r6" })), 429);
    assert_healthy(&server);
}

#[rstest]
fn setting_what_holds_leaves_no_trace_in_any_state(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    alice.create(&server, "project", true);
    assert_eq!(api.patch("/repos/alice/project", json!({ "archived": true })).json()["archived"], true);
    let before = (done(&api, "alice/project"), events(&server));
    assert_eq!(before.0, ["repo_archived", "repo_created"]);
    for same in [
        json!({ "name": "PROJECT" }),
        json!({ "archived": true }),
        json!({ "private": true }),
        json!({ "visibility": "private", "description": "", "default_branch": "main" }),
        json!({}),
    ] {
        let answer = api.patch("/repos/alice/project", same.clone());
        assert_eq!((answer.status, &answer.json()["archived"]), (200, &json!(true)), "{same}: {}", answer.text());
    }
    assert_eq!((done(&api, "alice/project"), events(&server)), before);
}

#[rstest]
fn an_archived_repository_is_read_only_but_its_life_goes_on(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let api = Api::of(&server, &alice);
    alice.create(&server, "project", false);
    let change = |slug: &str, body: Value| api.patch(&format!("/repos/alice/{slug}"), body);
    assert_eq!(change("project", json!({ "archived": true })).status, 200);

    for refused in [
        change("project", json!({ "description": "x" })),
        change("project", json!({ "default_branch": "other" })),
        api.put("/repos/alice/project/topics", json!({ "names": ["x"] })),
        api.put("/repos/alice/project/collaborators/bob", json!({})),
    ] {
        assert!(assert_error(&refused, 403).starts_with("Repository was archived so is read-only: "));
    }
    assert_eq!(change("project", json!({ "name": "better" })).status, 200);
    assert_eq!(change("better", json!({ "visibility": "private" })).status, 200);
    let offered = api.post("/repos/alice/better/transfer", json!({ "new_owner": "bob" }));
    assert_eq!(offered.status, 202, "{}", offered.text());
    let seen = Api::of(&server, &bob).read(&format!("/repository_transfers/{}", offered.json()["id"]));
    assert_eq!(seen["repository"]["archived"], true);
    assert_eq!(api.delete("/repos/alice/better").status, 204);
    let id = api.read("/user/deleted_repos")[0]["id"].to_string();
    let restored = api.post(&format!("/repositories/{id}/restore"), json!({}));
    assert_eq!((restored.status, &restored.json()["archived"]), (200, &json!(true)), "the marks are independent");

    let both = change("better", json!({ "archived": false, "description": "Writable again" }));
    assert_eq!((both.status, &both.json()["archived"]), (200, &json!(false)), "{}", both.text());
    assert_eq!(change("better", json!({ "archived": true, "description": "The last word" })).status, 200);
    assert_eq!(api.read("/repos/alice/better")["description"], "The last word");
    assert_healthy(&server);
}

#[rstest]
fn what_a_nostr_key_rules_is_neither_hidden_nor_handed_over(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let (alice, _) = (person(&server, "alice"), person(&server, "bob"));
    let api = Api::of(&server, &alice);
    alice.create(&server, "project", false);
    query(&server, "UPDATE repos SET governance = 'nostr'");

    for refused in [
        api.patch("/repos/alice/project", json!({ "private": true })),
        api.post("/repos/alice/project/transfer", json!({ "new_owner": "bob" })),
    ] {
        let rule = assert_refused(&refused, "base", "unprocessable");
        assert!(rule.starts_with("this repository belongs to a nostr key"), "{rule}");
    }
    assert_eq!(api.patch("/repos/alice/project", json!({ "private": false })).status, 200);
    assert_eq!(done(&api, "alice/project"), ["repo_created"]);
    assert_eq!(api.patch("/repos/alice/project", json!({ "name": "better", "archived": true })).status, 200);
}

#[rstest]
fn taking_a_name_that_led_elsewhere_is_said(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let api = Api::of(&server, &alice);
    let said = |response: &Response| response.header("x-abide-notice").map(str::to_owned);
    let notice = Some("this name redirected to another repository until now".to_owned());
    alice.create(&server, "one", false);
    for (old, new) in [("one", "two"), ("two", "three"), ("three", "two")] {
        let renamed = api.patch(&format!("/repos/alice/{old}"), json!({ "name": new }));
        assert_eq!((renamed.status, said(&renamed)), (200, None), "its own old name, or one that nobody had: {new}");
    }

    let created = api.post("/user/repos", json!({ "name": "one" }));
    assert_eq!((created.status, said(&created)), (201, notice.clone()));
    let fresh = api.post("/user/repos", json!({ "name": "four" }));
    assert_eq!((fresh.status, said(&fresh)), (201, None));
    let renamed = api.patch("/repos/alice/four", json!({ "name": "three" }));
    assert_eq!((renamed.status, said(&renamed)), (200, notice.clone()));

    assert_eq!(api.post("/user/repos", json!({ "name": "source", "auto_init": true })).status, 201);
    let friend = Api::of(&server, &bob);
    bob.create(&server, "source", false);
    assert_eq!(friend.patch("/repos/bob/source", json!({ "name": "elsewhere" })).status, 200);
    let forked = friend.post("/repos/alice/source/forks", json!({}));
    assert_eq!((forked.status, said(&forked)), (202, notice), "{}", forked.text());
    assert_healthy(&server);
}

#[rstest]
fn a_deleted_repository_is_listed_and_restored(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let (api, stranger) = (Api::of(&server, &alice), Api::of(&server, &bob));
    let made = alice.create(&server, "project", true);
    let id = made["id"].to_string();
    let restore = |body: Value| api.post(&format!("/repositories/{id}/restore"), body);
    assert_eq!(api.read("/user/deleted_repos"), json!([]));
    assert_conflict(&restore(json!({})), "is not deleted");
    assert_eq!(api.delete("/repos/alice/project").status, 204);

    let listed = api.read("/user/deleted_repos");
    let one = &listed[0];
    assert_eq!((listed.as_array().map(Vec::len), &one["id"]), (Some(1), &made["id"]));
    assert_eq!((&one["full_name"], &one["private"]), (&json!("alice/project"), &json!(true)));
    assert_eq!(one["restore_url"], format!("{}/api/v3/repositories/{id}/restore", server.url()));
    let deleted: i64 = query(&server, "SELECT deleted_at FROM repos").parse().expect("microseconds");
    let deleted = Timestamp::from_micros(deleted);
    assert_eq!(one["deleted_at"], deleted.to_string());
    assert_eq!(one["restore_until"], deleted.plus(7 * DAY).to_string());
    assert_eq!(stranger.read("/user/deleted_repos"), json!([]), "everyone has a list of their own");

    // Its name has been taken meanwhile.
    let other = alice.create(&server, "project", false)["id"].clone();
    let taken = restore(json!({}));
    assert_taken(&taken);
    assert_taken(&restore(json!({ "name": "project" })));
    assert_refused(&restore(json!({ "name": "a b" })), "name", "invalid");
    assert_eq!(api.read("/user/deleted_repos")[0]["id"], made["id"], "it waits for another try");
    let restored = restore(json!({ "name": "Project-2" }));
    assert_eq!((restored.status, &restored.json()["full_name"]), (200, &json!("alice/project-2")));
    assert_eq!(restored.json()["id"], made["id"]);
    assert_eq!(api.read("/repos/alice/project")["id"], other, "the other one keeps its name");
    assert_eq!(api.read("/user/deleted_repos"), json!([]));
    assert_eq!(done(&api, "alice/project-2"), ["repo_restored", "repo_soft_deleted", "repo_created"]);

    // Without a body, under its own name.
    assert_eq!(api.delete("/repos/alice/project-2").status, 204);
    let bare = api.request("POST", &format!("/repositories/{id}/restore")).send(server.http_addr());
    assert_eq!((bare.status, &bare.json()["full_name"]), (200, &json!("alice/project-2")));
    assert_healthy(&server);
}

#[rstest]
fn what_was_deleted_too_long_ago_is_gone(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    let id = alice.create(&server, "project", true)["id"].to_string();
    assert_eq!(api.delete("/repos/alice/project").status, 204);
    query(&server, "UPDATE repos SET deleted_at = deleted_at - 604800000000");
    let message = assert_error(&api.post(&format!("/repositories/{id}/restore"), json!({})), 410);
    assert!(message.contains("restore period of this repository has ended"), "{message}");

    server.cli_ok(&["jobs", "run", "lifecycle:sweep"]);
    assert_eq!(api.read("/user/deleted_repos"), json!([]));
    assert_error(&api.post(&format!("/repositories/{id}/restore"), json!({})), 404);
    assert_healthy(&server);
}

#[test]
fn deleted_repositories_come_in_pages() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    for name in ["a", "b", "c"] {
        alice.create(&server, name, false);
        assert_eq!(api.delete(&format!("/repos/alice/{name}")).status, 204);
    }
    let first = api.get("/user/deleted_repos?per_page=2");
    let names =
        |list: Value| list.as_array().expect("a list").iter().map(|one| one["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names(first.json()), ["c", "b"], "the latest first");
    assert!(first.header("link").is_some_and(|link| link.contains("page=2>; rel=\"next\"")), "{first:?}");
    assert_eq!(names(api.read("/user/deleted_repos?per_page=2&page=2")), ["a"]);
}

#[rstest]
fn the_log_is_read_from_entry_to_entry_by_those_who_administer(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let (api, other) = (Api::of(&server, &alice), Api::of(&server, &bob));
    alice.create(&server, "project", false);
    alice.create(&server, "beside", false);
    for archived in [true, false, true, false] {
        assert_eq!(api.patch("/repos/alice/project", json!({ "archived": archived })).status, 200);
    }
    server.cli_ok(&["repo", "archive", "alice/project"]);

    let mut seen = Vec::new();
    let mut next = Some("/repos/alice/project/audit?per_page=2".to_owned());
    while let Some(path) = next {
        let response = api.get(&path);
        assert_eq!(response.status, 200, "{}", response.text());
        let entries = response.json();
        seen.extend(entries.as_array().expect("a list").iter().cloned());
        next = response.header("link").map(|link| {
            let address = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\"")).expect("a link");
            let path = address.strip_prefix(&format!("{}/api/v3", server.url())).expect("it leads to this server");
            path.to_owned()
        });
    }
    let actions: Vec<_> = seen.iter().filter_map(|entry| entry["action"].as_str()).collect();
    let expected =
        ["repo_archived", "repo_unarchived", "repo_archived", "repo_unarchived", "repo_archived", "repo_created"];
    assert_eq!(actions, expected);
    let ids: Vec<_> = seen.iter().map(|entry| entry["id"].as_i64().expect("a number")).collect();
    assert!(ids.is_sorted_by(|one, next| one > next), "{ids:?}");
    assert_eq!((&seen[0]["actor"], &seen[0]["ip"]), (&Value::Null, &Value::Null), "that was the operator");
    assert_eq!(seen[1]["meta"], json!({ "before": true, "after": false }));
    let behind = api.read(&format!("/repos/alice/project/audit?before={}", ids[4]));
    assert_eq!(behind, json!([seen[5]]));

    assert_error(&other.get("/repos/alice/project/audit"), 403);
    assert_eq!(api.put("/repos/alice/beside/collaborators/bob", json!({ "permission": "maintain" })).status, 204);
    assert_error(&other.get("/repos/alice/beside/audit"), 403);
    assert_eq!(api.put("/repos/alice/beside/collaborators/bob", json!({ "permission": "admin" })).status, 204);
    assert_eq!(other.get("/repos/alice/beside/audit").status, 200);
    assert_error(&Api::nobody(&server).get("/repos/alice/project/audit"), 401);
}

#[rstest]
fn only_an_admin_changes_a_life(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let (api, other) = (Api::of(&server, &alice), Api::of(&server, &bob));
    alice.create(&server, "project", false);
    let changes =
        || [json!({ "name": "mine" }), json!({ "archived": true }), json!({ "visibility": "private" })].into_iter();
    for role in ["read", "triage", "write", "maintain"] {
        assert_eq!(api.put("/repos/alice/project/collaborators/bob", json!({ "permission": role })).status, 204);
        for change in changes() {
            assert_error(&other.patch("/repos/alice/project", change), 403);
        }
        assert_error(&other.delete("/repos/alice/project"), 403);
        assert_error(&other.post("/repos/alice/project/transfer", json!({ "new_owner": "bob" })), 403);
        assert_error(&other.get("/repos/alice/project/redirects"), 403);
    }
    assert_eq!(api.put("/repos/alice/project/collaborators/bob", json!({ "permission": "admin" })).status, 204);
    for change in changes() {
        assert_eq!(other.patch("/repos/alice/project", change.clone()).status, 200, "{change}");
    }
    let id = api.read("/repos/alice/mine")["id"].to_string();
    assert_eq!(other.delete("/repos/alice/mine").status, 204);
    assert_error(&other.post(&format!("/repositories/{id}/restore"), json!({})), 404);
    assert_eq!(api.post(&format!("/repositories/{id}/restore"), json!({})).status, 200, "that is for its owner");
}
