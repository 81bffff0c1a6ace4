//! Deletion requests, and what comes back.

use super::scene::{Scene, WAITS, now, npub, state};
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
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    let announcement = scene.announce(&key, "demo", &[]);
    let id = announcement.id.to_hex();
    let other = Key::new(7);
    assert!(!scene.relay.publish(&deletion(&other, now(), &[&["e", &id]])).0, "only one's own events");
    assert_eq!(scene.refs(&key, "demo"), []);
    assert_eq!(scene.relay.publish(&deletion(&key, now(), &[&["e", &id]])), (true, String::new()));
    assert!(scene.push_fails(&key, "demo", &["main"]).contains("not found"));
    let again = scene.relay.publish(&announcement);
    assert!(!again.0, "{again:?}");
    let newer = scene.announcement(&key, now() + 1, "demo", &[]);
    assert_eq!(scene.relay.publish(&newer), (true, WAITS.to_owned()), "a new announcement may come");
    let coordinate = key.coordinate("demo");
    assert!(scene.relay.publish(&deletion(&key, now() + 2, &[&["a", &coordinate]])).0);
    assert!(scene.push_fails(&key, "demo", &["main"]).contains("not found"));
    scene.assert_healthy();
}

#[rstest]
fn a_served_repository_is_soft_deleted_and_a_newer_announcement_restores_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    let (announcement, said) = scene.served(&key, "demo", &[]);
    assert!(scene.is_served(&said));
    let coordinate = key.coordinate("demo");
    let request = deletion(&key, now(), &[&["a", &coordinate]]);
    assert_eq!(scene.relay.publish(&request), (true, String::new()));
    assert!(!scene.is_served(&announcement) && !scene.is_served(&said) && scene.is_served(&request));
    assert!(scene.push_fails(&key, "demo", &["main"]).contains("not found"));
    let page = http::get(scene.server.http_addr(), "/r/1.git/info/refs?service=git-upload-pack", None);
    assert_eq!(page.status, 401, "gone for everyone, by whichever address");
    let old = scene.announcement(&key, now() - 1, "demo", &[]);
    assert!(scene.relay.publish(&old).1.starts_with("invalid:"), "older than the deletion");
    let newer = scene.announcement(&key, now() + 1, "demo", &[]);
    assert_eq!(scene.relay.publish(&newer), (true, String::new()), "the same repository comes back");
    assert!(scene.is_served(&newer) && scene.is_served(&said));
    assert!(scene.refs(&key, "demo").contains(&("refs/heads/main".into(), scene.first.clone())));
    scene.assert_healthy();
}

#[rstest]
fn a_deletion_request_outlives_the_repository(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    let (announcement, said) = scene.served(&key, "demo", &[]);
    let at = now();
    let request = deletion(&key, at, &[&["a", &key.coordinate("demo")]]);
    assert_eq!(scene.relay.publish(&request), (true, String::new()));
    let slug = format!("{}/demo", npub(&key));
    scene.server.cli_ok(&["repo", "purge", "1", "--confirm", &slug]);
    assert!(scene.directories().is_empty());
    assert_eq!(query(&scene.server, "SELECT count(*) FROM nostr_events WHERE kind IN (30617, 30618)"), "0");
    assert!(scene.is_served(&request), "it is what tells others that it is gone");
    for old in [&announcement, &scene.announcement(&key, at - 1, "demo", &[&["name", "another"]])] {
        let (taken, reason) = scene.relay.publish(old);
        assert!(!taken && reason.starts_with("invalid:"), "{reason}");
    }
    assert!(!scene.say(&said).0, "nobody announces what it speaks for");
    let newer = scene.announcement(&key, now() + 1, "demo", &[]);
    assert_eq!(scene.relay.publish(&newer), (true, WAITS.to_owned()), "a newer one begins anew");
    scene.assert_healthy();
}

#[rstest]
fn a_newer_announcement_that_leaves_us_out_withdraws_a_served_repository(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    let (announcement, _) = scene.served(&key, "demo", &[]);
    let tags: &[&[&str]] =
        &[&["d", "demo"], &["clone", "https://elsewhere.example/x.git"], &["relays", "wss://elsewhere.example"]];
    let (taken, reason) = scene.relay.publish(&key.event(now(), 30_617, tags, ""));
    assert!(!taken && reason.starts_with("restricted:"), "{reason}");
    assert!(!scene.is_served(&announcement));
    assert!(scene.push_fails(&key, "demo", &["main"]).contains("not found"));
    let back = scene.announcement(&key, now() + 1, "demo", &[]);
    assert_eq!(scene.relay.publish(&back), (true, String::new()));
    assert!(scene.refs(&key, "demo").contains(&("refs/heads/main".into(), scene.first.clone())));
    scene.assert_healthy();
}

#[rstest]
fn a_deleted_state_leaves_the_refs_until_the_next_one(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    let (_, said) = scene.served(&key, "demo", &[]);
    let id = said.id.to_hex();
    assert_eq!(scene.relay.publish(&deletion(&key, now(), &[&["e", &id]])), (true, String::new()));
    assert!(!scene.is_served(&said));
    assert!(!scene.say(&said).0, "it does not come back");
    assert!(scene.refs(&key, "demo").contains(&("refs/heads/main".into(), scene.first.clone())));
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    assert!(scene.push_fails(&key, "demo", &["main"]).contains("no authorised state"));
    let next = state(&key, now() + 1, "demo", &[("refs/heads/main", &second)], Some("main"));
    scene.state_waits(&next);
    scene.push(&key, "demo", &["main"]);
    scene.assert_healthy();
}

#[rstest]
fn a_deleted_proposal_takes_its_ref_along(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let commit = scene.git.commit_file(&scene.work, "feature", "1", "a feature");
    let author = Key::new(9);
    let coordinate = key.coordinate("demo");
    let event = author.event(now() - 2, 1618, &[&["a", &coordinate], &["c", &commit]], "");
    let name = format!("refs/nostr/{}", event.id.to_hex());
    scene.push(&key, "demo", &[&format!("{commit}:{name}")]);
    assert!(scene.relay.publish(&event).0);
    let by_hand = scene.push_fails(&key, "demo", &[&format!(":{name}")]);
    assert!(by_hand.contains("cannot be deleted by push; delete the event"), "{by_hand}");
    let id = event.id.to_hex();
    assert_eq!(scene.relay.publish(&deletion(&author, now(), &[&["e", &id]])), (true, String::new()));
    assert!(!scene.is_served(&event));
    assert!(!scene.refs(&key, "demo").iter().any(|(found, _)| *found == name));
    let blocked = (false, "blocked: this event was deleted by its author".to_owned());
    assert_eq!(scene.relay.publish(&event), blocked, "whoever has a copy cannot bring it back");
    scene.assert_healthy();
}

#[rstest]
fn crash_between_a_deleted_proposal_and_its_ref(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let (author, first, coordinate) = (Key::new(9), scene.first.clone(), key.coordinate("demo"));
    let event = author.event(now() - 2, 1618, &[&["a", &coordinate], &["c", &first]], "");
    assert_eq!(scene.relay.publish(&event), (true, String::new()), "its commit is here");
    let id = event.id.to_hex();
    let name = format!("refs/nostr/{id}");
    assert!(scene.refs(&key, "demo").iter().any(|(found, _)| *found == name));
    scene.server.terminate();
    scene.server.restart_with_failpoint(failpoint::PR_EVENT_DELETED);
    let request = deletion(&author, now(), &[&["e", &id]]);
    Nostr::connect(&scene.server.url()).say(&json!(["EVENT", request]));
    scene.server.wait_exit();
    scene.server.restart();
    scene.relay = Nostr::connect(&scene.server.url());
    assert!(!scene.is_served(&event));
    eventually(Duration::from_secs(30), || !scene.refs(&key, "demo").iter().any(|(found, _)| *found == name));
    scene.assert_healthy();
}
