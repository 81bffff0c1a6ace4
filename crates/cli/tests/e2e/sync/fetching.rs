//! Which events are served with git data from elsewhere.

use super::pair::{Pair, SOON};
use crate::grasp::integrity::{nostr_ref, proposal};
use crate::grasp::setup::{noise, now, state};
use crate::support::query;
use abide_testkit::{Engine, Key, eventually};
use rstest::rstest;

#[rstest]
fn a_repository_that_is_announced_here_is_fetched_from_the_other_server(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut pair = Pair::new(engine);
    let key = Key::new(1);
    let (announcement, said) = pair.served_by_first(&key, "demo");
    pair.tell_second(&announcement);
    pair.tell_second(&said);
    pair.until_second_serves(&said);
    assert!(pair.second_serves(&announcement));
    assert_eq!(pair.refs_of_second(&key, "demo"), pair.first.refs(&key, "demo"));

    let [_, url] = pair.urls(&key, "demo");
    let copy = pair.first.work.with_file_name("copy");
    pair.first.git.ok(&pair.first.work, &["clone", "-q", &url, copy.to_str().expect("a path of ours")]);
    assert_eq!(std::fs::read_to_string(copy.join("README.md")).unwrap(), "hello\n");
    eventually(SOON, || query(&pair.second, "SELECT count(*) FROM sync_queue") == "0");
    assert_eq!(query(&pair.second, "SELECT transport FROM pushes"), "sync");
    pair.assert_healthy();
}

#[rstest]
fn a_newer_state_fetches_only_what_is_new_and_tags_and_deletions_follow(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut pair = Pair::new(engine);
    let key = Key::new(1);
    let large = noise(7, 400_000);
    pair.first.first = pair.first.git.commit_file(&pair.first.work, "large", &large, "much");
    let (announcement, said) = pair.served_by_first(&key, "demo");
    pair.tell_second(&announcement);
    pair.tell_second(&said);
    pair.until_second_serves(&said);

    let second = pair.first.git.commit_file(&pair.first.work, "a", "a", "second");
    pair.first.git.ok(&pair.first.work, &["tag", "-a", "v1", "-m", "one"]);
    let tag = pair.first.git.ok(&pair.first.work, &["rev-parse", "v1"]).trim().to_owned();
    let refs = [("refs/heads/next", second.as_str()), ("refs/tags/v1", tag.as_str())];
    let newer = state(&key, now() - 50, "demo", &refs, Some("next"));
    pair.first.state_waits(&newer);
    pair.first.push(&key, "demo", &["main:refs/heads/next", "v1", ":refs/heads/main"]);
    pair.tell_second(&newer);
    pair.until_second_serves(&newer);
    assert_eq!(pair.refs_of_second(&key, "demo"), pair.first.refs(&key, "demo"));
    let fetched = metric(&pair, "abide_sync_bytes_total");
    assert!(fetched > 300_000.0 && fetched < 600_000.0, "the first pack, and little more: {fetched}");
    pair.assert_healthy();
}

fn metric(pair: &Pair, name: &str) -> f64 {
    let text = abide_testkit::http::get(pair.second.http_addr(), "/metrics", None).text();
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0.0)
}

#[rstest]
fn the_commit_of_a_pull_request_is_fetched_from_a_clone_url_of_its_event(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut pair = Pair::new(engine);
    let (key, author) = (Key::new(1), Key::new(2));
    let (announcement, said) = pair.served_by_first(&key, "demo");
    pair.tell_second(&announcement);
    pair.tell_second(&said);
    pair.until_second_serves(&said);

    // The author's own repository, on the first server alone.
    pair.first.git.ok(&pair.first.work, &["checkout", "-q", "-b", "feature"]);
    let commit = pair.first.git.commit_file(&pair.first.work, "feature", "1", "a feature");
    let fork = state(&author, now() - 40, "fork", &[("refs/heads/feature", &commit)], Some("feature"));
    pair.first.announce(&author, "fork", &[]);
    pair.first.state_waits(&fork);
    pair.first.push(&author, "fork", &["feature"]);

    let clone = pair.first.url(&author, "fork");
    let coordinate = key.coordinate("demo");
    let tags: &[&[&str]] = &[&["a", &coordinate], &["c", &commit], &["clone", &clone], &["subject", "A feature"]];
    let event = author.event(now() - 30, 1618, tags, "");
    pair.tell_second(&event);
    pair.until_second_serves(&event);
    assert!(pair.refs_of_second(&key, "demo").contains(&(nostr_ref(&event), commit)));
    pair.assert_healthy();
}

#[rstest]
fn objects_of_one_state_come_from_two_servers(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut pair = Pair::new(engine);
    let (key, other) = (Key::new(1), Key::new(2));
    // The first server has main in one repository and an unrelated branch in another.
    pair.served_by_first(&key, "main-only");
    let main = pair.first.first.clone();
    pair.first.git.ok(&pair.first.work, &["checkout", "-q", "--orphan", "second"]);
    let branch = pair.first.git.commit_file(&pair.first.work, "b", "b", "unrelated");
    pair.first.announce(&other, "branch-only", &[]);
    let said = state(&other, now() - 40, "branch-only", &[("refs/heads/second", &branch)], Some("second"));
    pair.first.state_waits(&said);
    pair.first.push(&other, "branch-only", &["second"]);

    let halves = [pair.first.url(&key, "main-only"), pair.first.url(&other, "branch-only")];
    let announcement = pair.announcement(&key, "whole", &[&halves[0], &halves[1]]);
    let refs = [("refs/heads/main", main.as_str()), ("refs/heads/second", branch.as_str())];
    let whole = state(&key, now() - 30, "whole", &refs, Some("main"));
    pair.tell_second(&announcement);
    pair.tell_second(&whole);
    pair.until_second_serves(&whole);
    let listed = pair.refs_of_second(&key, "whole");
    assert!(refs.iter().all(|(name, oid)| listed.contains(&((*name).to_owned(), (*oid).to_owned()))), "{listed:?}");
    pair.assert_healthy();
}

#[rstest]
fn other_owners_of_a_fetched_state_are_aligned_too(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut pair = Pair::new(engine);
    let (key, other) = (Key::new(1), Key::new(2));
    let (announcement, said) = pair.served_by_first(&key, "demo");
    let urls = pair.urls(&other, "demo");
    let relays = [pair.first.server.url(), pair.second.url()].map(|url| url.replacen("http", "ws", 1));
    let (clone, relays) = (["clone", &urls[0], &urls[1]], ["relays", &relays[0], &relays[1]]);
    let maintainers = ["maintainers", &key.public().to_hex()];
    let beside = other.event(now() - 95, 30_617, &[&["d", "demo"], &clone, &relays, &maintainers], "");
    pair.tell_second(&announcement);
    pair.tell_second(&beside);
    pair.tell_second(&said);
    pair.until_second_serves(&said);
    pair.until_second_serves(&beside);
    assert_eq!(pair.refs_of_second(&other, "demo"), pair.first.refs(&key, "demo"));
    pair.assert_healthy();
}

/// The state is here before the other server has its objects: the search goes on until it has.
#[rstest]
fn git_data_that_comes_to_the_other_server_later_is_found(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut pair = Pair::new(engine);
    let key = Key::new(1);
    let (announcement, said) = pair.served_by_first(&key, "demo");
    pair.tell_second(&announcement);
    pair.tell_second(&said);
    pair.until_second_serves(&said);
    let second = pair.first.git.commit_file(&pair.first.work, "a", "a", "second");
    let newer = state(&key, now() - 50, "demo", &[("refs/heads/main", &second)], Some("main"));
    pair.tell_second(&newer);
    let [elsewhere, _] = pair.urls(&key, "demo");
    eventually(SOON, || pair.outcomes(&key, "demo").contains(&(elsewhere.clone(), "absent".into())));
    assert!(!pair.second_serves(&newer));
    assert!(pair.status(&key, "demo")["search"]["next_attempt_at"].is_string());

    pair.first.state_waits(&newer);
    pair.first.push(&key, "demo", &["main"]);
    query(&pair.second, "UPDATE sync_queue SET next_attempt = 0 WHERE expires_at IS NULL");
    pair.until_second_serves(&newer);
    pair.assert_healthy();
}

/// Somebody pushes here within the delay: no other server is asked.
#[rstest]
fn a_push_within_the_delay_needs_no_request(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut pair = Pair::with(engine, |builder| builder.env("ABIDE_SYNC__PUBLISHED_DELAY", "3m"));
    let key = Key::new(1);
    let (announcement, said) = pair.served_by_first(&key, "demo");
    pair.tell_second(&announcement);
    pair.tell_second(&said);
    assert_eq!(query(&pair.second, "SELECT count(*) FROM sync_queue WHERE identifier = 'demo'"), "1");
    let [_, url] = pair.urls(&key, "demo");
    pair.first.git.ok(&pair.first.work, &["push", "-q", &url, "main"]);
    assert!(pair.second_serves(&said));
    // The delay is over.
    query(&pair.second, "UPDATE sync_queue SET next_attempt = 0 WHERE expires_at IS NULL");
    eventually(SOON, || query(&pair.second, "SELECT count(*) FROM sync_queue") == "0");
    assert_eq!(query(&pair.second, "SELECT count(*) FROM sync_requests"), "0");
    pair.assert_healthy();
}

#[rstest]
fn nothing_is_fetched_for_what_was_deleted(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut pair = Pair::with(engine, |builder| builder.env("ABIDE_SYNC__PUBLISHED_DELAY", "3m"));
    let key = Key::new(1);
    let (announcement, said) = pair.served_by_first(&key, "demo");
    pair.tell_second(&announcement);
    pair.tell_second(&said);
    let coordinate = key.coordinate("demo");
    assert!(pair.relay.publish(&key.event(now(), 5, &[&["a", &coordinate]], "")).0);
    query(&pair.second, "UPDATE sync_queue SET next_attempt = 0 WHERE expires_at IS NULL");
    eventually(SOON, || query(&pair.second, "SELECT count(*) FROM sync_queue WHERE next_attempt <= 0") == "0");
    assert_eq!(query(&pair.second, "SELECT count(*) FROM sync_requests"), "0");
    assert!(!pair.second_serves(&said));
    pair.assert_healthy();
}

#[rstest]
fn a_pull_request_that_names_two_repositories_is_fetched_once_for_both(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut pair = Pair::new(engine);
    let (key, other) = (Key::new(1), Key::new(3));
    for (owner, identifier) in [(&key, "demo"), (&other, "demo-two")] {
        let (announcement, said) = pair.served_by_first(owner, identifier);
        pair.tell_second(&announcement);
        pair.tell_second(&said);
        pair.until_second_serves(&said);
    }
    let commit = pair.first.git.commit_file(&pair.first.work, "feature", "1", "a feature");
    let event = proposal(&commit, &[key.coordinate("demo"), other.coordinate("demo-two")]);
    pair.first.state_waits(&event);
    pair.first.push(&key, "demo", &[&format!("{commit}:{}", nostr_ref(&event))]);
    pair.tell_second(&event);
    pair.until_second_serves(&event);
    // The event is served with the first ref; the other repository follows at once.
    for (owner, identifier) in [(&key, "demo"), (&other, "demo-two")] {
        eventually(SOON, || pair.refs_of_second(owner, identifier).contains(&(nostr_ref(&event), commit.clone())));
    }
    pair.assert_healthy();
}
