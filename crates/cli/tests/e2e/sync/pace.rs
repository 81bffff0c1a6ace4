//! How often other servers are asked.

use super::pair::{SOON, fetching};
use super::upstream::{Upstream, respond};
use crate::grasp::setup::{WAITS, now, npub, state};
use crate::support::query;
use abide_testkit::{Engine, Key, Nostr, Server, eventually};
use rstest::rstest;

const OID: &str = "abababababababababababababababababababab";

/// So many repositories whose git data should be at one upstream.
fn announce(server: &Server, upstream: &Upstream, count: u32) {
    let mut relay = Nostr::connect(&server.url());
    let relays = server.url().replacen("http", "ws", 1);
    for n in 0..count {
        let (key, identifier) = (Key::new(n), format!("demo-{n}"));
        let own = format!("{}/{}/{identifier}.git", server.url(), npub(&key));
        let elsewhere = upstream.url(&format!("{n}.git"));
        let tags: &[&[&str]] = &[&["d", &identifier], &["clone", &elsewhere, &own], &["relays", &relays]];
        assert_eq!(relay.publish(&key.event(now() - 50, 30_617, tags, "")), (true, WAITS.to_owned()));
        let said = state(&key, now() - 40, &identifier, &[("refs/heads/main", OID)], Some("main"));
        assert_eq!(relay.publish(&said), (true, WAITS.to_owned()));
    }
}

fn missing() -> Upstream {
    Upstream::new(|_, stream| respond(stream, "404 Not Found", "text/plain", b"no"))
}

#[rstest]
fn a_domain_has_five_requests_and_the_others_wait_for_their_turn(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let upstream = missing();
    let server = fetching(engine).env("ABIDE_SYNC__DOMAIN_WINDOW", "1h").start();
    announce(&server, &upstream, 9);
    let tried = "SELECT count(*) FROM sync_queue WHERE attempts > 0 AND expires_at IS NULL";
    eventually(SOON, || query(&server, tried) == "9");
    assert_eq!(upstream.requests().len(), 5, "{:?}", upstream.requests());
    assert!(upstream.most_open() <= 2, "{} at once", upstream.most_open());
    assert_eq!(query(&server, "SELECT count(*) FROM sync_turns"), "4");

    // The window passes: the four have their turn, although the next attempt of none is due.
    query(&server, "UPDATE sync_requests SET made_at = 0");
    eventually(SOON, || upstream.requests().len() == 9);
    let different: std::collections::BTreeSet<String> = upstream.requests().into_iter().collect();
    assert_eq!(different.len(), 9, "each was asked about once: {different:?}");
    eventually(SOON, || query(&server, "SELECT count(*) FROM sync_turns") == "0");
}

#[rstest]
fn one_identifier_is_tried_again_after_its_pauses_and_no_sooner(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let upstream = missing();
    let server = fetching(engine).start();
    announce(&server, &upstream, 1);
    let pause = |attempts: u32| {
        let ready = format!("SELECT count(*) FROM sync_queue WHERE attempts = {attempts} AND expires_at IS NULL");
        eventually(SOON, || query(&server, &ready) == "1");
        let micros = query(&server, "SELECT next_attempt - ran_at FROM sync_queue");
        micros.parse::<i64>().expect("a number") / 1_000_000
    };
    let first = pause(1);
    assert!((20..50).contains(&first), "20 s after the first attempt: {first}");
    query(&server, "UPDATE sync_queue SET next_attempt = 0");
    let second = pause(2);
    assert!((120..150).contains(&second), "two minutes after the second: {second}");
    assert_eq!(upstream.requests().len(), 2);
}

#[rstest]
fn fetching_can_be_switched_off(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let upstream = missing();
    let server = fetching(engine).env("ABIDE_SYNC__ENABLED", "false").start();
    announce(&server, &upstream, 1);
    assert_eq!(query(&server, "SELECT count(*) FROM sync_queue"), "0");
    assert_eq!(upstream.requests(), Vec::<String>::new());
}
