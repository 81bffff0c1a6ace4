//! Connections that stay open end with the right to them.

use super::rest;
use crate::support::{builder, person, query, server};
use abide_nostr::nip19;
use abide_testkit::{Engine, Key, Nostr, Server};
use rstest::rstest;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A stream of events that is under way.
fn stream(server: &Server, token: &str) -> TcpStream {
    let mut socket = TcpStream::connect(server.http_addr()).expect("the server listens");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket takes a timeout");
    let ask = format!(
        "GET /api/v3/events/stream HTTP/1.1\r\nHost: abide\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
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
