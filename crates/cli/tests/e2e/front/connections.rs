//! Connections, bodies and forms.

use super::{ATTACKER, VICTIM, begun, get, rest, status, with};
use crate::support::builder;
use abide_testkit::http::{self, Request};
use abide_testkit::{Engine, Nostr, Server, eventually};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::time::Duration;

/// Reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A form of which one byte is sent.
const UNFINISHED: &str = "POST /login HTTP/1.1\r\nHost: abide\r\nContent-Length: 100\r\n\
    Content-Type: application/x-www-form-urlencoded\r\n\r\n_";

fn small(settings: &[(&str, &str)]) -> Server {
    let few = [("ABIDE_SERVER__MAX_CONNECTIONS", "20"), ("ABIDE_SERVER__CONNECTIONS_PER_IP", "8")];
    with(builder(Engine::Sqlite), &[few.as_slice(), settings].concat())
}

#[test]
fn unfinished_forms_of_one_address_leave_others_their_pages_and_their_health() {
    let server = small(&[]);
    let attack: Vec<TcpStream> = (0..60).map(|_| begun(&server, ATTACKER, UNFINISHED)).collect();
    for path in ["/login", "/healthz", "/readyz", "/metrics", "/explore"] {
        assert_eq!(get(&server, VICTIM, path).status, 200, "{path}");
    }
    let own = |path: &str| status(&server, ATTACKER, &Request::new("GET", path));
    assert!(own("/login").is_none_or(|status| status == 503), "the attacker has no place left");
    eventually(PATIENCE, || own("/healthz") == Some(200));
    drop(attack);
    eventually(PATIENCE, || own("/login") == Some(200));
}

#[test]
fn when_many_addresses_take_every_place_health_is_answered_and_others_hear_why_not() {
    let server = small(&[]);
    let address = |last: u8| IpAddr::V4(Ipv4Addr::new(127, 0, 1, last));
    let attack: Vec<TcpStream> = (1..=20).map(|last| begun(&server, address(last), UNFINISHED)).collect();
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(get(&server, VICTIM, path).status, 200, "{path}");
    }
    let refused = get(&server, VICTIM, "/login");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    drop(attack);
    eventually(PATIENCE, || get(&server, VICTIM, "/login").status == 200);
}

#[test]
fn a_body_that_does_not_come_ends_its_connection() {
    let server = small(&[("ABIDE_SERVER__BODY_TIMEOUT", "300ms")]);
    for unfinished in [
        UNFINISHED.to_owned(),
        UNFINISHED.replace("/login", "/nowhere"),
        UNFINISHED.replace("POST /login", "PATCH /api/v3/user"),
        UNFINISHED
            .replace("/login", "/a/b.git/git-upload-pack")
            .replace("x-www-form-urlencoded", "x-git-upload-pack-request"),
    ] {
        let mut stream = begun(&server, ATTACKER, &unfinished);
        rest(&mut stream);
    }
    let mut form = begun(&server, ATTACKER, UNFINISHED);
    assert!(rest(&mut form).starts_with("HTTP/1.1 408"), "a form is told so");
}

#[test]
fn behind_a_proxy_each_client_has_its_share_and_the_proxy_is_not_locked_out() {
    let settings = [("ABIDE_SERVER__TRUSTED_PROXIES", "127.0.0.1"), ("ABIDE_SERVER__CONNECTIONS_PER_IP", "3")];
    let server = small(&settings);
    let proxy = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let unfinished = UNFINISHED.replace("Host: abide", "Host: abide\r\nX-Forwarded-For: 203.0.113.5");
    let attack: Vec<TcpStream> = (0..3).map(|_| begun(&server, proxy, &unfinished)).collect();
    let ask =
        |client: &str, path: &str| status(&server, proxy, &Request::new("GET", path).header("X-Forwarded-For", client));
    eventually(PATIENCE, || ask("203.0.113.5", "/login") == Some(503));
    assert_eq!(ask("203.0.113.5", "/healthz"), Some(200), "health is not counted");
    for _ in 0..10 {
        assert_eq!(ask("203.0.113.6", "/login"), Some(200), "another client through the same proxy");
    }
    drop(attack);
    eventually(PATIENCE, || ask("203.0.113.5", "/login") == Some(200));
}

#[test]
fn sockets_of_the_relay_and_streams_of_events_are_connections_too() {
    let server = small(&[("ABIDE_SERVER__CONNECTIONS_PER_IP", "2")]);
    let socket = Nostr::connect(&server.url());
    let stream =
        begun(&server, IpAddr::V4(Ipv4Addr::LOCALHOST), "GET /api/v3/events/stream HTTP/1.1\r\nHost: abide\r\n\r\n");
    eventually(PATIENCE, || http::get(server.http_addr(), "/login", None).status == 503);
    drop(socket);
    eventually(PATIENCE, || http::get(server.http_addr(), "/login", None).status == 200);
    drop(stream);
}
