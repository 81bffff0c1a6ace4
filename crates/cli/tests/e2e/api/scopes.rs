//! Scopes of tokens. Every route of the router is tried with every scope.

use super::{Api, assert_error, with_an_end};
use crate::beside::Beside as _;
use crate::support::{admin, person, query, server};
use abide_core::scope::{Scope, Scopes};
use abide_testkit::{Engine, GitClient, Server, eventually};
use abide_web_api::{ApiRoute, api_routes};
use rstest::rstest;
use serde_json::json;
use std::fs;
use std::time::Duration;

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
            match route.access.scopes().into_iter().find(|needed| !scope.covers(*needed)) {
                Some(needed) => {
                    let message = assert_error(&response, 403);
                    assert!(message.contains(&format!("the {needed} scope;")), "{scope} at {route:?}: {message}");
                    refused += 1;
                }
                None => assert!(![401, 403].contains(&response.status), "{scope} at {route:?}: {}", response.text()),
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

/// alice's private repository with everything in it that the API shows.
struct Private {
    server: Server,
    /// Values of the variable path segments, the longest first.
    segments: Vec<(String, String)>,
    key: String,
}

/// Words that only someone who reads the private repository knows.
const PRIVATE: [&str; 2] = ["hush", "quince"];

fn private(engine: Engine) -> Private {
    let server = server(engine);
    let (alice, bob) = (admin(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "hush", true);
    let tree = alice.git.init_work_tree();
    let sha = alice.git.commit_file(&tree, "quince.txt", "quince\n", "quince");
    alice.git.ok(&tree, &["push", "-q", &server.http_url("alice", "hush"), "main"]);
    let api = Api::of(&server, &alice);
    api.put("/repos/alice/hush/collaborators/bob", json!({ "permission": "push" }));
    let reported =
        Api::of(&server, &bob).post("/repos/alice/hush/issues", json!({ "title": "quince", "body": "@alice" }));
    assert_eq!(reported.status, 201, "{}", reported.text());
    let said = api.post("/repos/alice/hush/issues/1/comments", json!({ "body": "quince jelly" })).json();
    let key = fs::read_to_string(GitClient::new().with_ssh_key().public_key()).expect("the key was just made");
    let key_id = api.post("/user/keys", json!({ "title": "laptop", "key": key })).json()["id"].clone();
    let hooks = Api::with(&server, &server.add_token("alice", "hooks,repo:read"));
    let config = json!({ "url": "https://hook.example.org/", "content_type": "json" });
    let hook = hooks.post("/repos/alice/hush/hooks", json!({ "config": config, "events": ["*"] })).json()["id"].clone();
    eventually(Duration::from_secs(60), || query(&server, "SELECT count(*) FROM notifications") != "0");
    let one = |sql: &str| query(&server, sql).lines().next().unwrap_or_default().to_owned();
    let ids = [
        ("/user/keys/{id}", format!("/user/keys/{key_id}")),
        ("/repositories/{id}", format!("/repositories/{}", one("SELECT id FROM repos"))),
        ("/comments/{id}", format!("/comments/{}", said["id"])),
        ("/threads/{id}", format!("/threads/{}", one("SELECT thread_id FROM notifications WHERE user_id = 1"))),
        ("{hook}", hook.to_string()),
        ("{delivery}", one("SELECT id FROM webhook_deliveries ORDER BY id")),
        ("{owner}", "alice".into()),
        ("{user}", "alice".into()),
        ("{target}", "bob".into()),
        ("{repo}", "hush".into()),
        ("{number}", "1".into()),
        ("{name}", "bug".into()),
        ("{sha}", sha.clone()),
        ("{*sha}", sha),
        ("{*path}", "quince.txt".into()),
        ("{*branch}", "main".into()),
        ("/commits/{*ref}", "/commits/main".into()),
        ("{*ref}", "heads/main".into()),
        ("{*basehead}", "main...main".into()),
        ("{*dir}", "src".into()),
        ("{id}", "1".into()),
        ("{npub}", "absent".into()),
        ("{identifier}", "absent".into()),
    ];
    let segments = ids.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Private { server, segments, key: key.split(' ').nth(1).expect("a key").to_owned() }
}

impl Private {
    fn path(&self, route: &ApiRoute) -> String {
        let path = self.segments.iter().fold(route.path.to_owned(), |path, (name, value)| path.replace(name, value));
        assert!(!path.contains('{'), "{path}: say here what stands for the new segment");
        with_an_end(path)
    }
}

#[rstest]
fn each_scope_reaches_what_it_says_and_nothing_else(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = private(engine);
    let all: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    let mut sets: Vec<String> = all.iter().map(|scope| (*scope).to_owned()).collect();
    sets.push("user,notifications,hooks".into());
    let (mut hidden, mut shown) = (0, 0);
    for words in sets {
        let scopes = Scopes::parse(&words).expect("scopes");
        let api = Api::with(&setup.server, &setup.server.add_token("alice", &words));
        for route in api_routes().into_iter().filter(|route| route.method == "GET") {
            let path = setup.path(&route);
            let response = api.get(&path);
            let text = response.text();
            let allowed = route.access.scopes().into_iter().all(|needed| scopes.allow(needed));
            assert_eq!(response.status == 403, !allowed, "{words} at {path}: {} {text}", response.status);
            if !scopes.allow(Scope::KeysRead) {
                assert!(!text.contains(&setup.key), "{words} reads a key at {path}");
            }
            // The scope `admin` includes the site's logs.
            let knows = scopes.allow(Scope::RepoRead) || scopes.allow(Scope::Admin) && path.starts_with("/admin/");
            for word in PRIVATE {
                assert!(knows || !text.contains(word), "{words} learns {word} at {path}: {text}");
            }
            let about_it = path.contains("/alice/hush") || path.contains("/threads/");
            if allowed && !knows && about_it {
                assert_eq!(response.status, 404, "{words} at {path}: {text}");
                hidden += 1;
            }
            shown += usize::from(allowed && knows && PRIVATE.iter().any(|word| text.contains(word)));
        }
    }
    assert!(hidden > 10 && shown > 40, "{hidden} hidden, {shown} shown");
}

#[rstest]
fn a_token_without_a_scope_of_repositories_changes_nothing_private(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = private(engine);
    let token = setup.server.add_token("alice", "user,hooks,notifications");
    let api = Api::with(&setup.server, &token);
    let key = fs::read_to_string(GitClient::new().with_ssh_key().public_key()).expect("the key was just made");
    let message = assert_error(&api.post("/user/keys", json!({ "title": "thief", "key": key })), 403);
    assert!(message.contains("the keys scope;"), "{message}");
    let config = json!({ "url": "https://thief.example.org/", "content_type": "json" });
    assert_error(&api.post("/repos/alice/hush/hooks", json!({ "config": config, "events": ["*"] })), 404);
    assert_eq!(api.read("/notifications?all=true"), json!([]));
    assert_eq!(api.put("/notifications", json!({})).status, 205);
    let unread = "SELECT count(*) FROM notifications WHERE user_id = 1 AND state = 'unread'";
    assert_ne!(query(&setup.server, unread), "0", "what it does not see it does not mark");
    let reader = Api::with(&setup.server, &setup.server.add_token("alice", "notifications,repo:read"));
    assert_eq!(reader.put("/notifications", json!({})).status, 205);
    assert_eq!(query(&setup.server, unread), "0");
}
