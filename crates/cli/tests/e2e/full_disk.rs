//! A disk that is nearly full: whatever writes is refused on every road, and reading, logging in and removing go on. All
//! routes of the API and all pages are walked, so a new one cannot be forgotten.

use crate::beside::Beside as _;
use crate::git::raw::packet;
use crate::grasp::setup::{Setup, now, state};
use crate::pages::browser::Browser;
use crate::pages::forged::{self, addresses};
use crate::pages::logged_in;
use crate::support::{person, query};
use abide_testkit::http::{self, Request};
use abide_testkit::{Engine, Key, Server};
use rstest::rstest;
use serde_json::json;

/// No disk has more than everything free, so a server believes that its disk is full.
pub const FULL: (&str, &str) = ("ABIDE_SERVER__MIN_FREE_PERCENT", "100");

/// The number of rows that people make, by table.
fn rows(server: &Server) -> String {
    let tables =
        ["users", "tokens", "ssh_keys", "repos", "stars", "watches", "issues", "comments", "labels", "nostr_events"];
    query(server, &format!("SELECT {}", tables.map(|table| format!("(SELECT count(*) FROM {table})")).join(", ")))
}

#[rstest]
fn every_route_of_the_api_that_writes_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut server = crate::support::builder(engine).start();
    let root = crate::support::admin(&server, "carol");
    root.create(&server, "demo", false);
    let token = server.add_token("carol", "repo,user,keys,hooks,notifications,admin");
    server.restart_with(&[FULL]);
    let before = rows(&server);
    let mut refused = 0;
    for route in abide_web_api::api_routes() {
        let path = route.full_path().replace("{owner}", "carol").replace("{repo}", "demo").replace(['{', '}'], "1");
        if route.works_on_a_full_disk() {
            continue;
        }
        let answer = http::json(route.method, server.http_addr(), &path, Some(&token), &json!({ "title": "x" }));
        assert_eq!(answer.status, 507, "{} {path}: {}", route.method, answer.text());
        assert!(answer.text().contains("nearly full"), "{}", answer.text());
        refused += 1;
    }
    assert!(refused > 30, "the routes are walked, not imagined: {refused}");
    assert_eq!(rows(&server), before);
    let suspended = http::put(server.http_addr(), "/api/v3/users/nobody/suspended", Some(&token), &json!({}));
    assert_eq!(suspended.status, 404, "whoever fills the disk can be stopped");
}

/// The forms that are taken: those that let someone in, make room, or take something away.
const TAKEN: [&str; 31] = [
    "/login",
    "/login/code",
    "/login/nostr",
    "/logout",
    "/admin/invites/revoke",
    "/admin/users/{id}/delete",
    "/admin/users/{id}/release",
    "/admin/users/{id}/suspend",
    "/admin/users/{id}/take-admin",
    "/notifications/{id}/done",
    "/notifications/{id}/read",
    // A mail program sends it, without a form of ours.
    "/notifications/unsubscribe/{token}",
    "/settings/account/delete",
    "/settings/account/emails/remove",
    "/settings/keys/remove",
    "/settings/nostr/unlink",
    "/settings/security/sessions/end",
    "/settings/security/sessions/end-all",
    "/settings/security/sessions/end-others",
    "/settings/security/two-factor/off",
    "/settings/tokens/revoke",
    "/transfers/{id}/cancel",
    "/transfers/{id}/decline",
    "/{owner}/{repo}/issues/{number}/comments/{id}/remove",
    "/{owner}/{repo}/labels/remove",
    "/{owner}/{repo}/milestones/remove",
    "/{owner}/{repo}/settings/archive",
    "/{owner}/{repo}/settings/collaborators/remove",
    "/{owner}/{repo}/settings/delete",
    "/{owner}/{repo}/settings/old-names/release",
    "/{owner}/{repo}/settings/webhooks/{hook}/delete",
];

#[rstest]
fn every_form_that_writes_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut server = forged::setup(engine);
    server.restart_with(&[FULL]);
    let carol = logged_in(&server, "carol");
    let before = rows(&server);
    let mut taken = Vec::new();
    let mut refused = 0;
    for (path, address) in abide_web_pages::page_paths().into_iter().zip(addresses(&server)) {
        if TAKEN.contains(&path) {
            continue;
        }
        let answer = carol.post(&address, &[("_token", &carol.token("/settings/profile")), ("title", "x")]);
        match answer.status {
            405 => {}
            507 => {
                assert!(answer.text().contains("nearly full"), "{path}: {}", answer.text());
                refused += 1;
            }
            status => taken.push(format!("{path} {status}")),
        }
    }
    assert!(taken.is_empty(), "{taken:#?}");
    assert!(refused > 40, "the pages are walked, not imagined: {refused}");
    assert_eq!(rows(&server), before);
    for path in TAKEN {
        let place = abide_web_pages::page_paths().iter().position(|known| *known == path);
        let address = &addresses(&server)[place.unwrap_or_else(|| panic!("there is no {path}"))];
        // Some of them end the session.
        let browser = logged_in(&server, "carol");
        let answer = browser.post(address, &[("_token", &browser.token("/settings/profile"))]);
        assert_ne!(answer.status, 507, "{path}: {}", answer.text());
    }
    assert_eq!(Browser::new(&server).get("/carol/demo").status, 200, "reads go on");
}

#[rstest]
fn pushes_events_and_long_requests_are_refused_on_every_road(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let (owner, alice) = (setup.owner.clone(), person(&setup.server, "alice").with_ssh(&setup.server));
    setup.served(&owner, "tool", &[]);
    alice.create(&setup.server, "demo", false);
    let (by_http, by_ssh) = (setup.server.http_url("alice", "demo"), setup.server.ssh_url("alice", "demo"));
    alice.git.ok(&setup.work, &["push", "--quiet", &by_http, "main"]);
    let second = alice.git.commit_file(&setup.work, "b", "b", "second");
    let next = state(&owner, now() - 3, "tool", &[("refs/heads/main", &second)], Some("main"));
    setup.state_waits(&next);
    setup.server.restart_with(&[FULL]);
    setup.relay = abide_testkit::Nostr::connect(&setup.server.url());
    let before = rows(&setup.server);

    let signed = setup.url(&owner, "tool");
    for road in [&by_http, &by_ssh, &signed, &format!("{by_http}/")] {
        let said = alice.git.fails(&setup.work, &["push", road, "main"]);
        assert!(said.contains("disk is nearly full"), "{road}: {said}");
    }
    let coordinate = owner.coordinate("tool");
    let stranger = Key::new(40);
    for event in [
        setup.announcement(&stranger, now(), "more", &[]),
        state(&owner, now(), "tool", &[("refs/heads/main", &setup.first)], Some("main")),
        stranger.event(now(), 1621, &[&["a", &coordinate]], "an issue"),
        stranger.event(now(), 1617, &[&["a", &coordinate]], "a patch"),
        stranger.event(now(), 1111, &[&["A", &coordinate]], "a comment"),
        stranger.event(now(), 0, &[], "{}"),
    ] {
        let (taken, said) = setup.relay.publish(&event);
        assert!(!taken && said.contains("nearly full"), "{} {said}", event.kind);
    }
    // A request that is kept in a file until git reads it.
    let haves: Vec<u8> = (0..3000).flat_map(|number| packet(&format!("have {number:040x}\n"))).collect();
    let body = [packet("command=fetch"), b"0001".to_vec(), packet(&format!("want {}\n", setup.first)), haves].concat();
    let long = Request::new("POST", "/alice/demo.git/git-upload-pack")
        .header("Content-Type", "application/x-git-upload-pack-request")
        .header("Git-Protocol", "version=2")
        .body([body, b"0000".to_vec()].concat());
    assert_ne!(long.send(setup.server.http_addr()).status, 200, "it is not written to the disk");
    assert_eq!(rows(&setup.server), before);

    for road in [&by_http, &by_ssh, &signed] {
        alice.git.ok(&alice.git.fresh_dir(), &["clone", "--quiet", road, "."]);
    }
    assert_eq!(setup.refs(&owner, "tool").len(), 2, "nothing moved");
    setup.server.restart_with(&[("ABIDE_SERVER__MIN_FREE_PERCENT", "0")]);
    for road in [&by_http, &signed] {
        alice.git.ok(&setup.work, &["push", "--quiet", road, "main"]);
    }
}
