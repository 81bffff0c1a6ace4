//! A server that dies while it fetches serves the same in the end, and leaves nothing behind.

use super::pair::{Pair, SOON};
use crate::support::{assert_healthy, query};
use abide_core::failpoint;
use abide_testkit::{Engine, Key, Nostr, eventually};
use rstest::rstest;

#[rstest]
fn a_crash_at_any_step_of_a_fetch_is_made_good(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(
        failpoint::SYNC_CLAIMED,
        failpoint::SYNC_REQUESTED,
        failpoint::SYNC_FETCHED,
        failpoint::SYNC_TAKEN,
        failpoint::PROMOTE_BUILT,
        failpoint::PROMOTE_COMMITTED
    )]
    point: &str,
) {
    let mut pair = Pair::with(engine, |builder| builder.env("ABIDE_SYNC__PUBLISHED_DELAY", "1s"));
    let key = Key::new(1);
    let (announcement, said) = pair.served_by_first(&key, "demo");
    pair.second.restart_with_failpoint(point);
    pair.relay = Nostr::connect(&pair.second.url());
    pair.tell_second(&announcement);
    pair.tell_second(&said);
    pair.second.wait_exit();
    pair.second.restart();

    pair.until_second_serves(&said);
    assert_eq!(pair.refs_of_second(&key, "demo"), pair.first.refs(&key, "demo"));
    assert_eq!(query(&pair.second, "SELECT count(*) FROM repos"), "1");
    eventually(SOON, || query(&pair.second, "SELECT count(*) FROM sync_requests WHERE ends_at IS NOT NULL") == "0");
    eventually(SOON, || query(&pair.second, "SELECT count(*) FROM sync_queue") == "0");
    let incoming = pair.second.data_dir().join("incoming");
    assert_eq!(std::fs::read_dir(incoming).map(Iterator::count).unwrap_or(0), 0, "no area is left");
    assert_healthy(&pair.second);
}

/// The process is killed at no particular point, again and again, while repositories are fetched.
#[rstest]
fn a_server_that_is_killed_again_and_again_converges(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    // Attempts that were cut off count as requests of their domain.
    let mut pair = Pair::with(engine, |builder| builder.env("ABIDE_SYNC__DOMAIN_WINDOW", "1s"));
    let keys: Vec<Key> = (1..=4).map(Key::new).collect();
    let mut states = Vec::new();
    for key in &keys {
        let (announcement, said) = pair.served_by_first(key, &format!("demo-{}", states.len()));
        pair.relay = Nostr::connect(&pair.second.url());
        pair.tell_second(&announcement);
        pair.tell_second(&said);
        states.push(said);
        pair.second.restart();
    }
    for (n, said) in states.iter().enumerate() {
        pair.until_second_serves(said);
        let name = format!("demo-{n}");
        assert_eq!(pair.refs_of_second(&keys[n], &name), pair.first.refs(&keys[n], &name));
    }
    assert_healthy(&pair.second);
}
