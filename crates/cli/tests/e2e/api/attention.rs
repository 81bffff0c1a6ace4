//! Stars, watching and following over the API, as GitHub's clients expect them.

use super::{Api, assert_error, assert_refused};
use crate::beside::Beside as _;
use crate::support::{builder, person, query, server};
use abide_testkit::Engine;
use abide_testkit::http::Response;
use rstest::rstest;
use serde_json::{Value, json};

/// One field of every entry.
fn each<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().expect("a list").iter().filter_map(|entry| entry[field].as_str()).collect()
}

fn with_times(api: &Api<'_>, path: &str) -> Value {
    let request = api.request("GET", path).header("Accept", "application/vnd.github.v3.star+json");
    let response: Response = request.send(api.server.http_addr());
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

#[rstest]
fn a_star_is_given_counted_listed_and_taken_back(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob, carol) = (person(&server, "alice"), person(&server, "bob"), person(&server, "carol"));
    alice.create(&server, "project", false);
    alice.create(&server, "other", false);
    let (owner, fan, other) = (Api::of(&server, &alice), Api::of(&server, &bob), Api::of(&server, &carol));
    let (star, repo) = ("/user/starred/alice/project", "/repos/alice/project");
    let before = owner.read(repo);

    assert_error(&fan.get(star), 404);
    for _ in 0..2 {
        assert_eq!(fan.put(star, json!({})).status, 204);
        assert_eq!(fan.get(star).status, 204);
    }
    assert_eq!(other.request("PUT", star).send(server.http_addr()).status, 204, "it needs no body");
    fan.put("/user/starred/alice/other", json!({}));

    let after = owner.read(repo);
    for field in ["stargazers_count", "watchers_count", "watchers"] {
        assert_eq!(after[field], 2, "{field} means stars, as at GitHub");
    }
    assert_eq!((&after["subscribers_count"], &after["updated_at"]), (&json!(1), &before["updated_at"]));
    assert_eq!(owner.read("/search/repositories?q=project&sort=stars")["items"][0]["stargazers_count"], 2);
    assert_eq!(each(&Api::nobody(&server).read(&format!("{repo}/stargazers")), "login"), ["carol", "bob"]);
    let first = owner.get(&format!("{repo}/stargazers?per_page=1"));
    assert!(first.header("link").is_some_and(|link| link.contains("page=2>; rel=\"last\"")), "{:?}", first.headers);
    let timed = with_times(&owner, &format!("{repo}/stargazers"));
    assert_eq!(timed[0]["user"]["login"], "carol");
    assert!(timed[0]["starred_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{timed}");

    assert_eq!(each(&fan.read("/user/starred"), "name"), ["other", "project"]);
    assert_eq!(each(&fan.read("/user/starred?sort=created&direction=asc"), "name"), ["project", "other"]);
    assert_eq!(each(&Api::nobody(&server).read("/users/bob/starred"), "name"), ["other", "project"]);
    let timed = with_times(&fan, "/users/bob/starred?per_page=1");
    assert_eq!(timed[0]["repo"]["full_name"], "alice/other");
    assert!(timed[0]["starred_at"].is_string(), "{timed}");

    for _ in 0..2 {
        assert_eq!(fan.delete(star).status, 204);
    }
    assert_error(&fan.get(star), 404);
    assert_eq!(owner.read(repo)["stargazers_count"], 1);
    let reported = query(&server, "SELECT kind FROM domain_events WHERE kind LIKE '%star' ORDER BY id");
    assert_eq!(
        reported.lines().collect::<Vec<_>>(),
        ["star", "star", "star", "unstar"],
        "what changes nothing is not told"
    );
}

#[rstest]
fn stars_of_what_is_hidden_are_hidden_and_come_back(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let id = alice.create(&server, "project", false)["id"].clone();
    let (owner, fan, nobody) = (Api::of(&server, &alice), Api::of(&server, &bob), Api::nobody(&server));
    let star = "/user/starred/alice/project";
    assert_eq!(fan.put(star, json!({})).status, 204);

    owner.patch("/repos/alice/project", json!({ "private": true }));
    for api in [&fan, &nobody] {
        assert_eq!(api.read("/users/bob/starred"), json!([]));
        assert_error(&api.get("/repos/alice/project/stargazers"), 404);
    }
    for method in ["GET", "PUT", "DELETE"] {
        assert_error(&fan.send(method, star, &json!({})), 404);
        assert_error(&fan.send(method, "/user/starred/alice/never", &json!({})), 404);
        assert_error(&nobody.send(method, star, &json!({})), 401);
    }
    assert_eq!(each(&owner.read("/users/bob/starred"), "name"), ["project"], "the owner may read it");

    owner.patch("/repos/alice/project", json!({ "private": false, "name": "renamed" }));
    assert_eq!(each(&fan.read("/user/starred"), "name"), ["renamed"]);
    assert_eq!(fan.get(star).status, 204, "the old name leads to it");
    assert_eq!(owner.delete("/repos/alice/renamed").status, 204);
    assert_eq!(fan.read("/user/starred"), json!([]));
    assert_eq!(owner.post(&format!("/repositories/{id}/restore"), json!({})).json()["stargazers_count"], 1);

    assert!(server.cli(&["user", "suspend", "bob"]).status.success());
    assert_eq!(owner.read("/repos/alice/renamed")["stargazers_count"], 0);
    assert_eq!(owner.read("/repos/alice/renamed/stargazers"), json!([]));
    assert!(server.cli(&["user", "unsuspend", "bob"]).status.success());
    assert_eq!(owner.read("/repos/alice/renamed")["stargazers_count"], 1);
}

#[rstest]
fn too_many_stars_in_an_hour_have_to_wait(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = builder(engine).env("ABIDE_ATTENTION__STAR_LIMIT_PER_HOUR", "2").start();
    let alice = person(&server, "alice");
    alice.create(&server, "project", false);
    let api = Api::of(&server, &alice);
    let star = "/user/starred/alice/project";
    assert_eq!(api.put(star, json!({})).status, 204);
    assert_eq!(api.put(star, json!({})).status, 204, "it changes nothing, but counts");
    let refused = api.delete(star);
    let message = assert_error(&refused, 429);
    assert!(message.contains("too many attempts"), "{message}");
    let wait: u64 = refused.header("retry-after").and_then(|wait| wait.parse().ok()).expect("how long to wait");
    assert!((1..=3600).contains(&wait), "{wait}");
    assert_eq!(api.get(star).status, 204);
}

#[rstest]
fn too_many_repositories_and_tokens_in_an_hour_have_to_wait(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let limits = [("ABIDE_REPOS__CREATE_LIMIT_PER_HOUR", "2"), ("ABIDE_ACCOUNTS__TOKEN_LIMIT_PER_HOUR", "1")];
    let server = limits.into_iter().fold(builder(engine), |server, (name, value)| server.env(name, value)).start();
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    bob.create(&server, "tool", false);
    let tree = bob.git.init_work_tree();
    bob.git.commit_file(&tree, "a", "a", "first");
    bob.git.ok(&tree, &["push", &server.http_url("bob", "tool"), "main"]);
    let api = Api::of(&server, &alice);
    for name in ["one", "two"] {
        assert_eq!(api.post("/user/repos", json!({ "name": name })).status, 201);
        // Making and deleting it again counts too.
        assert_eq!(api.delete(&format!("/repos/alice/{name}")).status, 204);
    }
    for refused in [api.post("/user/repos", json!({ "name": "three" })), api.post("/repos/bob/tool/forks", json!({}))] {
        assert!(assert_error(&refused, 429).contains("too many attempts"), "{}", refused.text());
        assert!(refused.header("retry-after").is_some());
    }
    assert_eq!(query(&server, "SELECT count(*) FROM repos WHERE deleted_at IS NULL"), "1");

    // Actions of the operator at the command line are not attributed to the account.
    server.add_token("alice", "repo");
    server.add_token("alice", "repo");
    let browser = crate::pages::logged_in(&server, "alice");
    let more = [("label", "ci"), ("scope", "repo"), ("expires", "")];
    assert_eq!(browser.submit("/settings/tokens", "/settings/tokens", &more).status, 200);
    let refused = browser.submit("/settings/tokens", "/settings/tokens", &more);
    assert_eq!(refused.status, 429, "{}", refused.text());
}

#[rstest]
fn watching_has_three_levels_and_two_of_githubs_words(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "project", false);
    let (owner, other) = (Api::of(&server, &alice), Api::of(&server, &bob));
    let (repo, path) = ("/repos/alice/project", "/repos/alice/project/subscription");

    assert_error(&other.get(path), 404);
    for (body, level, watchers) in [
        (json!({ "subscribed": true }), "all", 1),
        (json!({ "ignored": true }), "ignore", 0),
        (json!({ "subscribed": false, "ignored": false }), "participating", 1),
        (json!({ "level": "ignore", "subscribed": true }), "ignore", 0),
        (json!({}), "all", 1),
    ] {
        let set = other.put(path, body.clone());
        assert_eq!(set.status, 200, "{}", set.text());
        let set = set.json();
        assert_eq!(set, other.read(path));
        assert_eq!(set["level"], level, "{body}");
        assert_eq!((&set["subscribed"], &set["ignored"]), (&json!(watchers == 1), &json!(watchers == 0)), "{body}");
        assert_eq!(set["repository_url"], owner.read(repo)["url"]);
        assert_eq!(owner.read(repo)["subscribers_count"], watchers + 1, "and its owner: {body}");
    }
    let rule = assert_refused(&other.put(path, json!({ "level": "some" })), "level", "invalid");
    assert!(rule.contains("all, participating, ignore"), "{rule}");
    assert_eq!(each(&other.read("/user/subscriptions"), "name"), ["project"]);
    assert_eq!(owner.read(repo)["watchers_count"], 0, "which means stars");

    assert_eq!(each(&owner.read(&format!("{repo}/subscribers")), "login"), ["bob", "alice"]);
    assert_error(&other.get(&format!("{repo}/subscribers")), 403);
    assert_error(&Api::nobody(&server).get(&format!("{repo}/subscribers")), 401);

    for _ in 0..2 {
        assert_eq!(other.delete(path).status, 204);
    }
    assert_error(&other.get(path), 404);
    owner.put(&format!("{repo}/collaborators/bob"), json!({ "permission": "read" }));
    assert_eq!(other.read(path)["level"], "all", "who is asked to work on it is told everything");
}

#[rstest]
fn people_are_followed_and_let_go(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let (api, other, nobody) = (Api::of(&server, &alice), Api::of(&server, &bob), Api::nobody(&server));
    assert_error(&api.get("/user/following/bob"), 404);
    for _ in 0..2 {
        assert_eq!(api.put("/user/following/bob", json!({})).status, 204);
    }
    assert_eq!(api.get("/user/following/bob").status, 204);
    assert_eq!(nobody.get("/users/alice/following/bob").status, 204);
    assert_error(&nobody.get("/users/bob/following/alice"), 404);
    assert_eq!(each(&nobody.read("/users/bob/followers"), "login"), ["alice"]);
    assert_eq!(each(&nobody.read("/users/alice/following"), "login"), ["bob"]);
    assert_eq!(each(&other.read("/user/followers"), "login"), ["alice"]);
    assert_eq!(each(&api.read("/user/following"), "login"), ["bob"]);
    assert_eq!(nobody.read("/users/bob")["followers"], 1);
    assert_eq!(api.read("/user")["following"], 1);

    assert_refused(&api.put("/user/following/alice", json!({})), "username", "invalid");
    assert_error(&api.put("/user/following/nobody", json!({})), 404);
    assert_error(&nobody.put("/user/following/bob", json!({})), 401);
    assert_eq!(api.delete("/user/following/bob").status, 204);
    assert_eq!(nobody.read("/users/bob/followers"), json!([]));
}
