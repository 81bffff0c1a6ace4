//! Forks, topics and search.

use super::setup::{Setup, setup};
use super::{Api, assert_error, assert_refused};
use crate::support::{assert_healthy, person, query};
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::{Value, json};

fn slugs(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().map(|repo| repo["full_name"].as_str().unwrap_or_default()).collect()
}

#[rstest]
fn a_fork_is_whole_when_it_is_answered_and_lives_without_its_source(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let Setup { server, alice, .. } = setup(engine);
    let bob = person(&server, "bob");
    let api = Api::of(&server, &bob);

    let forked = api.post("/repos/alice/project/forks", json!({}));
    assert_eq!(forked.status, 202, "{}", forked.text());
    let fork = forked.json();
    assert_eq!((&fork["full_name"], &fork["fork"]), (&json!("bob/project"), &json!(true)));
    assert_eq!(
        (&fork["parent"]["full_name"], &fork["source"]["full_name"]),
        (&json!("alice/project"), &json!("alice/project"))
    );
    assert_eq!(api.read("/repos/bob/project/branches").as_array().map(Vec::len), Some(2));
    assert_eq!(api.post("/repos/alice/project/forks", json!({ "name": "other" })).json()["id"], fork["id"]);

    let source = api.read("/repos/alice/project");
    assert_eq!((&source["forks_count"], &source["forks"]), (&json!(1), &json!(1)));
    assert_eq!(slugs(&api.read("/repos/alice/project/forks")), ["bob/project"]);

    // The source goes, even from the disk; the fork does not notice.
    let id = source["id"].as_i64().expect("an id");
    assert_eq!(Api::of(&server, &alice).delete("/repos/alice/project").status, 204);
    std::fs::remove_dir_all(server.data_dir().join(format!("repos/{:02x}/{id}.git", id & 0xff))).expect("there");
    let clone = bob.git.fresh_dir();
    bob.git.ok(&clone, &["clone", "-q", &server.http_url("bob", "project"), "."]);
    bob.git.ok(&clone, &["fsck", "--full"]);
    bob.git.commit_file(&clone, "more", "more", "More");
    bob.git.ok(&clone, &["push", "-q", "origin", "HEAD"]);
    assert_eq!(api.read("/repos/bob/project").get("parent"), None, "what is gone is not told");
}

#[rstest]
fn a_fork_of_a_private_repository_is_private_and_its_source_stays_hidden(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let Setup { server, alice, .. } = setup(engine);
    let (bob, carol) = (person(&server, "bob"), person(&server, "carol"));
    let owner = Api::of(&server, &alice);
    assert_eq!(owner.put("/repos/alice/project/collaborators/bob", json!({ "permission": "pull" })).status, 204);
    assert_eq!(owner.patch("/repos/alice/project", json!({ "private": true })).status, 200);

    let (friend, stranger) = (Api::of(&server, &bob), Api::of(&server, &carol));
    assert_error(&stranger.post("/repos/alice/project/forks", json!({})), 404);
    assert_error(&Api::nobody(&server).post("/repos/alice/project/forks", json!({})), 401);
    assert_eq!(friend.post("/repos/alice/project/forks", json!({})).json()["private"], true);
    assert_error(&stranger.get("/repos/bob/project"), 404);
    assert_eq!(owner.read("/repos/alice/project")["forks_count"], 0, "alice may not read bob's private fork");
    assert_eq!(owner.read("/repos/alice/project/forks"), json!([]));

    // Once it is public, everyone sees it, but not where it came from.
    assert_eq!(friend.patch("/repos/bob/project", json!({ "private": false })).status, 200);
    let seen = stranger.read("/repos/bob/project");
    assert_eq!((&seen["fork"], seen.get("parent"), seen.get("source")), (&json!(true), None, None));
    assert!(!seen.to_string().contains("alice"), "{seen}");
    assert_eq!(owner.read("/repos/alice/project")["forks_count"], 1);
    assert_healthy(&server);
}

#[test]
fn a_fork_that_cannot_be_says_why() {
    let Setup { server, alice, .. } = setup(Engine::Sqlite);
    let bob = person(&server, "bob");
    alice.create(&server, "empty", false);
    bob.create(&server, "project", false);
    let api = Api::of(&server, &bob);
    assert!(assert_error(&api.post("/repos/alice/empty/forks", json!({})), 403).contains("the repository is empty"));
    assert_error(&api.post("/repos/alice/project/forks", json!({})), 409);
    assert_refused(&api.post("/repos/alice/project/forks", json!({ "name": "a b" })), "name", "invalid");
    assert_error(&Api::of(&server, &alice).post("/repos/alice/project/forks", json!({})), 409);
    let named = api.post("/repos/alice/project/forks", json!({ "name": "mine", "default_branch_only": true }));
    assert_eq!(named.json()["full_name"], "bob/mine");
    assert_eq!(api.read("/repos/bob/mine/branches").as_array().map(Vec::len), Some(1));
    assert_eq!(query(&server, "SELECT count(*) FROM domain_events WHERE kind = 'repo_forked'"), "1");
    assert_healthy(&server);
}

#[rstest]
fn topics_are_replaced_as_a_set_by_those_who_may(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let Setup { server, alice, .. } = setup(engine);
    let bob = person(&server, "bob");
    let (api, stranger) = (Api::of(&server, &alice), Api::of(&server, &bob));
    assert_eq!(api.read("/repos/alice/project/topics"), json!({ "names": [] }));
    let set = |names: Value| api.put("/repos/alice/project/topics", json!({ "names": names }));
    assert_eq!(set(json!(["Git", "forge"])).json(), json!({ "names": ["git", "forge"] }));
    assert_eq!(stranger.read("/repos/alice/project")["topics"], json!(["git", "forge"]));
    assert_error(&stranger.put("/repos/alice/project/topics", json!({ "names": [] })), 403);
    for bad in [json!(["a b"]), json!([""]), json!(["-a"]), json!(["a".repeat(51)])] {
        assert_refused(&set(bad), "names", "invalid");
    }
    let many: Vec<String> = (0..21).map(|number| format!("t{number}")).collect();
    assert!(assert_refused(&set(json!(many)), "names", "invalid").contains("at most 20"));
    assert_eq!(api.read("/repos/alice/project/topics"), json!({ "names": ["git", "forge"] }));
    assert_eq!(set(json!([])).json(), json!({ "names": [] }));
}

#[rstest]
fn search_finds_what_the_caller_may_read_and_counts_no_more(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let Setup { server, alice, .. } = setup(engine);
    let bob = person(&server, "bob");
    alice.create(&server, "project-secret", true);
    bob.create(&server, "about-projects", false);
    let (nobody, owner) = (Api::nobody(&server), Api::of(&server, &alice));
    let found = nobody.read("/search/repositories?q=project");
    assert_eq!((&found["total_count"], &found["incomplete_results"]), (&json!(2), &json!(false)));
    assert_eq!(slugs(&found["items"]), ["alice/project", "bob/about-projects"], "the name itself comes first");
    assert_eq!(owner.read("/search/repositories?q=project")["total_count"], 3);
    assert_eq!(
        slugs(&owner.read("/search/repositories?q=project+user:alice&sort=name")["items"]),
        ["alice/project", "alice/project-secret"]
    );
    owner.put("/repos/alice/project-secret/topics", json!({ "names": ["hidden"] }));
    assert_eq!(nobody.read("/search/repositories?q=topic:hidden")["total_count"], 0);
    assert_eq!(owner.read("/search/repositories?q=topic:hidden")["total_count"], 1);
    assert_eq!(nobody.read("/search/repositories?q=pr_ject")["total_count"], 0, "a wildcard stands for itself");
    let paged = nobody.get("/search/repositories?q=project&per_page=1");
    assert!(paged.header("link").is_some_and(|link| link.contains("q=project&per_page=1&page=2>; rel=\"next\"")));
    assert_refused(&nobody.get("/search/repositories"), "q", "missing");
    assert_refused(&nobody.get("/search/repositories?q=a+b+c+d+e+f"), "q", "invalid");
    assert_refused(&nobody.get("/search/repositories?q=a&page=400"), "page", "invalid");
}
