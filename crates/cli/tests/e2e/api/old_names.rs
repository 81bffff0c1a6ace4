//! Old names: where they lead, to whom they lead nowhere, and how they end.

use super::hidden::comparable;
use super::{Api, assert_error};
use crate::support::{Person, assert_healthy, person, server};
use abide_testkit::{Engine, Server};
use rstest::rstest;
use serde_json::{Value, json};

#[track_caller]
fn rename(api: &Api<'_>, slug: &str, name: &str) {
    let renamed = api.patch(&format!("/repos/{slug}"), json!({ "name": name }));
    assert_eq!(renamed.status, 200, "{}", renamed.text());
}

#[track_caller]
fn transfer(server: &Server, from: &Person, name: &str, to: &Person) {
    let path = format!("/repos/{}/{name}/transfer", from.name);
    let offer = Api::of(server, from).post(&path, json!({ "new_owner": to.name }));
    assert_eq!(offer.status, 202, "{}", offer.text());
    let accept = format!("/repository_transfers/{}/accept", offer.json()["id"]);
    assert_eq!(Api::of(server, to).post(&accept, json!({})).status, 200);
}

/// Fails unless an old name answers with the address that never changes.
#[track_caller]
fn assert_leads(api: &Api<'_>, slug: &str, id: &Value) {
    let target = format!("{}/api/v3/repositories/{id}", api.server.url());
    for method in ["GET", "HEAD"] {
        let answer = api.request(method, &format!("/repos/{slug}?per_page=3")).send(api.server.http_addr());
        assert_eq!((answer.status, answer.header("location")), (301, Some(target.as_str())), "{method} {slug}");
        assert_eq!(answer.header("cache-control"), Some("private, no-cache"), "a name may be used again");
        if method == "GET" {
            let body = json!({ "message": "Moved Permanently", "url": target, "documentation_url": "/api/docs" });
            assert_eq!(answer.json(), body, "{slug}");
        }
    }
    assert_eq!(api.read(&format!("/repositories/{id}"))["id"], *id);
}

#[rstest]
fn every_old_name_leads_to_the_repository(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let id = alice.create(&server, "first", false)["id"].clone();
    let api = Api::of(&server, &alice);
    rename(&api, "alice/first", "second");
    rename(&api, "alice/second", "third");
    transfer(&server, &alice, "third", &bob);
    server.cli_ok(&["user", "rename", "alice", "alicia"]);
    server.cli_ok(&["user", "rename", "bob", "bert"]);

    let nobody = Api::nobody(&server);
    for who in [&nobody, &api, &Api::of(&server, &bob)] {
        for slug in
            ["alice/first", "alice/second", "alice/third", "Alice/FIRST", "alicia/first", "alicia/third", "bob/third"]
        {
            assert_leads(who, slug, &id);
        }
        assert_eq!(who.read("/repos/bert/third")["full_name"], "bert/third");
        assert_eq!(who.read("/repos/Bert/Third")["full_name"], "bert/third", "another spelling is no other name");
    }
    let listed = Api::of(&server, &bob).read("/repos/bert/third/redirects");
    let names: Vec<_> = listed.as_array().expect("a list").iter().map(|old| old["full_name"].clone()).collect();
    assert_eq!(names, ["alicia/third", "alicia/second", "alicia/first"], "the latest first, by what people are called");
    assert!(listed.as_array().expect("a list").iter().all(|old| old["last_used_at"].is_string()), "{listed}");
    assert_healthy(&server);
}

#[rstest]
fn by_an_old_name_everything_below_is_served_in_place(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let (api, friend) = (Api::of(&server, &alice), Api::of(&server, &bob));
    let made = api.post("/user/repos", json!({ "name": "old", "auto_init": true }));
    assert_eq!(made.status, 201);
    rename(&api, "alice/old", "project");

    for tail in [
        "branches?per_page=1",
        "contents/README.md?ref=main",
        "readme",
        "commits?per_page=1",
        "git/refs",
        "git/trees/main?recursive=1",
        "forks",
        "topics",
        "collaborators",
        "redirects",
        "audit?per_page=1",
    ] {
        let by_old = api.get(&format!("/repos/alice/old/{tail}"));
        assert_eq!(by_old.status, 200, "{tail}: {}", by_old.text());
        assert_eq!(by_old.json(), api.read(&format!("/repos/alice/project/{tail}")), "{tail}");
    }
    assert_eq!(api.put("/repos/alice/old/topics", json!({ "names": ["kept"] })).status, 200);
    assert_eq!(api.put("/repos/alice/old/collaborators/bob", json!({})).status, 204);
    assert_eq!(friend.post("/repos/alice/old/forks", json!({})).status, 202);
    let edited = api.patch("/repos/alice/old", json!({ "description": "In place", "archived": true }));
    assert_eq!((edited.status, &edited.json()["full_name"]), (200, &json!("alice/project")));
    let offer = api.post("/repos/alice/old/transfer", json!({ "new_owner": "bob" }));
    assert_eq!((offer.status, &offer.json()["repository"]["full_name"]), (202, &json!("alice/project")));
    assert_eq!(api.delete("/repos/alice/old").status, 204);
    assert_error(&api.get("/repos/alice/project"), 404);
    assert_error(&api.get("/repos/alice/old"), 404);
}

#[rstest]
fn an_old_name_reveals_nothing_that_is_hidden(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let (api, stranger, nobody) = (Api::of(&server, &alice), Api::of(&server, &bob), Api::nobody(&server));
    let private = alice.create(&server, "private", true)["id"].clone();
    alice.create(&server, "doomed", false);
    rename(&api, "alice/private", "hidden");
    rename(&api, "alice/doomed", "gone");
    assert_eq!(api.delete("/repos/alice/gone").status, 204);

    assert_leads(&api, "alice/private", &private);
    for (who, names) in
        [(&stranger, &["private", "doomed"][..]), (&nobody, &["private", "doomed"]), (&api, &["doomed"])]
    {
        for (method, tail, body) in [
            ("GET", "", Value::Null),
            ("HEAD", "", Value::Null),
            ("GET", "/branches", Value::Null),
            ("GET", "/contents/x", Value::Null),
            ("GET", "/redirects", Value::Null),
            ("GET", "/audit", Value::Null),
            ("PATCH", "", json!({ "name": "mine" })),
            ("DELETE", "", Value::Null),
            ("POST", "/transfer", json!({ "new_owner": "bob" })),
        ] {
            let ask = |name: &str| {
                let request = who.request(method, &format!("/repos/alice/{name}{tail}"));
                let request = if body.is_null() { request } else { request.json(&body) };
                comparable(request.send(server.http_addr()))
            };
            let absent = ask("never");
            assert!([401, 404].contains(&absent.status), "{method} {tail}: {absent:?}");
            for name in names {
                assert_eq!(ask(name), absent, "{method} {name}{tail}");
            }
        }
    }
}

#[rstest]
fn a_name_that_is_used_again_leads_to_whoever_has_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    let first = alice.create(&server, "project", false)["id"].clone();
    rename(&api, "alice/project", "moved");
    assert_leads(&api, "alice/project", &first);

    let second = alice.create(&server, "project", false)["id"].clone();
    assert_eq!(api.read("/repos/alice/project")["id"], second);
    assert_eq!(api.read("/repos/alice/moved/redirects")[0]["name"], "project", "the old name is hidden, not gone");
    rename(&api, "alice/project", "elsewhere");
    assert_leads(&api, "alice/project", &second);
    assert_eq!(api.delete("/repos/alice/elsewhere").status, 204);
    assert_leads(&api, "alice/project", &first);

    // Going back to an old name consumes it.
    rename(&api, "alice/moved", "again");
    rename(&api, "alice/again", "moved");
    let listed = api.read("/repos/alice/moved/redirects");
    let mut names: Vec<_> = listed.as_array().expect("a list").iter().map(|old| old["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, [Some("again"), Some("project")]);
    assert_healthy(&server);
}

#[rstest]
fn an_old_name_is_released_by_those_who_administer(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let (api, other) = (Api::of(&server, &alice), Api::of(&server, &bob));
    for name in ["one", "two"] {
        alice.create(&server, name, false);
        rename(&api, &format!("alice/{name}"), &format!("{name}-new"));
    }
    let old = api.read("/repos/alice/one-new/redirects")[0].clone();
    assert_eq!((&old["full_name"], &old["name"]), (&json!("alice/one"), &json!("one")));
    assert!(old["created_at"].is_string() && old["last_used_at"].is_null(), "{old}");
    let path = |repo: &str| format!("/repos/alice/{repo}/redirects/{}", old["id"]);
    assert_eq!(old["url"], format!("{}/api/v3{}", server.url(), path("one-new")));

    assert_error(&other.get("/repos/alice/one-new/redirects"), 403);
    assert_error(&other.delete(&path("one-new")), 403);
    assert_error(&api.delete(&path("two-new")), 404);
    assert_error(&api.delete("/repos/alice/one-new/redirects/987654321"), 404);
    assert_error(&api.delete("/repos/alice/one-new/redirects/x"), 404);
    assert_eq!(api.get("/repos/alice/one").status, 301);

    // By the very name that is given up, also while it is archived.
    assert_eq!(api.patch("/repos/alice/one-new", json!({ "archived": true })).status, 200);
    assert_eq!(api.delete(&path("one")).status, 204);
    assert_error(&api.get("/repos/alice/one"), 404);
    assert_error(&api.delete(&path("one-new")), 404);
    assert_eq!(api.read("/repos/alice/one-new/redirects"), json!([]));
    assert_eq!(api.read("/repos/alice/one-new/audit")[0]["action"], "repo_redirect_released");
    assert_eq!(api.get("/repos/alice/two").status, 301, "another repository's is untouched");
    assert_healthy(&server);
}

#[test]
fn old_names_come_in_pages() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    alice.create(&server, "a", false);
    for (old, new) in [("a", "b"), ("b", "c"), ("c", "d")] {
        rename(&api, &format!("alice/{old}"), new);
    }
    let names =
        |list: Value| list.as_array().expect("a list").iter().map(|old| old["name"].clone()).collect::<Vec<_>>();
    let first = api.get("/repos/alice/d/redirects?per_page=2");
    assert_eq!(names(first.json()), ["c", "b"]);
    assert!(first.header("link").is_some_and(|link| link.contains("page=2>; rel=\"next\"")), "{first:?}");
    assert_eq!(names(api.read("/repos/alice/d/redirects?per_page=2&page=2")), ["a"]);
    assert_eq!(names(api.read("/repos/alice/d/redirects?page=9")), Vec::<Value>::new());
}
