//! Requests that a nostr key signs (NIP-98), and accounts that go by their key.

use super::{Api, assert_error};
use crate::signed::{governed, npub};
use crate::support::{query, server};
use abide_testkit::http::{Request, Response};
use abide_testkit::{ATTACKER, Engine, Key, Server, connect_from};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::io::{BufReader, Write as _};

/// The header of a proof.
pub fn header(key: &Key, at: u64, tags: &[&[&str]]) -> String {
    format!("Nostr {}", STANDARD.encode(abide_nostr::event::to_json(&key.event(at, 27_235, tags, ""))))
}

/// A request that a key signs as it should.
fn signed(server: &Server, key: &Key, method: &str, path: &str) -> Request {
    let url = format!("{}{path}", server.url());
    Request::new(method, path).header("Authorization", &header(key, Key::now(), &[&["u", &url], &["method", method]]))
}

#[rstest]
fn a_signed_request_is_the_keys_account_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (key, addr) = (Key::new(1), server.http_addr());
    governed(&server, &key, "tool", |_| {});
    let unknown = signed(&server, &Key::new(2), "GET", "/api/v3/user").send(addr);
    assert!(assert_error(&unknown, 401).contains("no account has this key"));

    let request = signed(&server, &key, "GET", "/api/v3/user");
    assert_eq!(request.send(addr).json()["login"], npub(&key));
    assert!(assert_error(&request.send(addr), 401).contains("already used"));
    let asked = signed(&server, &key, "GET", "/api/v3/user/repos?per_page=5").send(addr);
    assert_eq!(asked.json()[0]["owner"]["login"], npub(&key), "{}", asked.text());

    let url = format!("{}/api/v3/user", server.url());
    let method: &[&str] = &["method", "GET"];
    let wrong: [(u64, &[&[&str]], &str); 4] = [
        (Key::now(), &[&["u", &url], &["method", "POST"]], "method tag"),
        (Key::now(), &[&["u", "https://elsewhere.example/api/v3/user"], method], "u tag"),
        (Key::now(), &[&["u", &format!("{url}?x=1")], method], "u tag"),
        (Key::now() - 600, &[&["u", &url], method], "check the clock"),
    ];
    for (at, tags, why) in wrong {
        let refused = Request::new("GET", "/api/v3/user").header("Authorization", &header(&key, at, tags)).send(addr);
        assert!(assert_error(&refused, 401).contains(why), "{why}: {}", refused.text());
    }
    let broken = Request::new("GET", "/api/v3/user").header("Authorization", "Nostr x").send(addr);
    assert!(assert_error(&broken, 401).contains("base64"));

    query(&server, "UPDATE users SET suspended_at = 1 WHERE npub IS NOT NULL");
    let refused = signed(&server, &key, "GET", "/api/v3/user").send(addr);
    assert!(assert_error(&refused, 401).contains("suspended"));
}

/// The answer comes although the body never does: it is about the proof, not about the body.
#[rstest]
fn a_proof_that_opens_nothing_is_refused_before_its_body_is_read(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let path = "/api/v3/user/repos";
    let url = format!("{}{path}", server.url());
    let stranger = header(&Key::new(2), Key::now(), &[&["u", &url], &["method", "POST"]]);
    for (proof, why) in [("Nostr x", "base64"), (&stranger, "no account has this key")] {
        let mut stream = connect_from(ATTACKER, server.http_addr()).unwrap();
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {proof}\r\nContent-Length: 1000000\r\n\r\n{{");
        stream.write_all(head.as_bytes()).unwrap();
        let refused = Response::read_from(&mut BufReader::new(stream), false).unwrap();
        assert!(assert_error(&refused, 401).contains(why), "{why}: {}", refused.text());
    }
}

fn hex(body: &str) -> String {
    hex::encode(Sha256::digest(body))
}

#[rstest]
fn a_signed_body_is_the_one_that_was_signed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (key, addr) = (Key::new(1), server.http_addr());
    governed(&server, &key, "tool", |_| {});
    let url = format!("{}/api/v3/user", server.url());
    let send = |said: &str, sent: &str| {
        let hash = hex(said);
        let tags: &[&[&str]] = &[&["u", &url], &["method", "PATCH"], &["payload", &hash]];
        let request = Request::new("PATCH", "/api/v3/user").header("Content-Type", "application/json");
        request.header("Authorization", &header(&key, Key::now(), tags)).body(sent).send(addr)
    };
    let (body, other) = (json!({ "name": "Zoe" }).to_string(), json!({ "name": "Eve" }).to_string());
    assert!(assert_error(&send(&body, &other), 401).contains("payload tag"));
    let changed = send(&body, &body);
    assert_eq!((changed.status, changed.json()["name"].as_str()), (200, Some("Zoe")), "{}", changed.text());
    let nameless = Request::new("POST", "/api/v3/user/repos").json(&json!({ "name": "x" }));
    let url = format!("{}/api/v3/user/repos", server.url());
    let hash = hex(&json!({ "name": "x" }).to_string());
    let tags: &[&[&str]] = &[&["u", &url], &["method", "POST"], &["payload", &hash]];
    let refused = nameless.header("Authorization", &header(&key, Key::now(), tags)).send(addr);
    assert!(assert_error(&refused, 403).contains("choose a user name first"));
}

#[rstest]
fn a_key_administers_nothing_and_opens_no_git(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (key, addr) = (Key::new(1), server.http_addr());
    governed(&server, &key, "tool", |_| {});
    query(&server, "UPDATE users SET site_admin = TRUE WHERE npub IS NOT NULL");
    let admin = abide_web_api::api_routes().into_iter().find(|route| {
        route.access == abide_web_api::Access::Logged(abide_core::scope::Scope::Admin) && !route.path.contains('{')
    });
    if let Some(route) = admin {
        assert_error(&signed(&server, &key, route.method, &route.full_path()).send(addr), 403);
    }
    let git = signed(&server, &key, "GET", "/maker/tool.git/info/refs?service=git-upload-pack").send(addr);
    assert_eq!(git.status, 401, "{}", git.text());
}

#[rstest]
fn an_account_without_a_name_goes_by_its_key(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let key = Key::new(1);
    let id = governed(&server, &key, "my tool", |_| {});
    let (api, npub) = (Api::nobody(&server), npub(&key));
    let user = api.read(&format!("/users/{npub}"));
    assert_eq!((user["login"].as_str(), user["public_repos"].as_i64()), (Some(npub.as_str()), Some(1)));
    assert_eq!(user["html_url"], format!("{}/{npub}", server.url()));
    assert_eq!(api.get("/users/npub1x").status, 404);
    assert_eq!(api.get(&format!("/users/{}", crate::signed::npub(&Key::new(2)))).status, 404);
    let repo = &api.read(&format!("/users/{npub}/repos"))[0];
    assert_eq!(repo["full_name"], format!("{npub}/my%20tool"));
    assert_eq!((repo["owner"]["login"].as_str(), repo["id"].as_i64()), (Some(npub.as_str()), Some(id)));
    let path = repo["url"].as_str().and_then(|url| url.split("/api/v3").nth(1)).expect("an address of the API");
    assert_eq!(api.read(path)["id"], id);
    let found = api.read("/search/repositories?q=tool");
    assert_eq!(found["items"][0]["id"], id, "{found}");
    assert_eq!(api.read(&format!("/search/repositories?q={}", &npub[..20]))["total_count"], 1);
}
