//! Malformed messages are answered, and the connection stays open.

use super::Setup;
use abide_nostr::nip19;
use abide_testkit::http::{self, Request};
use abide_testkit::{Engine, Key};
use rstest::rstest;
use serde_json::json;
use std::net::SocketAddr;
use tungstenite::Message;

#[test]
fn malformed_frames_get_a_notice_and_the_socket_stays_open() {
    let setup = Setup::new(Engine::Sqlite);
    let mut client = setup.connect();
    for text in
        ["", "x", "{}", "[]", "[1]", "[\"NOPE\"]", "[\"EVENT\"]", "[\"REQ\"]", "[\"EVENT\",{}]", "\u{0}", "[[[["]
    {
        client.send(Message::text(text));
        let notice = client.wait(|heard| heard.name() == "NOTICE");
        let words = notice.0[1].as_str().unwrap();
        assert!(words.starts_with("invalid: ") || words.starts_with("unsupported: "), "{text}: {words}");
    }
    client.send(Message::binary(vec![0, 159, 146, 150]));
    assert_eq!(client.wait(|heard| heard.name() == "NOTICE").0[1], "invalid: messages must be JSON in text frames");
    client.send(Message::Ping(vec![1].into()));
    let large = "x".repeat((1 << 20) + 1);
    client.send(Message::text(large));
    let notice = client.wait(|heard| heard.name() == "NOTICE");
    assert_eq!(notice.0[1], "invalid: a message may have at most 1048576 bytes");
    assert_eq!(client.req(&[json!({})]).len(), 1, "the conversation goes on");
}

#[test]
fn a_message_that_is_far_too_large_ends_the_connection_with_the_reason() {
    let setup = Setup::new(Engine::Sqlite);
    let mut client = setup.connect();
    client.send_if_taken(Message::text("x".repeat((2 << 20) + 1)));
    let ended = client.closed();
    assert!(ended.is_none_or(|(code, _)| code == 1009));
    assert_eq!(setup.connect().req(&[json!({})]).len(), 1, "others are served");
}

#[test]
fn a_bad_subscription_is_closed_and_a_bad_reconciliation_too() {
    let setup = Setup::new(Engine::Sqlite);
    let mut client = setup.connect();
    for filter in [json!({"kinds": "x"}), json!({"search": "x"}), json!([])] {
        client.ask("REQ", "s", &[filter]);
        assert_eq!(client.wait(|heard| heard.0[1] == "s").name(), "CLOSED");
    }
    client.say(&json!(["NEG-OPEN", "s", {}, "zz"]));
    assert_eq!(client.wait(|heard| heard.0[1] == "s").name(), "NEG-ERR");
}

#[test]
fn the_relay_says_whose_repositories_it_takes() {
    let npub = nip19::npub(&Key::new(1).public());
    let said = |settings: &[(&str, &str)]| {
        let setup = Setup::with(Engine::Sqlite, settings);
        Request::new("GET", "/").header("Accept", "application/nostr+json").send(setup.server.http_addr()).json()
    };
    let off = ("ABIDE_GRASP__ANNOUNCE", "off");
    let chosen = said(&[off, ("ABIDE_GRASP__ALLOW", &npub), ("ABIDE_RELAY__CURATION", "Nothing about cats.")]);
    assert!(chosen["repo_acceptance_criteria"].as_str().unwrap().starts_with("Only keys chosen by the operator"));
    assert_eq!(chosen["curation"], "Nothing about cats.");
    let denied = said(&[("ABIDE_GRASP__DENY", &npub)]);
    assert_eq!(denied["curation"], "Some keys are blocked from announcing repositories.");
    let without = said(&[("ABIDE_GRASP__ENABLED", "false")]);
    assert_eq!(without["supported_grasps"], json!([]), "only what is on");
    assert_eq!(without["repo_acceptance_criteria"], "This server does not accept repositories over nostr.");
}

#[test]
fn the_relay_describes_itself_with_the_limits_it_keeps() {
    let settings = [("ABIDE_RELAY__NAME", "Test"), ("ABIDE_RELAY__FILTERS", "3"), ("ABIDE_RELAY__SUBSCRIPTIONS", "2")];
    let setup = Setup::with(Engine::Sqlite, &settings);
    let addr = setup.server.http_addr();
    let response = Request::new("GET", "/").header("Accept", "application/nostr+json").send(addr);
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("application/nostr+json"));
    assert_eq!(response.header("access-control-allow-origin"), Some("*"));
    let info = response.json();
    assert_eq!(info["name"], "Test");
    assert_eq!(info["software"], setup.server.url(), "an address, as NIP-11 has it");
    assert_eq!(info["supported_nips"], json!([1, 9, 11, 34, 40, 42, 45, 77, 98]));
    assert_eq!(info["supported_grasps"], json!(["GRASP-01"]));
    assert!(info["repo_acceptance_criteria"].is_string() && info.get("curation").is_none());
    assert_eq!((&info["limitation"]["max_filters"], &info["limitation"]["max_subscriptions"]), (&json!(3), &json!(2)));

    let mut client = setup.connect();
    client.ask("REQ", "four", &[json!({}), json!({}), json!({}), json!({})]);
    assert_eq!(client.wait(|heard| heard.0[1] == "four").0[2], "invalid: a subscription must have 1 to 3 filters");
    client.subscribe("one", &[json!({})]);
    client.subscribe("two", &[json!({})]);
    client.ask("REQ", "three", &[json!({})]);
    assert_eq!(client.wait(|heard| heard.0[1] == "three").name(), "CLOSED");

    let page = http::get(addr, "/", None);
    assert!(page.header("content-type").unwrap().starts_with("text/html"), "a browser sees the page");
    let preflight = Request::new("OPTIONS", "/").header("Origin", "https://elsewhere.example").send(addr);
    assert_eq!(preflight.status, 204);
    assert!(preflight.header("access-control-allow-headers").unwrap().contains("Content-Type"));
}

fn handshake(addr: SocketAddr, connection: &str, key: &str) -> http::Response {
    let request = format!(
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: {connection}\r\nSec-WebSocket-Version: 13\r\n{key}\r\n"
    );
    http::raw_exchange(addr, request.as_bytes())
}

#[rstest]
#[case("Upgrade")]
#[case("keep-alive, Upgrade")]
fn browsers_ask_for_a_socket_in_their_own_ways(#[case] connection: &str) {
    let setup = Setup::new(Engine::Sqlite);
    let answer = handshake(setup.server.http_addr(), connection, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
    assert_eq!(answer.status, 101);
    assert_eq!(answer.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
}

#[test]
fn a_socket_request_without_a_key_is_refused_in_words() {
    let setup = Setup::new(Engine::Sqlite);
    let answer = handshake(setup.server.http_addr(), "Upgrade", "");
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("Sec-WebSocket-Key"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
}

#[test]
fn a_relay_that_is_switched_off_is_not_there() {
    let setup = Setup::with(Engine::Sqlite, &[("ABIDE_RELAY__ENABLED", "false")]);
    let addr = setup.server.http_addr();
    assert_eq!(handshake(addr, "Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n").status, 404);
    let page = Request::new("GET", "/").header("Accept", "application/nostr+json").send(addr);
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
}
