//! The caller's own account.

use super::{Api, assert_error, assert_refused};
use crate::beside::Beside as _;
use crate::support::{person, query, server};
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::{Value, json};

#[rstest]
fn a_profile_is_changed_field_by_field_and_seen_by_everyone(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);

    let changed =
        api.patch("/user", json!({ "name": "Alice", "bio": "Git", "blog": "https://example.org", "email": "x" }));
    assert_eq!(changed.status, 200, "{}", changed.text());
    assert_eq!(changed.json(), api.read("/user"));
    api.patch("/user", json!({ "location": "Here", "bio": null }));
    let seen = Api::nobody(&server).read("/users/alice");
    let fields = ["name", "bio", "blog", "location", "email"].map(|field| seen[field].clone());
    assert_eq!(fields, [json!("Alice"), Value::Null, json!("https://example.org"), json!("Here"), Value::Null]);

    assert_refused(&api.patch("/user", json!({ "blog": "javascript:alert(1)" })), "blog", "invalid");
    assert_refused(&api.patch("/user", json!({ "name": "a".repeat(1000) })), "name", "invalid");
    assert_error(&Api::with(&server, &server.add_token("alice", "user:read")).patch("/user", json!({})), 403);
}

#[rstest]
fn addresses_are_seen_by_their_holder(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    person(&server, "bob");
    let emails = Api::of(&server, &alice).read("/user/emails");
    assert_eq!(emails.as_array().map(Vec::len), Some(1));
    assert_eq!((&emails[0]["email"], &emails[0]["primary"]), (&json!("alice@example.org"), &json!(true)));
    assert!(emails[0]["verified"].is_boolean());
    assert_error(&Api::nobody(&server).get("/user/emails"), 401);
    assert_error(&Api::with(&server, &server.add_token("alice", "repo")).get("/user/emails"), 403);
}

#[rstest]
fn under_an_old_name_of_its_owner_a_repository_points_to_its_lasting_address(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let id = alice.create(&server, "project", false)["id"].clone();
    alice.create(&server, "secret", true);
    query(&server, "UPDATE users SET name = 'alicia' WHERE name = 'alice'");
    query(&server, "INSERT INTO user_redirects (old_name, user_id, created_at) SELECT 'alice', id, 1 FROM users");

    let nobody = Api::nobody(&server);
    let moved = nobody.get("/repos/alice/project");
    let lasting = format!("{}/api/v3/repositories/{id}", server.url());
    assert_eq!((moved.status, moved.header("location")), (301, Some(lasting.as_str())), "{}", moved.text());
    assert_eq!(nobody.read(&format!("/repositories/{id}"))["full_name"], "alicia/project");
    assert_eq!(nobody.read("/repos/alice/project/branches"), json!([]), "what is below it is served in place");
    assert_error(&nobody.get("/repos/alice/secret"), 404);
}
