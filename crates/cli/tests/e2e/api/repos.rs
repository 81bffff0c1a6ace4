//! Creating, changing and deleting repositories.

use super::{Api, assert_error, assert_refused, assert_taken};
use crate::support::{assert_healthy, builder, person, query, server};
use abide_testkit::{Engine, GitClient};
use rstest::rstest;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

#[rstest]
fn a_name_is_used_once_and_in_one_spelling(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let api = Api::of(&server, &alice);
    alice.create(&server, "project", false);

    for name in ["project", "Project", "PROJECT"] {
        let answer = api.post("/user/repos", json!({ "name": name }));
        assert_taken(&answer);
    }
    bob.create(&server, "project", false);
    assert_eq!(api.read("/user/repos").as_array().map(Vec::len), Some(1));
    assert_healthy(&server);
}

#[test]
fn a_bad_name_is_refused_with_its_rule() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    for (name, said) in [
        ("", "1 to 100 characters"),
        (&"a".repeat(101), "1 to 100 characters"),
        ("a b", "only letters"),
        ("a/b", "only letters"),
        ("a\0b", "only letters"),
        ("..", "start with a letter or digit"),
        ("a..b", "two dots"),
        ("a.git", ".git"),
        ("settings", "reserved"),
    ] {
        let rule = assert_refused(&api.post("/user/repos", json!({ "name": name })), "name", "invalid");
        assert!(rule.contains(said), "{name:?}: {rule}");
    }
    assert_eq!(api.post("/user/repos", json!({ "name": "a".repeat(100) })).status, 201);
}

#[test]
fn an_account_owns_no_more_than_it_may() {
    let server = builder(Engine::Sqlite).env("ABIDE_REPOS__PER_USER", "2").start();
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    alice.create(&server, "a", false);
    alice.create(&server, "b", true);
    let message = assert_error(&api.post("/user/repos", json!({ "name": "c" })), 403);
    assert!(message.contains("2 repositories") && message.contains("delete one"), "{message}");
    assert_eq!(api.delete("/repos/alice/a").status, 204);
    alice.create(&server, "c", false);
}

#[rstest]
fn descriptions_keep_to_their_rule(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    alice.create(&server, "project", false);
    let set = |value: Value| api.patch("/repos/alice/project", json!({ "description": value }));

    let longest = "ü".repeat(350);
    assert_eq!(set(json!(longest)).json()["description"], longest);
    for bad in ["x".repeat(351), "two\nlines".to_owned(), "nul\0".to_owned()] {
        let rule = assert_refused(&set(json!(bad)), "description", "invalid");
        assert!(rule.contains("350 characters and no control characters"), "{rule}");
    }
    assert_eq!(api.read("/repos/alice/project")["description"], longest, "a refused edit changes nothing");
    assert_eq!(api.patch("/repos/alice/project", json!({})).json()["description"], longest, "left out: unchanged");
    assert_eq!(set(json!(null)).json()["description"], Value::Null, "null empties it");
    assert_eq!(set(json!("  again ")).json()["description"], "again");
    assert_eq!(set(json!("")).json()["description"], Value::Null);
}

#[rstest]
fn setting_what_already_holds_leaves_no_trace(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    alice.create(&server, "project", false);
    let traces = || query(&server, "SELECT (SELECT count(*) FROM audit_log), (SELECT count(*) FROM domain_events)");

    let before = traces();
    let same = json!({
        "name": "Project", "description": "", "default_branch": "main",
        "private": false, "visibility": "public", "archived": false,
    });
    assert_eq!(api.patch("/repos/alice/project", same).status, 200);
    assert_eq!(traces(), before);
    assert_eq!(api.patch("/repos/alice/project", json!({ "description": "other" })).status, 200);
    assert_ne!(traces(), before);
}

#[rstest]
fn visibility_is_changed_under_both_of_its_names(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    alice.create(&server, "project", false);
    let nobody = Api::nobody(&server);

    for (change, private) in [
        (json!({ "private": true }), true),
        (json!({ "visibility": "public" }), false),
        (json!({ "visibility": "private", "private": false }), true),
        (json!({ "private": false }), false),
    ] {
        let edited = api.patch("/repos/alice/project", change.clone());
        assert_eq!(edited.json()["private"], private, "{change}");
        assert_eq!(nobody.get("/repos/alice/project").status, if private { 404 } else { 200 }, "{change}");
    }
    let rule = assert_refused(
        &api.patch("/repos/alice/project", json!({ "visibility": "internal" })),
        "visibility",
        "invalid",
    );
    assert!(rule.contains("public") && rule.contains("private"), "{rule}");
}

#[rstest]
fn the_default_branch_is_one_that_exists_and_head_follows(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    alice.create(&server, "project", false);
    let path = server.cli_ok(&["repo", "path", "alice/project"]);
    let head = || fs::read_to_string(Path::new(path.trim()).join("HEAD")).expect("a repository has a HEAD");
    let set = |branch: &str| api.patch("/repos/alice/project", json!({ "default_branch": branch }));

    assert_eq!(set("early").status, 200, "in an empty repository any branch may be chosen");
    assert_eq!(head(), "ref: refs/heads/early\n");

    let dir = alice.git.init_work_tree();
    alice.git.commit_file(&dir, "file.txt", "content\n", "Begin");
    alice.git.ok(
        &dir,
        &["push", "--quiet", &server.http_url("alice", "project"), "main", "main:feature/x", "main:refs/tags/v1"],
    );
    for absent in ["early", "absent", "v1", "refs/heads/main"] {
        let rule = assert_refused(&set(absent), "default_branch", "invalid");
        assert!(rule.contains("push it first"), "{absent}: {rule}");
    }
    for invalid in ["", "-x", "a..b", "a b", "x.lock", "@{", "a\\b"] {
        assert_refused(&set(invalid), "default_branch", "invalid");
    }
    assert_eq!(head(), "ref: refs/heads/main\n", "the first push chose it, and a refused edit changes nothing");

    assert_eq!(set("feature/x").json()["default_branch"], "feature/x");
    assert_eq!(head(), "ref: refs/heads/feature/x\n");
    let git = GitClient::new();
    let shown = git.ok(&git.fresh_dir(), &["ls-remote", "--symref", &server.http_url("alice", "project"), "HEAD"]);
    assert!(shown.starts_with("ref: refs/heads/feature/x\tHEAD"), "{shown}");
    assert_healthy(&server);
}

#[rstest]
fn a_deleted_repository_is_gone_for_all_and_its_name_free(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let first = alice.create(&server, "project", false)["id"].to_string();
    let (owner, stranger, nobody) = (Api::of(&server, &alice), Api::of(&server, &bob), Api::nobody(&server));

    assert_error(&stranger.delete("/repos/alice/project"), 403);
    assert_eq!(owner.delete("/repos/alice/project").status, 204);
    for who in [&owner, &stranger, &nobody] {
        assert_error(&who.get("/repos/alice/project"), 404);
        assert_error(&who.get(&format!("/repositories/{first}")), 404);
        assert_eq!(who.read("/users/alice/repos"), json!([]));
    }
    assert_eq!(owner.read("/user/repos"), json!([]));
    assert_error(&owner.delete("/repos/alice/project"), 404);
    assert_error(&owner.patch("/repos/alice/project", json!({ "description": "x" })), 404);

    let second = alice.create(&server, "project", false)["id"].to_string();
    assert_ne!(first, second);
    assert_eq!(owner.read("/repos/alice/project")["id"].to_string(), second);

    let listed: Value = serde_json::from_str(&server.cli_ok(&["repo", "list", "--json"])).expect("JSON");
    let states: Vec<_> =
        listed.as_array().into_iter().flatten().map(|repo| (repo["id"].to_string(), repo["state"].clone())).collect();
    assert_eq!(states, [(first.clone(), json!("deleted")), (second, json!("active"))]);
    let shown: Value = serde_json::from_str(&server.cli_ok(&["repo", "show", &first, "--json"])).expect("JSON");
    assert!(shown["deleted_at"].is_string(), "{shown}");
    assert_healthy(&server);
}
