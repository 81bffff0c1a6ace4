//! Five roles, and what each may do over the API.

use super::{Api, assert_error, assert_refused};
use crate::beside::Beside as _;
use crate::support::{person, server};
use abide_core::repo::Role;
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::{Value, json};

#[rstest]
fn each_role_may_do_what_it_says(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    server.add_user("carol");
    alice.create(&server, "project", true);
    let (owner, member) = (Api::of(&server, &alice), Api::of(&server, &bob));
    let repo = "/repos/alice/project";

    assert_eq!(Role::ALL.len(), 5);
    for &role in Role::ALL {
        let set = owner.put(&format!("{repo}/collaborators/bob"), json!({ "permission": role.as_str() }));
        assert_eq!(set.status, 204, "{}", set.text());

        let seen = member.read(repo)["permissions"].clone();
        let levels = [
            ("pull", Role::Read),
            ("triage", Role::Triage),
            ("push", Role::Write),
            ("maintain", Role::Maintain),
            ("admin", Role::Admin),
        ];
        for (word, least) in levels {
            assert_eq!(seen[word], role >= least, "{role} sees {seen}");
        }
        assert_eq!(member.read("/user/repos")[0]["name"], "project", "{role}");

        // Each changes something every time, so that an edit is one.
        let change = |word: &str| format!("{word}-{role}");
        let actions: &[(Role, &str, String, Value)] = &[
            (Role::Read, "GET", repo.to_owned(), json!({})),
            (Role::Write, "GET", format!("{repo}/collaborators"), json!({})),
            (Role::Write, "GET", format!("{repo}/collaborators/bob"), json!({})),
            (Role::Write, "GET", format!("{repo}/collaborators/alice/permission"), json!({})),
            (Role::Maintain, "PATCH", repo.to_owned(), json!({ "description": change("text") })),
            (Role::Admin, "PATCH", repo.to_owned(), json!({ "default_branch": change("branch") })),
            (Role::Admin, "PATCH", repo.to_owned(), json!({ "private": false })),
            (Role::Admin, "PUT", format!("{repo}/collaborators/carol"), json!({ "permission": "read" })),
            (Role::Admin, "DELETE", format!("{repo}/collaborators/carol"), json!({})),
            (Role::Admin, "DELETE", repo.to_owned(), json!({})),
        ];
        for (least, method, path, body) in actions {
            let response = member.send(method, path, body);
            if role >= *least {
                assert!(response.status < 300, "{role}: {method} {path} {body}: {}", response.text());
            } else {
                let message = assert_error(&response, 403);
                assert!(message.contains(&format!("the {least} role")), "{role}: {method} {path} {body}: {message}");
            }
        }
    }
    assert_error(&owner.get(repo), 404);
}

#[rstest]
fn an_edit_that_is_only_half_allowed_is_not_done_at_all(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "project", true);
    let owner = Api::of(&server, &alice);
    owner.put("/repos/alice/project/collaborators/bob", json!({ "permission": "maintain" }));

    let both = json!({ "description": "by bob", "private": false });
    assert_error(&Api::of(&server, &bob).patch("/repos/alice/project", both), 403);
    let repo = owner.read("/repos/alice/project");
    assert_eq!((&repo["description"], &repo["private"]), (&Value::Null, &json!(true)));
}

#[rstest]
fn people_come_change_and_go(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob, carol) = (person(&server, "alice"), person(&server, "bob"), person(&server, "carol"));
    alice.create(&server, "project", true);
    let (owner, member, other) = (Api::of(&server, &alice), Api::of(&server, &bob), Api::of(&server, &carol));
    let at = |tail: &str| format!("/repos/alice/project/collaborators{tail}");

    assert_error(&owner.get(&at("/bob")), 404);
    assert_eq!(owner.put(&at("/Bob"), json!({})).status, 204, "write, if nothing is said");
    assert_eq!(owner.read(&at("/bob/permission"))["role_name"], "write");
    assert_eq!(owner.get(&at("/bob")).status, 204);
    for (word, role) in [("pull", "read"), ("push", "write"), ("maintain", "maintain")] {
        assert_eq!(owner.put(&at("/bob"), json!({ "permission": word })).status, 204);
        let permission = owner.read(&at("/bob/permission"));
        assert_eq!(permission["role_name"], role, "{word}");
        assert_eq!(permission["permission"], if role == "read" { "read" } else { "write" });
        assert_eq!(permission["user"]["login"], "bob");
    }
    owner.put(&at("/carol"), json!({ "permission": "read" }));
    let first = owner.get(&at("?per_page=1"));
    assert!(first.header("link").is_some_and(|link| link.contains("rel=\"next\"")), "{:?}", first.headers);
    assert_eq!(owner.read(&at("")).as_array().map(Vec::len), Some(2));

    assert_error(&other.delete(&at("/bob")), 403);
    assert_eq!(member.delete(&at("/bob")).status, 204, "everyone may leave");
    assert_error(&member.get("/repos/alice/project"), 404);
    assert_eq!(owner.delete(&at("/bob")).status, 204, "it is so already");
    assert_eq!(owner.read(&at("/bob/permission"))["permission"], "none");

    for method in ["PUT", "DELETE"] {
        let rule = assert_refused(&owner.send(method, &at("/alice"), &json!({})), "username", "invalid");
        assert!(rule.contains("owner"), "{rule}");
        assert_error(&owner.send(method, &at("/nobody"), &json!({})), 404);
        assert_error(&owner.send(method, &at("/-"), &json!({})), 404);
    }
    let rule = assert_refused(&owner.put(&at("/bob"), json!({ "permission": "owner" })), "permission", "invalid");
    assert!(rule.contains("read, triage, write, maintain, admin"), "{rule}");
}
