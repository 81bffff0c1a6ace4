//! Deletion requests, and what comes back.

use super::setup::{Setup, WAITS, now, npub, state};
use crate::support::query;
use abide_core::failpoint;
use abide_nostr::Event;
use abide_testkit::{Engine, Key, Nostr, eventually, http};
use rstest::rstest;
use serde_json::json;
use std::time::Duration;

fn deletion(key: &Key, at: u64, tags: &[&[&str]]) -> Event {
    key.event(at, 5, tags, "")
}

#[rstest]
fn deletion_of_a_purgatory_announcement(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let announcement = setup.announce(&key, "demo", &[]);
    let id = announcement.id.to_hex();
    let other = Key::new(7);
    assert!(!setup.relay.publish(&deletion(&other, now(), &[&["e", &id]])).0, "only one's own events");
    assert_eq!(setup.refs(&key, "demo"), []);
    assert_eq!(setup.relay.publish(&deletion(&key, now(), &[&["e", &id]])), (true, String::new()));
    assert!(setup.push_fails(&key, "demo", &["main"]).contains("not found"));
    let again = setup.relay.publish(&announcement);
    assert!(!again.0, "{again:?}");
    let newer = setup.announcement(&key, now() + 1, "demo", &[]);
    assert_eq!(setup.relay.publish(&newer), (true, WAITS.to_owned()), "a new announcement may come");
    let coordinate = key.coordinate("demo");
    assert!(setup.relay.publish(&deletion(&key, now() + 2, &[&["a", &coordinate]])).0);
    assert!(setup.push_fails(&key, "demo", &["main"]).contains("not found"));
    setup.assert_healthy();
}

#[rstest]
fn a_served_repository_is_soft_deleted_and_a_newer_announcement_restores_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let (announcement, said) = setup.served(&key, "demo", &[]);
    assert!(setup.is_served(&said));
    let coordinate = key.coordinate("demo");
    let request = deletion(&key, now(), &[&["a", &coordinate]]);
    assert_eq!(setup.relay.publish(&request), (true, String::new()));
    assert!(!setup.is_served(&announcement) && !setup.is_served(&said) && setup.is_served(&request));
    assert!(setup.push_fails(&key, "demo", &["main"]).contains("not found"));
    let page = http::get(setup.server.http_addr(), "/r/1.git/info/refs?service=git-upload-pack", None);
    assert_eq!(page.status, 401, "gone for everyone, by whichever address");
    let old = setup.announcement(&key, now() - 1, "demo", &[]);
    assert!(setup.relay.publish(&old).1.starts_with("invalid:"), "older than the deletion");
    let newer = setup.announcement(&key, now() + 1, "demo", &[]);
    assert_eq!(setup.relay.publish(&newer), (true, String::new()), "the same repository comes back");
    assert!(setup.is_served(&newer) && setup.is_served(&said));
    assert!(setup.refs(&key, "demo").contains(&("refs/heads/main".into(), setup.first.clone())));
    setup.assert_healthy();
}

#[rstest]
fn a_deletion_request_outlives_the_repository(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let (announcement, said) = setup.served(&key, "demo", &[]);
    let at = now();
    let request = deletion(&key, at, &[&["a", &key.coordinate("demo")]]);
    assert_eq!(setup.relay.publish(&request), (true, String::new()));
    let slug = format!("{}/demo", npub(&key));
    setup.server.cli_ok(&["repo", "purge", "1", "--confirm", &slug]);
    assert!(setup.directories().is_empty());
    assert_eq!(query(&setup.server, "SELECT count(*) FROM nostr_events WHERE kind IN (30617, 30618)"), "0");
    assert!(setup.is_served(&request), "it is what tells others that it is gone");
    for old in [&announcement, &setup.announcement(&key, at - 1, "demo", &[&["name", "another"]])] {
        let (taken, reason) = setup.relay.publish(old);
        assert!(!taken && reason.starts_with("invalid:"), "{reason}");
    }
    assert!(!setup.say(&said).0, "nobody announces what it speaks for");
    let newer = setup.announcement(&key, now() + 1, "demo", &[]);
    assert_eq!(setup.relay.publish(&newer), (true, WAITS.to_owned()), "a newer one begins anew");
    setup.assert_healthy();
}

#[rstest]
fn a_newer_announcement_that_leaves_us_out_withdraws_a_served_repository(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let (announcement, _) = setup.served(&key, "demo", &[]);
    let tags: &[&[&str]] =
        &[&["d", "demo"], &["clone", "https://elsewhere.example/x.git"], &["relays", "wss://elsewhere.example"]];
    let (taken, reason) = setup.relay.publish(&key.event(now(), 30_617, tags, ""));
    assert!(!taken && reason.starts_with("restricted:"), "{reason}");
    assert!(!setup.is_served(&announcement));
    assert!(setup.push_fails(&key, "demo", &["main"]).contains("not found"));
    let back = setup.announcement(&key, now() + 1, "demo", &[]);
    assert_eq!(setup.relay.publish(&back), (true, String::new()));
    assert!(setup.refs(&key, "demo").contains(&("refs/heads/main".into(), setup.first.clone())));
    setup.assert_healthy();
}

#[rstest]
fn a_deleted_state_leaves_the_refs_until_the_next_one(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let (_, said) = setup.served(&key, "demo", &[]);
    let id = said.id.to_hex();
    assert_eq!(setup.relay.publish(&deletion(&key, now(), &[&["e", &id]])), (true, String::new()));
    assert!(!setup.is_served(&said));
    assert!(!setup.say(&said).0, "it does not come back");
    assert!(setup.refs(&key, "demo").contains(&("refs/heads/main".into(), setup.first.clone())));
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    assert!(setup.push_fails(&key, "demo", &["main"]).contains("no authorised state"));
    let next = state(&key, now() + 1, "demo", &[("refs/heads/main", &second)], Some("main"));
    setup.state_waits(&next);
    setup.push(&key, "demo", &["main"]);
    setup.assert_healthy();
}

#[rstest]
fn a_deleted_proposal_takes_its_ref_along(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let author = Key::new(9);
    let coordinate = key.coordinate("demo");
    let event = author.event(now() - 2, 1618, &[&["a", &coordinate], &["c", &commit]], "");
    let name = format!("refs/nostr/{}", event.id.to_hex());
    setup.push(&key, "demo", &[&format!("{commit}:{name}")]);
    assert!(setup.relay.publish(&event).0);
    let by_hand = setup.push_fails(&key, "demo", &[&format!(":{name}")]);
    assert!(by_hand.contains("cannot be deleted by push; delete the event"), "{by_hand}");
    let id = event.id.to_hex();
    assert_eq!(setup.relay.publish(&deletion(&author, now(), &[&["e", &id]])), (true, String::new()));
    assert!(!setup.is_served(&event));
    assert!(!setup.refs(&key, "demo").iter().any(|(found, _)| *found == name));
    let blocked = (false, "blocked: this event was deleted by its author".to_owned());
    assert_eq!(setup.relay.publish(&event), blocked, "whoever has a copy cannot bring it back");
    setup.assert_healthy();
}

#[rstest]
fn crash_between_a_deleted_proposal_and_its_ref(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let (author, first, coordinate) = (Key::new(9), setup.first.clone(), key.coordinate("demo"));
    let event = author.event(now() - 2, 1618, &[&["a", &coordinate], &["c", &first]], "");
    assert_eq!(setup.relay.publish(&event), (true, String::new()), "its commit is here");
    let id = event.id.to_hex();
    let name = format!("refs/nostr/{id}");
    assert!(setup.refs(&key, "demo").iter().any(|(found, _)| *found == name));
    setup.server.terminate();
    setup.server.restart_with_failpoint(failpoint::PR_EVENT_DELETED);
    let request = deletion(&author, now(), &[&["e", &id]]);
    Nostr::connect(&setup.server.url()).say(&json!(["EVENT", request]));
    setup.server.wait_exit();
    setup.server.restart();
    setup.relay = Nostr::connect(&setup.server.url());
    assert!(!setup.is_served(&event));
    eventually(Duration::from_secs(30), || !setup.refs(&key, "demo").iter().any(|(found, _)| *found == name));
    setup.assert_healthy();
}
