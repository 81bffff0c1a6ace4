//! Announced repositories that are not served yet: the missing half, for everyone, and all of them for operators.

use super::browser::Browser;
use super::logged_in;
use crate::signed::{governed, npub, wait, wait_states};
use crate::support::{admin, person, server};
use abide_testkit::{Engine, Key, Nostr, http};
use rstest::rstest;

#[rstest]
fn a_waiting_repository_tells_what_is_missing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (key, at) = (Key::new(1), Key::now() - 60);
    let (npub, oid) = (npub(&key), "ab".repeat(20));
    let announced = key.announcement(at, "my tool", &server.url());
    wait(&server, "my tool", announced.clone(), None);
    let browser = Browser::new(&server);
    let answer = browser.get(&format!("/{npub}/my%20tool"));
    let html = answer.text();
    assert_eq!((answer.status, answer.header("x-robots-tag")), (200, Some("noindex")), "{html}");
    assert!(html.contains("name=\"robots\" content=\"noindex\"") && html.contains(&announced.id.to_hex()), "{html}");
    assert!(html.contains("The signed state and the git data"), "{html}");
    assert!(html.contains(&format!("git push {}/{npub}/my%20tool.git \"refs/heads/*\"", server.url())), "{html}");
    let status =
        |identifier: &str| http::get(server.http_addr(), &format!("/api/v3/grasp/{npub}/{identifier}/status"), None);
    let json = status("my%20tool").json();
    assert_eq!(
        (json["status"].as_str(), json["missing"].as_array().map(Vec::len)),
        (Some("waiting"), Some(2)),
        "{json}"
    );
    for unknown in [status("other"), http::get(server.http_addr(), "/api/v3/grasp/npub1x/a/status", None)] {
        assert_eq!(unknown.status, 404);
    }
    assert_eq!(browser.get(&format!("/{npub}")).status, 404, "the key has no account yet");
    assert_eq!(browser.get(&format!("/{npub}/my%20tool/issues")).status, 404);

    let state =
        key.event(at, 30_618, &[&["d", "a/b"], &["refs/heads/main", &oid], &["HEAD", "ref: refs/heads/main"]], "");
    wait(&server, "a/b", key.announcement(at, "a/b", &server.url()), Some(state.clone()));
    let html = browser.page(&format!("/{npub}/a%2Fb"));
    assert!(html.contains("refs/heads/main") && html.contains(&oid), "{html}");
    let json = status("a%2Fb").json();
    let first = &json["states"][0];
    assert_eq!((first["event"].as_str(), first["missing_count"].as_i64()), (Some(state.id.to_hex().as_str()), Some(1)));
    assert_eq!((first["missing"][0]["sha"].as_str(), first["authorised"].as_bool()), (Some(oid.as_str()), Some(true)));
    assert_eq!(json["missing"], serde_json::json!(["git"]));
    for page in ["/explore", "/explore/activity", "/search?q=tool"] {
        assert!(!browser.page(page).contains(&npub[..10]), "{page} lists what waits");
    }
}

#[rstest]
fn a_state_that_speaks_for_another_owner_is_still_missing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob, at) = (Key::new(1), Key::new(2), Key::now() - 600);
    let said = |key: &Key, at: u64| {
        let refs: &[&[&str]] = &[&["d", "tool"], &["refs/heads/main", &"ab".repeat(20)]];
        key.event(at, 30_618, refs, "")
    };
    let of_alice = said(&alice, at);
    wait(&server, "tool", alice.announcement(at, "tool", &server.url()), Some(of_alice.clone()));
    wait(&server, "tool", bob.announcement(at, "tool", &server.url()), None);
    let status =
        |key: &Key| http::get(server.http_addr(), &format!("/api/v3/grasp/{}/tool/status", npub(key)), None).json();
    let page = |key: &Key| Browser::new(&server).page(&format!("/{}/tool", npub(key)));
    assert_eq!(status(&alice)["missing"], serde_json::json!(["git"]));
    let json = status(&bob);
    assert_eq!(json["missing"], serde_json::json!(["state", "git"]), "{json}");
    assert_eq!(json["states"][0]["authorised"], false, "{json}");
    let html = page(&bob);
    assert!(
        html.contains("The signed state and the git data") && html.contains("a maintainer signs a state"),
        "{html}"
    );
    assert!(html.contains("Publish the state with a nostr git client") && html.contains("Not authorised"), "{html}");
    assert!(!page(&alice).contains("The signed state and the git data"));

    // However many strangers say something newer or older, the owner's own is told.
    let stranger = Key::new(9);
    let many = (1..=120).flat_map(|n| [said(&stranger, at + n), said(&stranger, at - n)]);
    wait_states(&server, "tool", many.collect());
    let json = status(&alice);
    assert_eq!(json["missing"], serde_json::json!(["git"]), "{}", json["missing"]);
    assert_eq!(json["states"][0]["event"], of_alice.id.to_hex());
    assert_eq!(json["states"].as_array().map(Vec::len), Some(21), "and a few of others");
    assert!(!page(&alice).contains("The signed state and the git data"));
}

#[rstest]
fn a_served_repository_says_so(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let key = Key::new(1);
    governed(&server, &key, "tool", |_| {});
    let path = format!("/api/v3/grasp/{}/tool/status", npub(&key));
    let json = http::get(server.http_addr(), &path, None).json();
    assert_eq!(
        (json["status"].as_str(), json["missing"].as_array().map(Vec::len)),
        (Some("served"), Some(0)),
        "{json}"
    );
    assert_eq!(json["html_url"], format!("{}/{}/tool", server.url(), npub(&key)));
}

#[rstest]
fn operators_see_all_that_waits_and_nobody_else_does(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let key = Key::new(1);
    person(&server, "ann");
    admin(&server, "boss");
    let boss = logged_in(&server, "boss");
    assert!(boss.page("/admin/purgatory").contains("Nothing pending"));
    let at = Key::now() - 60;
    let state = key.event(at, 30_618, &[&["d", "x/y"], &["refs/heads/main", &"ab".repeat(20)]], "");
    wait(&server, "x/y", key.announcement(at, "x/y", &server.url()), Some(state));
    let html = boss.page("/admin/purgatory");
    assert!(html.contains(&format!("href=\"/{}/x%2Fy\"", npub(&key))), "{html}");
    assert!(html.contains("announcement") && html.contains(">state<"), "{html}");
    let proposer = Key::new(2);
    governed(&server, &key, "tool", |_| {});
    let proposed = proposer.event(at, 1618, &[&["a", &key.coordinate("tool")], &["c", &"cd".repeat(20)]], "");
    assert!(Nostr::connect(&server.url()).publish(&proposed).0);
    let html = boss.page("/admin/purgatory");
    assert!(html.contains(">proposal<") && html.contains(&format!("href=\"/{}/tool\"", npub(&key))), "{html}");
    for other in [logged_in(&server, "ann"), Browser::new(&server)] {
        assert_eq!(other.get("/admin/purgatory").status, 404);
    }
}
