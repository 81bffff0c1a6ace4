//! Who is let in, and with what.

use super::{Api, assert_error, with_an_end};
use crate::support::{person, query, server};
use abide_testkit::http::Request;
use abide_testkit::{Engine, PASSWORD, Server};
use abide_web_api::{Access, api_routes};
use rstest::rstest;
use serde_json::Value;

/// `Authorization: Basic` for a pair.
fn basic(pair: &str) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = pair.as_bytes().chunks(3).map(|chunk| {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        let letter = |index: usize| match index <= chunk.len() {
            true => char::from(ALPHABET[(bits >> (18 - 6 * index)) as usize & 63]),
            false => '=',
        };
        (0..4).map(letter).collect::<String>()
    });
    format!("Basic {}", groups.collect::<String>())
}

fn with(server: &Server, authorization: &str) -> u16 {
    let request = Request::new("GET", "/api/v3/user").header("Authorization", authorization);
    request.send(server.http_addr()).status
}

#[test]
fn a_token_is_taken_in_every_form_and_a_password_in_none() {
    let server = server(Engine::Sqlite);
    let token = person(&server, "alice").token;
    for good in [
        format!("Bearer {token}"),
        format!("bearer {token}"),
        format!("token {token}"),
        basic(&format!("alice:{token}")),
        basic(&format!("anything:{token}")),
        basic(&format!("{token}:x-oauth-basic")),
        basic(&format!("{token}:")),
    ] {
        assert_eq!(with(&server, &good), 200, "{good}");
    }
    let (shorter, lower) = (&token[..token.len() - 1], token.to_lowercase());
    for bad in [
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer abide_pat_".to_owned(),
        format!("Bearer {shorter}"),
        format!("Bearer {token}x"),
        format!("Bearer {lower}"),
        format!("Digest {token}"),
        token.clone(),
        "Basic !".to_owned(),
        basic(&format!("alice:{PASSWORD}")),
        format!("Bearer {PASSWORD}"),
    ] {
        assert_eq!(with(&server, &bad), 401, "{bad}");
    }
    // An address is written down in logs and histories: a token in it counts for nothing.
    let in_query = Api::nobody(&server).get(&format!("/user?access_token={token}"));
    assert_error(&in_query, 401);
}

#[test]
fn only_what_needs_a_login_asks_for_one_and_bad_credentials_open_nothing() {
    let server = server(Engine::Sqlite);
    let routes = api_routes();
    assert!(routes.len() > 15, "the routes are walked, not imagined");
    for route in routes {
        let path = with_an_end(route.path.replace(['{', '}'], ""));
        let nobody = Api::nobody(&server).send(route.method, &path, &Value::Null);
        match route.access {
            Access::Logged(_) | Access::Both(..) => {
                assert_eq!(assert_error(&nobody, 401), "Requires authentication", "{route:?}");
                assert_eq!(nobody.header("www-authenticate"), Some("Basic realm=\"Abide\""));
            }
            Access::Everyone | Access::Uncounted | Access::Open(_) => assert_ne!(nobody.status, 401, "{route:?}"),
        }
        let stranger = Api::with(&server, "abide_pat_nobodys").send(route.method, &path, &Value::Null);
        assert_eq!(assert_error(&stranger, 401), "Bad credentials", "{route:?}");
    }
}

#[rstest]
fn a_token_that_ended_opens_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let token_add = ["token", "add", "alice", "--scopes", "user:read"];

    let expired = server.cli_ok(&[&token_add[..], &["--expires", "1", "--label", "expired"]].concat());
    query(&server, "UPDATE tokens SET expires_at = 1 WHERE label = 'expired' RETURNING id");
    assert_error(&Api::with(&server, expired.trim()).get("/user"), 401);
    let lasting = server.cli_ok(&[&token_add[..], &["--expires", "1", "--label", "lasting"]].concat());
    let lasting = Api::with(&server, lasting.trim());
    assert_eq!(lasting.get("/user").status, 200);

    let listed: Value = serde_json::from_str(&server.cli_ok(&["token", "list", "alice", "--json"])).expect("JSON");
    let id =
        listed.as_array().into_iter().flatten().find(|token| token["label"] == "lasting").expect("it is listed")["id"]
            .to_string();
    server.cli_ok(&["token", "revoke", "alice", &id]);
    assert_error(&lasting.get("/user"), 401);
    let again = server.cli(&["token", "revoke", "alice", &id]);
    assert_eq!(again.status.code(), Some(3), "it is gone already");

    let api = Api::of(&server, &alice);
    server.cli_ok(&["user", "suspend", "alice"]);
    assert_eq!(assert_error(&api.get("/user"), 401), "Bad credentials");
    assert_error(&api.get("/users/alice"), 401);
    server.cli_ok(&["user", "unsuspend", "alice"]);
    assert_eq!(api.get("/user").status, 200);
}
