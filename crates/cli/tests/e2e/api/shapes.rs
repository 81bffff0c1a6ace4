//! Fields of responses and their types: GitHub's clients read these fields.

use super::Api;
use crate::support::{person, server};
use abide_testkit::{Engine, GitClient};
use rstest::rstest;
use serde_json::{Value, json};
use std::fs;

/// Fails unless every field is there with its type; `text?` may also be null.
#[track_caller]
fn assert_fields(value: &Value, fields: &[(&str, &str)]) {
    for (name, wanted) in fields {
        let field = value.get(name).unwrap_or_else(|| panic!("{name} is missing: {value}"));
        let kind = match field {
            Value::Null => "null",
            Value::Bool(_) => "truth",
            Value::Number(_) => "number",
            Value::String(text) if is_time(text) => "time",
            Value::String(_) => "text",
            Value::Array(_) => "list",
            Value::Object(_) => "object",
        };
        let fits = kind == wanted.trim_end_matches('?') || (kind == "null" && wanted.ends_with('?'));
        assert!(fits, "{name} should be {wanted}, but is {field}");
    }
}

/// `2026-01-01T00:00:00Z`, perhaps with a fraction.
fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T'
}

const USER: &[(&str, &str)] = &[
    ("login", "text"),
    ("id", "number"),
    ("node_id", "text"),
    ("avatar_url", "text"),
    ("gravatar_id", "text"),
    ("url", "text"),
    ("html_url", "text"),
    ("repos_url", "text"),
    ("type", "text"),
    ("site_admin", "truth"),
];

const FULL_USER: &[(&str, &str)] = &[
    ("name", "text?"),
    ("company", "text?"),
    ("blog", "text?"),
    ("location", "text?"),
    ("email", "text?"),
    ("bio", "text?"),
    ("public_repos", "number"),
    ("followers", "number"),
    ("following", "number"),
    ("created_at", "time"),
    ("updated_at", "time"),
];

const REPO: &[(&str, &str)] = &[
    ("id", "number"),
    ("node_id", "text"),
    ("name", "text"),
    ("full_name", "text"),
    ("private", "truth"),
    ("visibility", "text"),
    ("owner", "object"),
    ("description", "text?"),
    ("fork", "truth"),
    ("size", "number"),
    ("default_branch", "text"),
    ("archived", "truth"),
    ("disabled", "truth"),
    ("pushed_at", "time?"),
    ("created_at", "time"),
    ("updated_at", "time"),
    ("permissions", "object"),
    ("html_url", "text"),
    ("url", "text"),
    ("clone_url", "text"),
    ("git_url", "text"),
    ("ssh_url", "text"),
    ("stargazers_count", "number"),
    ("watchers_count", "number"),
    ("forks_count", "number"),
    ("open_issues_count", "number"),
    ("topics", "list"),
    ("homepage", "text?"),
    ("language", "text?"),
    ("license", "object?"),
    ("has_issues", "truth"),
    ("has_wiki", "truth"),
    ("is_template", "truth"),
];

#[rstest]
fn a_repository_is_the_same_wherever_it_is_shown(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);

    let body = json!({ "name": "Project", "description": "  What it is  ", "default_branch": "trunk" });
    let created = api.post("/user/repos", body);
    assert_eq!(created.status, 201, "{}", created.text());
    let created = created.json();

    assert_fields(&created, REPO);
    assert_fields(&created["owner"], USER);
    assert_eq!(created["full_name"], "alice/project", "names are folded to lower case");
    assert_eq!(created["description"], "What it is");
    assert_eq!(created["default_branch"], "trunk");
    assert_eq!(created["url"], format!("{}/api/v3/repos/alice/project", server.url()));
    assert_eq!(created["clone_url"], server.http_url("alice", "project"));
    assert_eq!(created["ssh_url"], server.ssh_url("alice", "project"));
    let everything = json!({ "admin": true, "maintain": true, "push": true, "triage": true, "pull": true });
    assert_eq!(created["permissions"], everything);

    assert_eq!(api.read("/repos/alice/project"), created);
    assert_eq!(api.read("/repos/Alice/PROJECT"), created);
    assert_eq!(api.read(&format!("/repositories/{}", created["id"])), created);
    assert_eq!(api.read("/user/repos"), json!([created]));
    assert_eq!(api.read("/users/alice/repos"), json!([created]));

    let seen = Api::nobody(&server).read("/repos/alice/project");
    let reading = json!({ "admin": false, "maintain": false, "push": false, "triage": false, "pull": true });
    assert_eq!(seen["permissions"], reading);
}

#[test]
fn a_user_sees_their_own_address_and_nobody_elses() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    alice.create(&server, "public", false);
    alice.create(&server, "private", true);

    let own = Api::of(&server, &alice).read("/user");
    let seen = Api::nobody(&server).read("/users/alice");
    for user in [&own, &seen] {
        assert_fields(user, USER);
        assert_fields(user, FULL_USER);
        assert_eq!(user["public_repos"], 1, "private ones are not counted");
    }
    assert_eq!(own["email"], "alice@example.org");
    assert_eq!(seen["email"], Value::Null);
    assert_eq!(own["id"], seen["id"]);
}

#[test]
fn a_key_comes_back_without_its_comment() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    let line = fs::read_to_string(GitClient::new().with_ssh_key().public_key()).expect("the key was just made");

    let key = api.post("/user/keys", json!({ "key": line })).json();
    assert_fields(
        &key,
        &[
            ("id", "number"),
            ("key", "text"),
            ("title", "text"),
            ("url", "text"),
            ("created_at", "time"),
            ("verified", "truth"),
            ("read_only", "truth"),
        ],
    );
    assert_eq!(key["title"], "test", "the comment is the title if none is given");
    assert_eq!(key["key"].as_str().map(|key| key.split(' ').count()), Some(2), "{key}");
    assert_eq!(api.read(&format!("/user/keys/{}", key["id"])), key);
    assert_eq!(api.read("/user/keys"), json!([key]));
}

#[test]
fn the_server_says_what_it_is() {
    let server = server(Engine::Sqlite);
    let nobody = Api::nobody(&server);

    let meta = nobody.read("/meta");
    assert_fields(&meta, &[("installed_version", "text"), ("verifiable_password_authentication", "truth")]);
    assert_eq!(meta["software"], "abide");
    assert_eq!(meta["ssh_url"], format!("ssh://git@{}", server.ssh_addr()));

    for path in ["", "/"] {
        let root = nobody.read(path);
        assert_eq!(root["current_user_url"], format!("{}/api/v3/user", server.url()));
    }
}
