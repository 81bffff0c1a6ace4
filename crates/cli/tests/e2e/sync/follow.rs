//! Servers that follow each other: an event that is published to one appears on the other by itself, with its git data.

use super::pair::{Pair, SOON, following};
use crate::grasp::integrity::nostr_ref;
use crate::grasp::scene::{Scene, WAITS, now, state};
use crate::support::{assert_healthy, query};
use abide_nostr::Event;
use abide_testkit::{Engine, Key, Nostr, Server, eventually};
use rstest::rstest;
use serde_json::json;

/// Two servers that follow each other. The first has a client that pushes to it.
fn each_other(engine: Engine) -> Pair {
    let mut pair = Pair::with(engine, |builder| builder.env("ABIDE_SYNC__FOLLOW", "true"));
    pair.first = Scene::on(following(Engine::Sqlite).start());
    pair
}

/// Whether a server serves an event.
fn serves(server: &Server, event: &Event) -> bool {
    !Nostr::connect(&server.url()).req(&[json!({ "ids": [event.id.to_hex()] })]).is_empty()
}

/// A repository that both servers serve, although the second got the announcement alone.
fn served_by_both(pair: &mut Pair, key: &Key, identifier: &str) -> Event {
    let (announcement, said) = pair.served_by_first(key, identifier);
    pair.tell_second(&announcement);
    pair.until_second_serves(&said);
    said
}

#[rstest]
fn a_push_to_one_server_appears_on_the_other_by_itself(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut pair = each_other(engine);
    let key = Key::new(1);
    served_by_both(&mut pair, &key, "demo");
    assert_eq!(pair.refs_of_second(&key, "demo"), pair.first.refs(&key, "demo"));

    // From now on a live subscription brings it.
    for (n, at) in [(1, 60), (2, 50)] {
        let commit = pair.first.git.commit_file(&pair.first.work, "a", &n.to_string(), "more");
        let said = state(&key, now() - at, "demo", &[("refs/heads/main", &commit)], Some("main"));
        pair.first.state_waits(&said);
        pair.first.push(&key, "demo", &["main"]);
        pair.until_second_serves(&said);
        assert!(pair.refs_of_second(&key, "demo").contains(&("refs/heads/main".into(), commit)));
    }
    pair.assert_healthy();
}

#[rstest]
fn issues_comments_and_pull_requests_of_one_server_appear_on_the_other(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut pair = each_other(engine);
    let (key, author) = (Key::new(1), Key::new(2));
    served_by_both(&mut pair, &key, "demo");
    let coordinate = key.coordinate("demo");
    let issue = author.event(now() - 20, 1621, &[&["a", &coordinate], &["subject", "It breaks"]], "Always.");
    assert!(pair.first.relay.publish(&issue).0);
    pair.until_second_serves(&issue);
    let id = issue.id.to_hex();
    let comment =
        author.event(now() - 10, 1111, &[&["E", &id], &["K", "1621"], &["e", &id], &["k", "1621"]], "And again.");
    assert!(pair.first.relay.publish(&comment).0);
    pair.until_second_serves(&comment);

    pair.first.git.ok(&pair.first.work, &["checkout", "-q", "-b", "feature"]);
    let commit = pair.first.git.commit_file(&pair.first.work, "feature", "1", "a feature");
    let clone = pair.first.url(&key, "demo");
    let tags: &[&[&str]] = &[&["a", &coordinate], &["c", &commit], &["clone", &clone], &["subject", "A feature"]];
    let proposed = author.event(now() - 10, 1618, tags, "");
    assert_eq!(pair.first.relay.publish(&proposed), (true, WAITS.to_owned()));
    pair.first.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&proposed))]);
    pair.until_second_serves(&proposed);
    assert!(pair.refs_of_second(&key, "demo").contains(&(nostr_ref(&proposed), commit)));
    pair.assert_healthy();
}

/// Nothing is connected to while an announcement waits for the push of its author.
#[rstest]
fn a_waiting_announcement_connects_to_nobody_within_the_delay(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut pair = Pair::with(engine, |builder| {
        builder.env("ABIDE_SYNC__FOLLOW", "true").env("ABIDE_SYNC__PUBLISHED_DELAY", "3m")
    });
    let key = Key::new(1);
    let (announcement, said) = pair.served_by_first(&key, "demo");
    pair.tell_second(&announcement);
    assert_eq!(query(&pair.second, "SELECT count(*) FROM sync_relays WHERE token = 0"), "1");
    query(&pair.second, "UPDATE sync_relays SET next_attempt = 0");
    eventually(SOON, || query(&pair.second, "SELECT token FROM sync_relays WHERE expires_at IS NULL") == "1");
    assert_eq!(query(&pair.second, "SELECT count(*) FROM sync_relays WHERE seen_at IS NULL"), "1", "not yet");

    query(&pair.second, "UPDATE sync_relay_repos SET from_at = 0");
    query(&pair.second, "UPDATE sync_relays SET next_attempt = 0");
    pair.until_second_serves(&said);
    pair.assert_healthy();
}

#[rstest]
fn events_of_a_partition_are_made_up_for_when_it_heals(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut pair = each_other(engine);
    let key = Key::new(1);
    served_by_both(&mut pair, &key, "demo");
    pair.second.kill();
    let commit = pair.first.git.commit_file(&pair.first.work, "a", "1", "more");
    let said = state(&key, now() - 60, "demo", &[("refs/heads/main", &commit)], Some("main"));
    pair.first.state_waits(&said);
    pair.first.push(&key, "demo", &["main"]);
    let issue = key.event(now() - 20, 1621, &[&["a", &key.coordinate("demo")], &["subject", "Lost?"]], "");
    assert!(pair.first.relay.publish(&issue).0);
    pair.second.restart();
    pair.until_second_serves(&said);
    pair.until_second_serves(&issue);
    assert_eq!(pair.refs_of_second(&key, "demo"), pair.first.refs(&key, "demo"));
    pair.assert_healthy();
}

/// Events that were published before this server knew the repository, and long ago, come by rounds.
#[rstest]
fn old_events_are_found_by_comparing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut pair = each_other(engine);
    let key = Key::new(1);
    let (announcement, said) = pair.served_by_first(&key, "demo");
    let coordinate = key.coordinate("demo");
    let old = |n: u64| key.event(1_600_000_000 + n, 1621, &[&["a", &coordinate], &["subject", "Old"]], "");
    let issues: Vec<Event> = (0..20).map(old).collect();
    for issue in &issues {
        assert!(pair.first.relay.publish(issue).0);
    }
    pair.tell_second(&announcement);
    pair.until_second_serves(&said);
    for issue in &issues {
        eventually(SOON, || serves(&pair.second, issue));
    }
    let learned = "SELECT capability FROM sync_relays";
    assert_eq!(query(&pair.second, learned), "negentropy");
    eventually(SOON, || query(&pair.second, "SELECT count(*) FROM sync_relays WHERE reconciled_at IS NOT NULL") == "1");
    assert_healthy(&pair.second);
}

#[rstest]
fn following_can_be_switched_off(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut pair = Pair::new(engine);
    let key = Key::new(1);
    let (announcement, said) = pair.served_by_first(&key, "demo");
    pair.tell_second(&announcement);
    pair.tell_second(&said);
    pair.until_second_serves(&said);
    assert_eq!(query(&pair.second, "SELECT count(*) FROM sync_relays WHERE token > 0"), "0");
    pair.assert_healthy();
}
