//! Connections that stay open end with the right to them.

use super::rest;
use crate::support::{builder, person, query, server};
use abide_nostr::nip19;
use abide_testkit::{Engine, Key, Nostr, Server, eventually};
use rstest::rstest;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Reached only by a test that fails, and shorter than the time after which a silent client is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stream of events that is under way.
fn stream(server: &Server, token: &str) -> TcpStream {
    stream_by(server, &format!("Bearer {token}"))
}

fn stream_by(server: &Server, authorization: &str) -> TcpStream {
    let mut socket = TcpStream::connect(server.http_addr()).expect("the server listens");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket takes a timeout");
    let ask = format!(
        "GET /api/v3/events/stream HTTP/1.1\r\nHost: abide\r\nConnection: close\r\nAuthorization: {authorization}\r\n\r\n"
    );
    socket.write_all(ask.as_bytes()).expect("the server reads");
    let mut lines = BufReader::new(socket.try_clone().expect("a socket can be shared")).lines();
    assert!(lines.any(|line| line.expect("it is answered").contains("from here on")));
    socket
}

#[rstest]
fn a_stream_ends_when_its_token_is_revoked_or_its_account_suspended(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    bob.create(&server, "secret", true);
    let (mut revoked, mut suspended) = (stream(&server, &alice.token), stream(&server, &bob.token));
    let id = query(&server, "SELECT t.id FROM tokens t JOIN users u ON u.id = t.user_id WHERE u.name = 'alice'");
    server.cli_ok(&["token", "revoke", "alice", &id]);
    rest(&mut revoked);
    server.cli_ok(&["user", "suspend", "bob"]);
    rest(&mut suspended);
}

/// The account of a signed request is the one that it began with, whoever has the key later.
#[rstest]
fn a_signed_stream_ends_when_its_key_belongs_to_another_account(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    person(&server, "alice");
    person(&server, "bob");
    let key = Key::new(7);
    let npub = nip19::npub(&key.public());
    query(&server, &format!("UPDATE users SET npub = '{npub}' WHERE name = 'alice'"));
    let url = format!("{}/api/v3/events/stream", server.url());
    let mut signed =
        stream_by(&server, &crate::api::signed::header(&key, Key::now(), &[&["u", &url], &["method", "GET"]]));
    query(&server, "UPDATE users SET npub = NULL WHERE name = 'alice'");
    query(&server, &format!("UPDATE users SET npub = '{npub}' WHERE name = 'bob'"));
    rest(&mut signed);
}

/// A client that takes nothing of a page is asked about all the same.
#[rstest]
fn a_socket_that_is_written_to_ends_when_the_account_of_its_key_is_suspended(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = builder(engine).start();
    person(&server, "alice");
    let key = Key::new(7);
    query(&server, &format!("UPDATE users SET npub = '{}' WHERE name = 'alice'", nip19::npub(&key.public())));
    let text = "x".repeat(240 << 10);
    // More than any buffer between here and there holds.
    let events: Vec<_> = (0..80).map(|number| key.event(Key::now(), 1621, &[], &format!("{number} {text}"))).collect();
    crate::relay::store(&server, &events);
    let held = || {
        let text = abide_testkit::http::get(server.http_addr(), "/metrics", None).text();
        let line = text.lines().find_map(|line| line.strip_prefix("abide_relay_held_bytes ")).map(str::to_owned);
        line.and_then(|value| value.parse::<f64>().ok()).unwrap_or_default()
    };
    let mut hers = Nostr::connect(&server.url());
    assert!(hers.auth(&key, &server.url().replace("http://", "ws://")).0);
    hers.ask("REQ", "unread", &[json!({ "kinds": [1621] })]);
    eventually(PATIENCE, || held() > f64::from(2 << 20));
    server.cli_ok(&["user", "suspend", "alice"]);
    eventually(PATIENCE, || held() == 0.0);
    drop(hers);
}

#[rstest]
fn a_socket_ends_when_the_account_of_its_key_is_suspended(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = builder(engine).start();
    person(&server, "alice");
    let key = Key::new(7);
    let npub = nip19::npub(&key.public());
    query(&server, &format!("UPDATE users SET npub = '{npub}' WHERE name = 'alice'"));
    let relay = server.url().replace("http://", "ws://");
    let (mut hers, mut strangers) = (Nostr::connect(&server.url()), Nostr::connect(&server.url()));
    assert!(hers.auth(&key, &relay).0);
    assert!(strangers.auth(&Key::new(8), &relay).0);
    server.cli_ok(&["user", "suspend", "alice"]);
    let (code, reason) = hers.closed().expect("a reason");
    assert_eq!(code, 1008, "{reason}");
    assert!(reason.contains("suspended"), "{reason}");
    assert_eq!(strangers.count(&[json!({ "kinds": [1] })]), 0, "others stay");
}
