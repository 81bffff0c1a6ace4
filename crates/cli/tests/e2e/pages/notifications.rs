//! The inbox, the settings of mails, and the link that ends a thread.

use super::browser::{Browser, location};
use super::{SOON, logged_in};
use crate::beside::Beside as _;
use crate::support::{Person, person, query, server};
use abide_testkit::http::Request;
use abide_testkit::{Engine, Server, eventually, http};
use rstest::rstest;
use serde_json::json;
use std::fs;

fn setup(engine: Engine) -> (Server, Person) {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "tool", false);
    server.add_user("bob");
    query(&server, "UPDATE emails SET verified_at = 1 WHERE address = 'bob@example.org' RETURNING id");
    let watched = logged_in(&server, "bob").submit("/alice/tool", "/alice/tool/watch", &[("level", "all")]);
    assert_eq!(watched.status, 303);
    (server, alice)
}

fn open(server: &Server, alice: &Person, title: &str) {
    let body = json!({ "title": title, "body": "It is so." });
    let made = http::post(server.http_addr(), "/api/v3/repos/alice/tool/issues", Some(&alice.token), &body);
    assert_eq!(made.status, 201, "{}", made.text());
}

/// Waits until the head of a page says how much is unread.
#[track_caller]
fn waits_for(browser: &Browser<'_>, count: usize) {
    let badge = format!("<span class=\"count\">{count}</span><span class=\"sr\"> unread");
    eventually(SOON, || {
        let html = browser.page("/settings/profile");
        if count == 0 { !html.contains("<span class=\"sr\"> unread") } else { html.contains(&badge) }
    });
}

#[rstest]
fn the_inbox_fills_and_empties(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (server, alice) = setup(engine);
    let bob = logged_in(&server, "bob");
    let empty = bob.page("/notifications");
    assert!(empty.contains("No unread notifications") && empty.contains("Watch a repository"), "{empty}");
    for title in ["One", "Two <b>bold</b>", "Three"] {
        open(&server, &alice, title);
    }
    waits_for(&bob, 3);
    let html = bob.page("/notifications");
    assert!(html.contains("Two &#60;b&#62;bold") && html.contains("Watching") && html.contains("#2, open"), "{html}");
    assert!(html.contains("alice/tool <span class=\"badge\">3"), "by repository: {html}");

    // Reading the issue reads what was told about it, also on the page itself.
    let page = bob.page("/alice/tool/issues/1");
    assert!(page.contains("<span class=\"count\">2</span><span class=\"sr\"> unread"), "{page}");
    assert!(page.contains("You get notifications for this issue."), "who watches hears of it");
    let html = bob.page("/notifications");
    assert!(!html.contains(">One</a>"), "{html}");
    assert!(bob.page("/notifications?all=1").contains(">One</a>"));

    let act = |what: &str, title: &str| {
        let html = bob.page("/notifications");
        let label = format!("aria-label=\"{what}: {title}\"");
        let form = html.split("<form").find(|form| form.contains(&label)).unwrap_or_else(|| panic!("{label}: {html}"));
        let action = form.split("action=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("an action");
        let answer = bob.submit_in(&html, action, &label, &[]);
        assert_eq!(location(&answer), "/notifications");
    };
    act("Mark as read", "Three");
    waits_for(&bob, 1);
    act("Mute", "Two &#60;b&#62;bold&#60;/b&#62;");
    waits_for(&bob, 0);
    assert!(bob.page("/notifications?all=1").contains("Muted"));
    assert!(bob.page("/alice/tool/issues/2").contains("You do not get notifications for this issue."));

    open(&server, &alice, "Four");
    waits_for(&bob, 1);
    let id = query(&server, "SELECT id FROM repos");
    let only = format!("/notifications?repo={id}");
    let marked = bob.submit(&only, "/notifications", &[]);
    assert_eq!(location(&marked), only);
    waits_for(&bob, 0);
    let foreign = bob.submit("/notifications?all=1", "/notifications", &[("back", "https://evil.example/")]);
    assert_eq!(location(&foreign), "/notifications");

    // Notifications about the repository itself are opened by a button.
    let renamed =
        http::patch(server.http_addr(), "/api/v3/repos/alice/tool", Some(&alice.token), &json!({ "name": "gadget" }));
    assert_eq!(renamed.status, 200, "{}", renamed.text());
    waits_for(&bob, 1);
    let html = bob.page("/notifications");
    assert!(html.contains("Renamed from tool to gadget"), "{html}");
    let action = html.split("action=\"").find(|part| part.contains("/open\"")).and_then(|rest| rest.split('"').next());
    let opened = bob.submit_in(&html, action.expect("a form that opens it"), "", &[]);
    assert_eq!(location(&opened), "/alice/gadget");
    waits_for(&bob, 0);
    let stranger = Browser::new(&server);
    assert_eq!(location(&stranger.get("/notifications")), "/login?next=%2Fnotifications");
}

#[rstest]
fn mails_are_chosen_and_ended_by_one_click(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (server, alice) = setup(engine);
    let bob = logged_in(&server, "bob");
    let (page, unchecked) = ("/settings/notifications", "value=\"subscribed\"><span>");
    let html = bob.page(page);
    assert!(html.contains("Mail goes to bob@example.org") && html.contains("value=\"subscribed\" checked"), "{html}");
    let saved = bob.submit(page, page, &[("mail", "mention")]);
    assert_eq!(location(&saved), "/settings/notifications?done=saved");
    let html = bob.page(page);
    assert!(html.contains(unchecked) && html.contains("value=\"mention\" checked"), "{html}");
    assert!(logged_in(&server, "alice").page(page).contains("not verified"));
    let token = bob.token(page);
    let all = ["review_requested", "mention", "assign", "author", "comment", "manual", "subscribed"];
    let fields: Vec<_> = all.iter().map(|reason| ("mail", *reason)).chain([("_token", token.as_str())]).collect();
    assert_eq!(bob.post(page, &fields).status, 303);
    assert!(bob.page(page).contains("value=\"subscribed\" checked"));

    open(&server, &alice, "News");
    let mut mail = String::new();
    eventually(SOON, || {
        let files = fs::read_dir(server.data_dir().join("outbox")).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        mail = texts.filter(|text| text.contains("To: bob@example.org")).last().unwrap_or_default();
        !mail.is_empty()
    });
    let header = mail.replace("\r\n ", "");
    let link = header.lines().find_map(|line| line.strip_prefix("List-Unsubscribe: <")).expect("a header");
    let link = link.trim_end_matches('>').strip_prefix(&server.url()).expect("our address");

    let stranger = Browser::new(&server);
    let asked = stranger.page(link);
    assert!(asked.contains("Unsubscribe?") && asked.contains("<button class=\"btn primary\">Unsubscribe"));
    let said = "SELECT count(*) FROM issue_subscriptions WHERE NOT subscribed";
    assert_eq!(query(&server, said), "0", "looking changes nothing");
    // As a mail provider sends it: no cookie, no form of ours, from elsewhere.
    let one_click = |link: &str| {
        Request::new("POST", link)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("Origin", "https://mail.example")
            .body("List-Unsubscribe=One-Click")
            .send(server.http_addr())
    };
    let forged = one_click(&link[..link.len() - 2]);
    assert_eq!(forged.status, 403, "{}", forged.text());
    assert!(forged.text().contains("Nothing was changed"));
    assert_eq!((query(&server, said).as_str(), stranger.get(&link[..link.len() - 2]).status), ("0", 403));
    let ended = one_click(link);
    assert_eq!(ended.status, 200, "{}", ended.text());
    assert!(ended.text().contains("Unsubscribed"));
    assert_eq!(query(&server, said), "1");
}
