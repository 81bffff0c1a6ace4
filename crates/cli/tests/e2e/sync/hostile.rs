//! Clone URLs are hostile input: servers that lie, break off or lead elsewhere change nothing here.

use super::pair::{SOON, fetching};
use super::upstream::{Upstream, advertise, packets, respond};
use crate::grasp::setup::{WAITS, now, npub, state};
use crate::support::{assert_healthy, builder, query};
use abide_nostr::Event;
use abide_testkit::{Engine, Key, Nostr, Server, eventually, http};
use rstest::rstest;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Publishes an announcement with a clone URL and a state that needs `oid`.
fn publish(server: &Server, key: &Key, identifier: &str, clone: &str, oid: &str) -> Event {
    let own = format!("{}/{}/{identifier}.git", server.url(), npub(key));
    let relay = server.url().replacen("http", "ws", 1);
    let tags: &[&[&str]] = &[&["d", identifier], &["clone", clone, &own], &["relays", &relay]];
    let mut relay = Nostr::connect(&server.url());
    assert_eq!(relay.publish(&key.event(now() - 50, 30_617, tags, "")), (true, WAITS.to_owned()));
    let said = state(key, now() - 40, identifier, &[("refs/heads/main", oid)], Some("main"));
    assert_eq!(relay.publish(&said), (true, WAITS.to_owned()));
    said
}

/// The outcome and its sentence for the only URL of a repository.
fn outcome(server: &Server, key: &Key, identifier: &str) -> Option<(String, String)> {
    let path = format!("/api/v3/grasp/{}/{identifier}/status", npub(key));
    let json = http::get(server.http_addr(), &path, None).json();
    let source = &json["search"]["sources"][0];
    Some((source["outcome"].as_str()?.to_owned(), source["detail"].as_str()?.to_owned()))
}

#[track_caller]
fn comes_to(server: &Server, key: &Key, identifier: &str, word: &str) -> String {
    let mut found = None;
    eventually(SOON, || {
        found = outcome(server, key, identifier);
        found.is_some()
    });
    let (outcome, detail) = found.expect("it was found");
    assert_eq!(outcome, word, "{detail}");
    detail
}

const OID: &str = "abababababababababababababababababababab";

#[rstest]
fn servers_that_do_not_answer_as_git_does_are_told_apart(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    type Case = (&'static str, &'static str, fn(&mut TcpStream));
    let cases: &[Case] = &[
        ("page", "protocol", |stream| respond(stream, "200 OK", "text/html", b"<h1>hello</h1>")),
        ("missing", "absent", |stream| respond(stream, "404 Not Found", "text/plain", b"no")),
        ("private", "refused", |stream| respond(stream, "401 Unauthorized", "text/plain", b"no")),
        ("broken", "unreachable", |stream| respond(stream, "500 Oops", "text/plain", b"no")),
        ("cut", "unreachable", |stream| drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le"))),
        ("elsewhere", "refused", |stream| {
            let _ = stream.write_all(
                b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/info/refs?service=git-upload-pack\r\n\
                  Content-Length: 0\r\n\r\n",
            );
        }),
        ("garbage", "protocol", |stream| {
            respond(stream, "200 OK", "application/x-git-upload-pack-advertisement", b"zzzz");
        }),
        ("endless", "protocol", |stream| {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\r\n";
            let line = packets(&["# service=git-upload-pack\n", "", "version 2\n"]);
            let more = packets(&["agent=git/2\n"]).repeat(1_000);
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(line.as_bytes()));
            while stream.write_all(more.as_bytes()).is_ok() {}
        }),
    ];
    let server = fetching(engine).env("ABIDE_SYNC__DOMAIN_REQUESTS", "100").start();
    let before = server.rss_bytes();
    for (n, (name, word, answer)) in cases.iter().enumerate() {
        let upstream = Upstream::new(move |_, stream| answer(stream));
        let key = Key::new(u32::try_from(n).expect("few"));
        let said = publish(&server, &key, name, &upstream.url("x.git"), OID);
        comes_to(&server, &key, name, word);
        let mut relay = Nostr::connect(&server.url());
        assert!(relay.req(&[serde_json::json!({ "ids": [said.id.to_hex()] })]).is_empty(), "{name}");
    }
    let grown = server.rss_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more");
    assert_eq!(query(&server, "SELECT count(*) FROM repos"), "0");
    assert_healthy(&server);
}

/// An empty pack.
const EMPTY: &[u8] =
    b"PACK\0\0\0\x02\0\0\0\0\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e";

/// It says that it has the object, and sends a pack without it.
#[rstest]
fn a_pack_without_the_wanted_objects_changes_nothing_and_is_not_fetched_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let asked = AtomicUsize::new(0);
    let upstream = Upstream::new(move |request, stream| {
        if request.starts_with("GET") {
            return advertise(stream);
        }
        // The first POST of each visit is the question, the second asks for the pack.
        let acknowledged = packets(&["acknowledgments\n", &format!("ACK {OID}\n"), ""]).into_bytes();
        let mut pack = packets(&["packfile\n"]).into_bytes();
        pack.extend(format!("{:04x}\u{1}", EMPTY.len() + 5).as_bytes());
        pack.extend(EMPTY);
        pack.extend(b"0000");
        let body = if asked.fetch_add(1, Ordering::SeqCst) == 1 { pack } else { acknowledged };
        respond(stream, "200 OK", "application/x-git-upload-pack-result", &body);
    });
    let server = fetching(engine).start();
    let key = Key::new(1);
    publish(&server, &key, "demo", &upstream.url("x.git"), OID);
    comes_to(&server, &key, "demo", "incomplete");
    let posts = || upstream.requests().iter().filter(|line| line.starts_with("POST")).count();
    assert_eq!(posts(), 2, "a question and a pack: {:?}", upstream.requests());

    // Without new evidence it is asked, and sends no pack.
    eventually(SOON, || query(&server, "SELECT attempts FROM sync_queue WHERE expires_at IS NULL") == "1");
    query(&server, "UPDATE sync_queue SET next_attempt = 0 WHERE expires_at IS NULL");
    eventually(SOON, || query(&server, "SELECT attempts FROM sync_queue WHERE expires_at IS NULL") == "2");
    assert_eq!(posts(), 3, "{:?}", upstream.requests());
    assert_eq!(query(&server, "SELECT count(*) FROM repos"), "0");
    assert_healthy(&server);
}

/// No clone URL leads into the server's own network, and the host rests.
#[rstest]
fn addresses_inside_are_never_asked(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let upstream = Upstream::new(|_, stream| respond(stream, "200 OK", "text/plain", b"inside"));
    let server = builder(engine).env("ABIDE_SYNC__PUBLISHED_DELAY", "10ms").start();
    let key = Key::new(1);
    publish(&server, &key, "demo", &upstream.url("x.git"), OID);
    let detail = comes_to(&server, &key, "demo", "unreachable");
    assert!(detail.contains("no public IP address"), "{detail}");
    assert_eq!(upstream.requests(), Vec::<String>::new());
    let rests = query(&server, "SELECT count(*) FROM sync_domains WHERE rests_until IS NOT NULL");
    assert_eq!(rests, "1");

    // The next attempt leaves it alone.
    query(&server, "UPDATE sync_queue SET next_attempt = 0 WHERE expires_at IS NULL");
    eventually(SOON, || outcome(&server, &key, "demo").is_some_and(|(word, _)| word == "postponed"));
    assert_healthy(&server);
}
