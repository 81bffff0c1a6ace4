//! A search for git data, as people and the operator see it.

use super::pair::{Pair, SOON, fetching};
use super::upstream::{Upstream, respond};
use crate::beside::Beside as _;
use crate::grasp::setup::{WAITS, now, npub, state};
use crate::pages::browser::Browser;
use crate::pages::{add_admin, logged_in};
use crate::support::query;
use abide_testkit::{Engine, Key, Nostr, eventually};
use rstest::rstest;

#[rstest]
fn the_page_and_the_api_say_where_git_data_is_looked_for_and_when_next(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let upstream = Upstream::new(|_, stream| respond(stream, "404 Not Found", "text/plain", b"no"));
    let mut pair = Pair::with(engine, |builder| builder.env("ABIDE_SYNC__PUBLISHED_DELAY", "3m"));
    let key = Key::new(1);
    let clone = upstream.url("x.git");
    let announcement = pair.announcement(&key, "demo", &[&clone]);
    pair.tell_second(&announcement);
    let said = state(&key, now() - 40, "demo", &[("refs/heads/main", &"ab".repeat(20))], Some("main"));
    pair.tell_second(&said);
    let search = &pair.status(&key, "demo")["search"];
    assert_eq!((search["running"].as_bool(), search["attempts"].as_i64()), (Some(false), Some(0)), "{search}");
    assert!(search["next_attempt_at"].is_string() && search["sources"].as_array().is_some_and(Vec::is_empty));
    let browser = Browser::new(&pair.second);
    let page = format!("/{}/demo", npub(&key));
    assert!(browser.page(&page).contains("None has been tried yet"), "{}", browser.page(&page));

    query(&pair.second, "UPDATE sync_queue SET next_attempt = 0");
    eventually(SOON, || !pair.outcomes(&key, "demo").is_empty());
    assert!(pair.outcomes(&key, "demo").contains(&(clone.clone(), "absent".into())));
    let html = browser.page(&page);
    assert!(html.contains(&clone) && html.contains("no such repository (status 404)"), "{html}");
}

#[rstest]
fn an_administrator_tries_now_lets_rest_and_forgets(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let upstream = Upstream::new(|_, stream| respond(stream, "404 Not Found", "text/plain", b"no"));
    let server = fetching(engine).start();
    add_admin(&server, "carol");
    let carol = logged_in(&server, "carol");
    assert!(carol.page("/admin/sync").contains("Nothing to fetch"));

    let key = Key::new(1);
    let own = format!("{}/{}/demo.git", server.url(), npub(&key));
    let relays = server.url().replacen("http", "ws", 1);
    let clone = upstream.url("x.git");
    let tags: &[&[&str]] = &[&["d", "demo"], &["clone", &clone, &own], &["relays", &relays]];
    let mut relay = Nostr::connect(&server.url());
    assert_eq!(relay.publish(&key.event(now() - 50, 30_617, tags, "")), (true, WAITS.to_owned()));
    let said = state(&key, now() - 40, "demo", &[("refs/heads/main", &"ab".repeat(20))], Some("main"));
    assert_eq!(relay.publish(&said), (true, WAITS.to_owned()));
    let attempts = |count: &str| {
        eventually(SOON, || query(&server, "SELECT attempts FROM sync_queue WHERE expires_at IS NULL") == count);
    };
    attempts("1");
    let html = carol.page("/admin/sync");
    assert!(html.contains(&clone) && html.contains(&upstream.addr.to_string()), "{html}");

    let id = query(&server, "SELECT id FROM sync_queue");
    let domain = upstream.addr.to_string();
    let manage = |action: &str, field: (&str, &str)| {
        let token = carol.token("/admin/sync");
        carol.post("/admin/sync/manage", &[("_token", token.as_str()), ("action", action), field])
    };
    assert_eq!(manage("try", ("id", &id)).status, 303);
    attempts("2");
    assert_eq!(upstream.requests().len(), 2);

    assert_eq!(manage("rest", ("domain", &domain)).status, 303);
    assert!(carol.page("/admin/sync").contains("rests"));
    assert_eq!(manage("try", ("id", &id)).status, 303);
    attempts("3");
    assert_eq!(upstream.requests().len(), 2, "it rests");
    assert_eq!(manage("wake", ("domain", &domain)).status, 303);
    assert_eq!(manage("try", ("id", &id)).status, 303);
    attempts("4");
    assert_eq!(upstream.requests().len(), 3);

    assert_eq!(manage("forget-domain", ("domain", &domain)).status, 303);
    assert_eq!(manage("forget", ("id", &id)).status, 303);
    assert!(carol.page("/admin/sync").contains("Nothing to fetch"));
    assert_eq!(manage("try", ("id", &id)).status, 409);
    assert_eq!(manage("other", ("id", &id)).status, 400);
    let audited = "SELECT count(*) FROM audit_log WHERE action = 'sync_managed'";
    assert_eq!(query(&server, audited), "7");
    server.add_user("bob");
    let bob = logged_in(&server, "bob");
    let token = bob.token("/settings/profile");
    assert_eq!(bob.post("/admin/sync/manage", &[("_token", &token), ("action", "try"), ("id", &id)]).status, 404);
}
