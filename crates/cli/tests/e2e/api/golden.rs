//! Bytes of answers in the shapes that the API shares with webhooks, against the files in `tests/golden/rest`.
//!
//! `ABIDE_WRITE_SNAPSHOTS=1 ./test golden_answers` rewrites the files.

use super::Api;
use crate::beside::Beside as _;
use crate::support::{builder, person};
use abide_testkit::{Engine, Server};
use rstest::rstest;
use serde_json::{Value, json};
use std::path::Path;
use std::{env, fs};

/// The answer of a request as text, with fixed words for the addresses, times and sizes on disk of this run.
fn stable(server: &Server, text: &str) -> String {
    let text = text.replace(&server.url(), "http://server").replace(&server.ssh_addr().to_string(), "ssh-server");
    let is_time = |part: &str| part.len() >= 20 && part.ends_with('Z') && part.as_bytes()[10] == b'T';
    let text = text.split('"').map(|part| if is_time(part) { "TIME" } else { part }).collect::<Vec<_>>().join("\"");
    // A maintenance job measures the size at some later time.
    let mut parts = text.split("\"size\":");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|it: char| it.is_ascii_digit());
        text + if rest.len() < part.len() { "\"size\":0" } else { "\"size\":" } + rest
    })
}

#[track_caller]
fn assert_golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/rest").join(format!("{name}.json"));
    let found = format!("{found}\n");
    if env::var_os("ABIDE_WRITE_SNAPSHOTS").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(&path, found).expect("writable");
        return;
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, wanted, "{name} differs; ABIDE_WRITE_SNAPSHOTS=1 rewrites it");
}

#[rstest]
fn golden_answers_have_the_same_bytes(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = builder(engine).start();
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "project", false);
    alice.create(&server, "bare", true);
    let tree = alice.git.init_work_tree();
    alice.git.commit_file(&tree, "README.md", "# Project\n", "Begin");
    alice.git.ok(&tree, &["push", "-q", &server.http_url("alice", "project"), "main"]);
    let token = server.add_token("alice", "repo,user,hooks,notifications,keys");
    let (api, by_bob) = (Api::with(&server, &token), Api::of(&server, &bob));
    let must = |method: &str, path: &str, body: Value| {
        let answer = api.send(method, path, &body);
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text());
    };
    must("PATCH", "/repos/alice/project", json!({ "description": "A \"project\"" }));
    must("PUT", "/repos/alice/project/topics", json!({ "names": ["rust", "forge"] }));
    must("PUT", "/repos/alice/project/collaborators/bob", json!({ "permission": "maintain" }));
    must("PUT", "/user/starred/alice/project", json!({}));
    must("PUT", "/repos/alice/project/subscription", json!({ "subscribed": true }));
    let label = json!({ "name": "a bug/odd?", "color": "d73a4a", "description": "Something is wrong" });
    must("POST", "/repos/alice/project/labels", label);
    must("POST", "/repos/alice/project/labels", json!({ "name": "Käse & Brot", "color": "ffffff" }));
    let milestone = json!({ "title": "v1", "description": "The first", "due_on": "2030-01-01T00:00:00Z" });
    must("POST", "/repos/alice/project/milestones", milestone);
    must("POST", "/repos/alice/project/milestones", json!({ "title": "v2" }));
    must("PATCH", "/repos/alice/project/milestones/2", json!({ "state": "closed" }));
    let issue = json!({
        "title": "It crashes", "body": "Badly.", "labels": ["a bug/odd?", "Käse & Brot"], "assignees": ["alice", "bob"],
        "milestone": 1,
    });
    must("POST", "/repos/alice/project/issues", issue);
    must("POST", "/repos/alice/project/issues", json!({ "title": "Plain" }));
    must("PATCH", "/repos/alice/project/issues/2", json!({ "state": "closed", "state_reason": "not_planned" }));
    must("POST", "/repos/alice/project/issues/1/comments", json!({ "body": "Really?" }));
    let config = json!({ "url": "https://example.org/hook", "content_type": "json", "secret": "It's a secret" });
    let hook = json!({ "config": config, "events": ["push", "star"], "active": false });
    must("POST", "/repos/alice/project/hooks", hook);
    let open = json!({ "config": { "url": "https://example.org/other" }, "active": false });
    must("POST", "/repos/alice/project/hooks", open);
    must("POST", "/repos/alice/bare/transfer", json!({ "new_owner": "bob" }));
    let fork = by_bob.post("/repos/alice/project/forks", json!({}));
    assert_eq!(fork.status, 202, "{}", fork.text());

    for (name, api, path) in [
        ("repository", &api, "/repos/alice/project"),
        ("repository-private", &api, "/repos/alice/bare"),
        ("repository-of-maintainer", &by_bob, "/repos/alice/project"),
        ("repository-fork", &by_bob, "/repos/bob/project"),
        ("repositories", &api, "/user/repos"),
        ("repository-search", &api, "/search/repositories?q=project+user:alice"),
        ("collaborators", &api, "/repos/alice/project/collaborators"),
        ("permission", &api, "/repos/alice/project/collaborators/bob/permission"),
        ("user", &api, "/users/bob"),
        ("own-user", &api, "/user"),
        ("stargazers", &api, "/repos/alice/project/stargazers"),
        ("subscription", &api, "/repos/alice/project/subscription"),
        ("labels", &api, "/repos/alice/project/labels"),
        ("milestones", &api, "/repos/alice/project/milestones?state=all"),
        ("issue", &api, "/repos/alice/project/issues/1"),
        ("issue-plain", &api, "/repos/alice/project/issues/2"),
        ("own-issues", &api, "/issues?filter=all&state=all"),
        ("issue-search", &api, "/search/issues?q=crashes"),
        ("assignees", &api, "/repos/alice/project/assignees"),
        ("comments", &api, "/repos/alice/project/issues/1/comments"),
        ("timeline", &api, "/repos/alice/project/issues/1/timeline"),
        ("hooks", &api, "/repos/alice/project/hooks"),
        ("hook-config", &api, "/repos/alice/project/hooks/1/config"),
        ("transfers", &by_bob, "/user/repository_transfers"),
    ] {
        let answer = api.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_golden(name, &stable(&server, &answer.text()));
    }
    must("DELETE", "/repos/alice/project", json!({}));
    let answer = api.get("/user/deleted_repos");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_golden("deleted-repositories", &stable(&server, &answer.text()));
}
