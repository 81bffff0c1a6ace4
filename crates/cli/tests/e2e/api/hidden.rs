//! A hidden object looks exactly like a missing one: status, headers and body.

use super::Api;
use crate::beside::Beside as _;
use crate::support::{Person, person, server};
use abide_testkit::http::Response;
use abide_testkit::{Engine, Server};
use rstest::rstest;
use serde_json::{Value, json};

/// An answer without what differs between any two answers.
pub(super) fn comparable(mut response: Response) -> Response {
    let differs = ["date", "x-request-id", "x-ratelimit-remaining", "x-ratelimit-used", "x-ratelimit-reset"];
    response.headers.retain(|(name, _)| !differs.contains(&name.to_lowercase().as_str()));
    response
}

/// Addresses of repositories that a stranger cannot tell apart, after something that really is not there.
fn absent_ones(server: &Server, alice: &Person) -> Vec<(String, String)> {
    let private = alice.create(server, "private", true)["id"].to_string();
    let deleted = alice.create(server, "gone", false)["id"].to_string();
    let deleted_private = alice.create(server, "gone-private", true)["id"].to_string();
    for name in ["gone", "gone-private"] {
        assert_eq!(Api::of(server, alice).delete(&format!("/repos/alice/{name}")).status, 204);
    }
    let never = [("alice/never", "987654321"), ("nobody/never", "0"), ("alice/-rf", "-1")];
    let never = never.map(|(slug, id)| (slug.to_owned(), id.to_owned()));
    let rest = [("private", private), ("gone", deleted), ("gone-private", deleted_private)];
    let rest = rest.map(|(name, id)| (format!("alice/{name}"), id));
    let odd = ["..%2f..", "private%00", "private%20", ".git", "private.git", "%ff", "settings"];
    let odd = odd.map(|name| (format!("alice/{name}"), "1e3".to_owned()));
    never.into_iter().chain(rest).chain(odd).collect()
}

#[rstest]
fn private_deleted_and_never_made_are_one_answer(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let absent = absent_ones(&server, &alice);
    let (nobody, stranger) = (Api::nobody(&server), Api::of(&server, &bob));

    let by_slug: &[(&str, &str, Value, u16, u16)] = &[
        ("GET", "", Value::Null, 404, 404),
        ("HEAD", "", Value::Null, 404, 404),
        ("PATCH", "", json!({ "description": "x" }), 401, 404),
        ("PATCH", "", json!({ "default_branch": "absent", "private": false, "name": "other" }), 401, 404),
        ("DELETE", "", Value::Null, 401, 404),
        ("GET", "/contents", Value::Null, 404, 404),
        ("GET", "/contents/README.md", Value::Null, 404, 404),
        ("GET", "/readme", Value::Null, 404, 404),
        ("GET", "/branches", Value::Null, 404, 404),
        ("GET", "/branches/main", Value::Null, 404, 404),
        ("GET", "/tags", Value::Null, 404, 404),
        ("GET", "/commits", Value::Null, 404, 404),
        ("GET", "/commits/main", Value::Null, 404, 404),
        ("GET", "/compare/main...main", Value::Null, 404, 404),
        ("GET", "/git/refs", Value::Null, 404, 404),
        ("GET", "/git/ref/heads/main", Value::Null, 404, 404),
        ("GET", "/git/trees/main", Value::Null, 404, 404),
        ("GET", "/git/blobs/1111111111111111111111111111111111111111", Value::Null, 404, 404),
        ("GET", "/forks", Value::Null, 404, 404),
        ("POST", "/forks", json!({ "name": "copy" }), 401, 404),
        ("GET", "/topics", Value::Null, 404, 404),
        ("PUT", "/topics", json!({ "names": ["found"] }), 401, 404),
        ("GET", "/collaborators", Value::Null, 401, 404),
        ("GET", "/collaborators/bob", Value::Null, 401, 404),
        ("GET", "/collaborators/alice/permission", Value::Null, 401, 404),
        ("PUT", "/collaborators/bob", json!({ "permission": "admin" }), 401, 404),
        ("DELETE", "/collaborators/bob", Value::Null, 401, 404),
        ("DELETE", "/collaborators/alice", Value::Null, 401, 404),
        ("PATCH", "", json!({ "archived": true }), 401, 404),
        ("POST", "/transfer", json!({ "new_owner": "bob" }), 401, 404),
        ("GET", "/redirects", Value::Null, 401, 404),
        ("DELETE", "/redirects/1", Value::Null, 401, 404),
        ("GET", "/audit", Value::Null, 401, 404),
        ("GET", "/stargazers", Value::Null, 404, 404),
        ("GET", "/subscribers", Value::Null, 401, 404),
        ("GET", "/subscription", Value::Null, 401, 404),
        ("PUT", "/subscription", json!({ "subscribed": true }), 401, 404),
        ("DELETE", "/subscription", Value::Null, 401, 404),
    ];
    for (who, of_nobody) in [(&nobody, true), (&stranger, false)] {
        for (method, tail, body, anonymous, logged) in by_slug {
            let expected = if of_nobody { *anonymous } else { *logged };
            let ask = |slug: &str| match body {
                Value::Null => who.request(method, &format!("/repos/{slug}{tail}")).send(server.http_addr()),
                body => who.send(method, &format!("/repos/{slug}{tail}"), body),
            };
            let reference = comparable(ask(&absent[0].0));
            assert_eq!(reference.status, expected, "{method} {tail}: {}", reference.text());
            for (slug, _) in &absent {
                assert_eq!(comparable(ask(slug)), reference, "{method} /repos/{slug}{tail}");
            }
        }
        let ask = |id: &str| comparable(who.get(&format!("/repositories/{id}")));
        for (_, id) in &absent {
            assert_eq!(ask(id), ask("987654321"), "/repositories/{id}");
            let restore = |id: &str| comparable(who.post(&format!("/repositories/{id}/restore"), json!({})));
            assert_eq!(restore(id), restore("987654321"), "/repositories/{id}/restore");
        }
    }
    for who in [&nobody, &stranger] {
        assert_eq!(who.read("/users/alice/repos"), json!([]));
        assert_eq!(who.read("/users/alice")["public_repos"], 0);
        assert_eq!(who.read("/search/repositories?q=gone")["total_count"], 0);
        assert_eq!(who.read("/search/repositories?q=user:alice")["total_count"], 0);
    }
}

#[test]
fn an_administrator_of_the_site_reads_what_is_private_but_not_what_is_deleted() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    let absent = absent_ones(&server, &alice);
    let args = ["user", "add", "root-admin", "--email", "admin@example.org", "--password-stdin", "--admin"];
    assert!(server.cli_stdin(&args, "a long enough password\n").status.success());
    let admin = Api::with(&server, &server.add_token("root-admin", "repo,user"));

    for (slug, id) in &absent {
        let expected = if slug == "alice/private" { 200 } else { 404 };
        assert_eq!(admin.get(&format!("/repos/{slug}")).status, expected, "{slug}");
        assert_eq!(admin.get(&format!("/repositories/{id}")).status, expected, "{id}");
    }
    assert_eq!(admin.patch("/repos/alice/private", json!({ "description": "mine" })).status, 403, "reading only");
}
