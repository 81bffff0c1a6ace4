//! What a token is good for. Every route of the router is tried with every scope there is.

use super::{Api, assert_error, with_an_end};
use crate::beside::Beside as _;
use crate::support::server;
use abide_core::scope::Scope;
use abide_testkit::Engine;
use abide_web::{Access, api_routes};
use serde_json::json;

#[test]
fn a_token_without_the_scope_is_told_which_one_it_lacks() {
    let server = server(Engine::Sqlite);
    server.add_user("alice");
    let tokens: Vec<_> = Scope::ALL.iter().map(|scope| (*scope, server.add_token("alice", scope.as_str()))).collect();

    let mut refused = 0;
    for route in api_routes() {
        // Nobody of these exists, so a token that passes changes nothing.
        let path = route.path.replace("{owner}", "absent").replace("{user}", "absent").replace("{repo}", "absent");
        let path = path.replace("{id}", "987654321").replace("{number}", "987654321");
        let path = path.replace("{sha}", "absent").replace("{name}", "absent").replace("{target}", "absent");
        let path = path.replace("{npub}", "absent").replace("{identifier}", "absent");
        let path = path.replace("{hook}", "987654321").replace("{delivery}", "987654321");
        let path = ["path", "dir", "branch", "ref", "sha", "basehead"]
            .iter()
            .fold(path, |path, name| path.replace(&format!("{{*{name}}}"), "absent"));
        assert!(!path.contains('{'), "{path}: say here what stands for the new segment");
        let path = with_an_end(path);
        for (scope, token) in &tokens {
            let response = Api::with(&server, token).send(route.method, &path, &json!({}));
            match route.access {
                Access::Open(needed) | Access::Logged(needed) if !scope.covers(needed) => {
                    let message = assert_error(&response, 403);
                    assert!(message.contains(&format!("the scope {needed};")), "{scope} at {route:?}: {message}");
                    refused += 1;
                }
                _ => assert!(![401, 403].contains(&response.status), "{scope} at {route:?}: {}", response.text()),
            }
            assert!(response.status < 500, "{scope} at {route:?}: {}", response.text());
        }
    }
    assert!(refused > 50, "only {refused} were refused");
}

#[test]
fn a_token_for_reading_changes_nothing() {
    let server = server(Engine::Sqlite);
    let alice = crate::support::person(&server, "alice");
    alice.create(&server, "project", true);
    server.add_user("bob");
    let token = server.add_token("alice", "repo:read,user:read,notifications,hooks,admin");
    let api = Api::with(&server, &token);

    assert_eq!(api.read("/repos/alice/project")["private"], true, "it reads what its owner may read");
    assert_error(&api.post("/user/repos", json!({ "name": "other" })), 403);
    assert_error(&api.patch("/repos/alice/project", json!({ "description": "changed" })), 403);
    assert_error(&api.put("/repos/alice/project/collaborators/bob", json!({})), 403);
    assert_error(&api.delete("/repos/alice/project/collaborators/alice"), 403);
    assert_error(&api.delete("/repos/alice/project"), 403);
    assert_error(&api.post("/repos/alice/project/transfer", json!({ "new_owner": "bob" })), 403);
    assert_eq!(api.read("/repos/alice/project/redirects"), json!([]), "its owner's settings are read too");
    assert_error(&api.post("/user/keys", json!({ "key": "x" })), 403);
    assert_eq!(api.read("/repos/alice/project")["description"], json!(null));
    assert_eq!(api.read("/user/repos").as_array().map(Vec::len), Some(1));
}
