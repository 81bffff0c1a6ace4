//! Connections, bodies and forms.

use super::{ATTACKER, VICTIM, begun, get, rest, status, with};
use crate::support::builder;
use abide_testkit::http::{self, Request};
use abide_testkit::{Engine, Nostr, Server, eventually};
use rstest::rstest;
use std::io::{ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::time::Duration;

/// Reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A form of which one byte is sent.
const UNFINISHED: &str = "POST /login HTTP/1.1\r\nHost: abide\r\nContent-Length: 100\r\n\
    Content-Type: application/x-www-form-urlencoded\r\n\r\n_";

fn small(settings: &[(&str, &str)]) -> Server {
    small_on(Engine::Sqlite, settings)
}

fn small_on(engine: Engine, settings: &[(&str, &str)]) -> Server {
    let few = [("ABIDE_SERVER__MAX_CONNECTIONS", "20"), ("ABIDE_SERVER__CONNECTIONS_PER_IP", "8")];
    with(builder(engine), &[few.as_slice(), settings].concat())
}

#[rstest]
fn unfinished_forms_of_one_address_leave_others_their_pages_and_their_health(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = small_on(engine, &[]);
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

#[rstest]
fn when_many_addresses_take_every_place_health_is_answered_and_others_hear_why_not(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = small_on(engine, &[]);
    let address = |last: u8| IpAddr::V4(Ipv4Addr::new(127, 0, 1, last));
    let mut attack: Vec<TcpStream> = (1..=3)
        .flat_map(|last| (0..7).map(move |_| last))
        .map(|last| begun(&server, address(last), UNFINISHED))
        .collect();
    // They go on knocking, so they take all of the reserve that they can get.
    for last in (1..=3).cycle().take(60) {
        attack.push(begun(&server, address(last), UNFINISHED));
    }
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

/// Forms that come in drops, and forms that are larger than any of ours: neither is waited for to its end.
#[rstest]
fn slow_and_huge_forms_are_ended_while_others_are_served(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = small_on(engine, &[("ABIDE_SERVER__BODY_TIMEOUT", "300ms")]);
    let head = |path: &str, length: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: abide\r\nContent-Type: application/x-www-form-urlencoded\r\n{length}\r\n"
        )
    };
    // A visitor who is not signed in has no form of that size.
    let long = format!("login=a&password={}", "x".repeat(20 << 10));
    let request = Request::new("POST", "/login").header("Content-Type", "application/x-www-form-urlencoded");
    assert_eq!(request.body(long.into_bytes()).send(server.http_addr()).status, 413);
    for path in ["/login", "/signup", "/forgot", "/login/nostr"] {
        let mut slow = begun(&server, ATTACKER, &head(path, "Content-Length: 100000\r\n"));
        // Each drop is less than what the time between two of them is worth.
        eventually(PATIENCE, || slow.write_all(b"a").is_err() || is_answered(&slow));
        assert!(rest(&mut slow).starts_with("HTTP/1.1 408"), "{path} in drops");

        let reported = begun(&server, ATTACKER, &head(path, "Content-Length: 1073741824\r\n"));
        let chunked = begun(&server, ATTACKER, &head(path, "Transfer-Encoding: chunked\r\n"));
        for (mut huge, chunk) in
            [(reported, vec![b'a'; 32 << 10]), (chunked, [b"8000\r\n".as_slice(), &[b'a'; 32 << 10], b"\r\n"].concat())]
        {
            eventually(PATIENCE, || huge.write_all(&chunk).is_err() || is_answered(&huge));
            let answer = rest(&mut huge);
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{path}: {answer}");
        }
        assert_eq!(get(&server, VICTIM, "/login").status, 200);
    }
    assert!(server.rss_bytes() < 400 << 20, "nothing of them is kept");
}

/// Whether there is something to read.
fn is_answered(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket can be asked without waiting");
    let waiting = matches!(stream.peek(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
    stream.set_nonblocking(false).expect("a socket can be asked with waiting");
    !waiting
}

#[test]
fn behind_a_proxy_each_client_has_its_share_and_the_proxy_is_not_locked_out() {
    let settings = [("ABIDE_SERVER__TRUSTED_PROXIES", "127.0.0.1"), ("ABIDE_SERVER__CONNECTIONS_PER_IP", "3")];
    let server = small(&settings);
    let proxy = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let unfinished = UNFINISHED.replace("Host: abide", "Host: abide\r\nX-Forwarded-For: 203.0.113.5");
    let mut attack: Vec<TcpStream> = (0..2).map(|_| begun(&server, proxy, &unfinished)).collect();
    let ask =
        |client: &str, path: &str| status(&server, proxy, &Request::new("GET", path).header("X-Forwarded-For", client));
    eventually(PATIENCE, || {
        // A question that came first may have taken the last place.
        attack.push(begun(&server, proxy, &unfinished));
        ask("203.0.113.5", "/login") == Some(503)
    });
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
