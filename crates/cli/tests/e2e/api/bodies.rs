//! Bodies and addresses that cannot be right: each answer says what is wrong, in JSON.

use super::{Api, assert_error, assert_refused};
use crate::support::{person, server};
use abide_testkit::{Engine, http};
use serde_json::json;

#[test]
fn what_is_no_json_is_a_bad_request() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    for body in
        ["{", "{\"name\": }", "name=a", "{\"name\": \"a\"} {}", "{\"name\": \"\\ud800\"}", "{\"name\": \"a\u{1}\"}"]
    {
        let response = api.request("POST", "/user/repos").body(body).send(server.http_addr());
        let message = assert_error(&response, 400);
        assert!(message.contains("parsing JSON") && message.contains("line 1"), "{body}: {message}");
    }
    for body in ["[]", "[\"a\"]", "\"a\"", "null", "3"] {
        let response = api.request("POST", "/user/repos").body(body).send(server.http_addr());
        assert_eq!(assert_error(&response, 400), "The body should be a JSON object", "{body}");
    }
    let invalid_utf8 = api.request("POST", "/user/repos").body(b"{\"name\": \"\xff\"}".to_vec());
    assert_error(&invalid_utf8.send(server.http_addr()), 400);
    assert_eq!(api.read("/user/repos"), json!([]), "nothing was made");
}

#[test]
fn a_field_of_the_wrong_type_is_named() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    alice.create(&server, "a", false);
    let api = Api::of(&server, &alice);

    assert_refused(&api.post("/user/repos", json!({})), "name", "missing_field");
    let empty = api.request("POST", "/user/repos").send(server.http_addr());
    assert_refused(&empty, "name", "missing_field");
    for (body, field) in [
        (json!({ "name": 1 }), "name"),
        (json!({ "name": null }), "name"),
        (json!({ "name": { "deep": [] } }), "name"),
        (json!({ "name": "b", "private": "yes" }), "private"),
        (json!({ "name": "b", "description": ["x"] }), "description"),
        (json!({ "name": "b", "visibility": "secret" }), "visibility"),
        (json!({ "name": "b", "default_branch": 7 }), "default_branch"),
        (json!({ "name": "b", "default_branch": "a..b" }), "default_branch"),
    ] {
        assert_refused(&api.post("/user/repos", body), field, "invalid");
    }
    assert_refused(&api.patch("/repos/alice/a", json!({ "private": 1 })), "private", "invalid");
    assert_refused(&api.patch("/repos/alice/a", json!({ "archived": "no" })), "archived", "invalid");
    assert_refused(&api.post("/user/keys", json!({ "title": "x" })), "key", "missing_field");
    assert_refused(&api.put("/repos/alice/a/collaborators/bob", json!({ "permission": 1 })), "permission", "invalid");
    assert_eq!(api.read("/user/repos").as_array().map(Vec::len), Some(1), "nothing was made");
}

#[test]
fn a_body_of_a_mebibyte_is_the_most() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    let body = |bytes: usize| {
        let frame = json!({ "name": "big", "filler": "" }).to_string().len();
        json!({ "name": "big", "filler": "x".repeat(bytes - frame) }).to_string()
    };
    let too_large = api.request("POST", "/user/repos").body(body((1 << 20) + 1)).send(server.http_addr());
    assert!(assert_error(&too_large, 413).contains("1048576"), "the limit is told");
    let large = api.request("POST", "/user/repos").body(body(1 << 20)).send(server.http_addr());
    assert_eq!(large.status, 201, "{}", large.text());
}

#[test]
fn addresses_and_methods_that_do_not_exist_are_told_in_json() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);

    for path in ["/nothing", "/user/nothing", "/repos", "/repos/alice", "/repos//a", "/user/", "/users/alice/"] {
        assert_eq!(assert_error(&api.get(path), 404), "Not Found", "{path}");
    }
    for path in
        ["/user/keys/one", "/user/keys/99999999999999999999", "/repositories/one", "/users/%ff", "/repos/alice/%ff"]
    {
        assert_eq!(assert_error(&api.get(path), 404), "Not Found", "{path}");
    }
    for (method, path) in [("DELETE", "/user"), ("PUT", "/user/repos"), ("POST", "/repos/alice/a"), ("PATCH", "/meta")]
    {
        let response = api.request(method, path).send(server.http_addr());
        assert_error(&response, 405);
        let allowed = response.header("allow").unwrap_or_default();
        assert!(allowed.contains("GET") && !allowed.contains(method), "{method} {path}: Allow: {allowed}");
    }
    // Outside the API people read the answer.
    let outside = http::get(server.http_addr(), "/nothing", None);
    assert_eq!((outside.status, outside.header("content-type")), (404, Some("text/html; charset=utf-8")));
}
