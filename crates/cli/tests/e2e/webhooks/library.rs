//! A receiver that was written for GitHub: `@octokit/webhooks` verifies every signature and takes every payload.

use super::{SECRET, SOON, prepared};
use crate::beside::Beside as _;
use crate::clients::installed;
use crate::support::{person, query};
use abide_testkit::{Engine, Server, eventually, http};
use rstest::rstest;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The receiver in `tests/octokit/receiver.mjs`. Killed when dropped.
struct Library {
    child: Child,
    said: BufReader<ChildStdout>,
    url: String,
}

impl Library {
    fn start() -> Self {
        let home = installed("ABIDE_TEST_OCTOKIT", "@octokit/webhooks");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/octokit/receiver.mjs");
        let mut child = Command::new("node")
            .args([script, &home])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node is installed by ./test");
        let mut stdin = child.stdin.take().expect("standard input was asked for");
        stdin.write_all(json!({ "secret": SECRET }).to_string().as_bytes()).expect("it reads its setting first");
        drop(stdin);
        let mut said = BufReader::new(child.stdout.take().expect("standard output was asked for"));
        let url = line(&mut said)["url"].as_str().expect("it says where it is").to_owned();
        Self { child, said, url }
    }

    /// The next received delivery.
    fn next(&mut self) -> Value {
        line(&mut self.said)
    }
}

fn line(said: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    said.read_line(&mut line).expect("it talks");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[rstest]
fn githubs_own_library_verifies_and_takes_every_kind(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = prepared(engine).env("ABIDE_LIFECYCLE__GRACE", "0s").start();
    let (alice, _bob) = (person(&server, "alice"), person(&server, "bob"));
    let (token, taker) = (server.add_token("alice", "repo,user,hooks"), server.add_token("bob", "repo"));
    let mut library = Library::start();
    alice.create(&server, "project", false);
    let send = |token: &str, method: &str, path: &str, body: Value| {
        let path = format!("/api/v3{path}");
        let answer = http::Request::new(method, &path).token(Some(token)).json(&body).send(server.http_addr());
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text());
    };
    let api = |method: &str, path: &str, body: Value| send(&token, method, path, body);
    let config = json!({ "url": library.url, "content_type": "json", "secret": SECRET });
    api("POST", "/repos/alice/project/hooks", json!({ "events": ["*"], "config": config }));
    let mut took = |expected: &[&str]| {
        let mut last = Value::Null;
        for name in expected {
            last = library.next();
            assert_eq!(last["name"], **name, "{last}");
        }
        last
    };
    took(&["ping"]);
    let tree = alice.git.init_work_tree();
    alice.git.commit_file(&tree, "a", "one", "Fix it\n\nat length");
    alice.git.ok(&tree, &["push", "--quiet", &server.http_url("alice", "project"), "main", "main:refs/tags/v1"]);
    took(&["push", "push"]);
    api("PUT", "/user/starred/alice/project", json!({}));
    took(&["star.created", "watch.started"]);
    api("DELETE", "/user/starred/alice/project", json!({}));
    took(&["star.deleted"]);
    let repo = "/repos/alice/project";
    api("POST", &format!("{repo}/labels"), json!({ "name": "bug", "color": "d73a4a" }));
    api("POST", &format!("{repo}/milestones"), json!({ "title": "v1" }));
    api("POST", &format!("{repo}/issues"), json!({ "title": "It crashes" }));
    took(&["issues.opened"]);
    api("PATCH", &format!("{repo}/issues/1"), json!({ "title": "It crashes a lot" }));
    took(&["issues.edited"]);
    api("POST", &format!("{repo}/issues/1/labels"), json!({ "labels": ["bug"] }));
    took(&["issues.labeled"]);
    api("POST", &format!("{repo}/issues/1/assignees"), json!({ "assignees": ["alice"] }));
    took(&["issues.assigned"]);
    api("PATCH", &format!("{repo}/issues/1"), json!({ "milestone": 1 }));
    took(&["issues.milestoned"]);
    api("POST", &format!("{repo}/issues/1/comments"), json!({ "body": "Really?" }));
    took(&["issue_comment.created"]);
    let comment = query(&server, "SELECT id FROM comments");
    api("PATCH", &format!("{repo}/issues/comments/{comment}"), json!({ "body": "Really!" }));
    took(&["issue_comment.edited"]);
    api("DELETE", &format!("{repo}/issues/comments/{comment}"), json!({}));
    took(&["issue_comment.deleted"]);
    api("PATCH", &format!("{repo}/issues/1"), json!({ "state": "closed" }));
    took(&["issues.closed"]);
    api("PATCH", &format!("{repo}/issues/1"), json!({ "state": "open" }));
    took(&["issues.reopened"]);
    api("PUT", &format!("{repo}/collaborators/bob"), json!({ "permission": "push" }));
    took(&["member.added"]);
    api("PATCH", repo, json!({ "name": "renamed" }));
    took(&["repository.renamed"]);
    let repo = "/repos/alice/renamed";
    api("PATCH", repo, json!({ "private": true }));
    took(&["repository.privatized"]);
    api("PATCH", repo, json!({ "private": false }));
    took(&["repository.publicized"]);
    api("PATCH", repo, json!({ "archived": true }));
    took(&["repository.archived"]);
    api("PATCH", repo, json!({ "archived": false }));
    took(&["repository.unarchived"]);
    api("POST", &format!("{repo}/transfer"), json!({ "new_owner": "bob" }));
    let offer = query(&server, "SELECT id FROM repo_transfers");
    send(&taker, "POST", &format!("/repository_transfers/{offer}/accept"), json!({}));
    let taken = took(&["repository.transferred"]);
    assert_eq!(taken["repository"], "bob/renamed");
    assert_eq!(taken["changes"]["owner"]["from"]["user"]["login"], "alice", "{taken}");
    send(&taker, "DELETE", "/repos/bob/renamed", json!({}));
    took(&["repository.deleted"]);
    purge(&server);
    took(&["repository.purged"]);
    eventually(SOON, || query(&server, "SELECT count(*) FROM webhook_deliveries WHERE state <> 'ok'") == "0");
}

fn purge(server: &Server) {
    server.cli_ok(&["jobs", "run", "lifecycle:sweep"]);
}
