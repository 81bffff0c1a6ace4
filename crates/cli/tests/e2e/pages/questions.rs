//! The question before an action that a second click does not undo: it is a page, needs no script, changes nothing by
//! being read, and leads back.

use super::browser::{Browser, location};
use super::{add_admin, logged_in};
use crate::beside::Beside as _;
use crate::support::{query, server};
use abide_testkit::{Engine, Server, http};
use rstest::rstest;
use serde_json::{Value, json};

/// Needs encoding in addresses and escaping in pages.
const LABEL: &str = "a&b <b>\"c\" 50%/+#";

/// carol's repository with bob as a collaborator, and an issue with a label, a milestone and comments.
fn setup(engine: Engine) -> Server {
    let server = server(engine);
    add_admin(&server, "carol");
    server.add_user("bob");
    server.add_user("eve");
    let token = server.add_token("carol", "repo");
    let send = |path: &str, body: Value| {
        let made = http::post(server.http_addr(), &format!("/api/v3{path}"), Some(&token), &body);
        assert!(made.status < 300, "{path}: {}", made.text());
    };
    send("/user/repos", json!({ "name": "demo" }));
    send("/repos/carol/demo/labels", json!({ "name": LABEL, "color": "d73a4a" }));
    send("/repos/carol/demo/milestones", json!({ "title": "v1" }));
    send("/repos/carol/demo/issues", json!({ "title": "It crashes", "labels": [LABEL], "milestone": 1 }));
    send("/repos/carol/demo/issues/1/comments", json!({ "body": "Looking at it <b>" }));
    let people = "/carol/demo/settings/collaborators";
    let added = logged_in(&server, "carol").submit(people, people, &[("user", "bob"), ("role", "triage")]);
    assert_eq!(added.status, 303, "{}", added.text());
    server
}

fn count(server: &Server, table: &str) -> String {
    query(server, &format!("SELECT count(*) FROM {table}"))
}

#[rstest]
fn deleting_a_comment_is_asked_and_leads_back_to_the_same_page_of_the_issue(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = setup(engine);
    let carol = logged_in(&server, "carol");
    let token = server.add_token("carol", "repo");
    for number in 0..60 {
        let body = json!({ "body": format!("more {number}") });
        let path = "/api/v3/repos/carol/demo/issues/1/comments";
        assert_eq!(http::post(server.http_addr(), path, Some(&token), &body).status, 201);
    }
    let id = query(&server, "SELECT id FROM comments WHERE body = 'more 59'");
    let remove = format!("/carol/demo/issues/1/comments/{id}/remove");
    let question = carol.question("/carol/demo/issues/1?page=2", &remove, "");
    assert!(question.contains("Delete this comment?") && question.contains("more 59"), "{question}");
    assert!(question.contains(&format!("href=\"/carol/demo/issues/1?page=2#comment-{id}\"")), "{question}");
    assert!(carol.page("/carol/demo/issues/1?page=2").contains("more 59"), "asking deletes nothing");
    assert_eq!(carol.post(&remove, &[("page", "2")]).status, 403, "a form of another site does nothing");
    let deleted = carol.submit_in(&question, &remove, "", &[]);
    assert_eq!(location(&deleted), "/carol/demo/issues/1?done=removed&page=2");
    assert!(!carol.page("/carol/demo/issues/1?page=2").contains("more 59"));
    assert_eq!(carol.get(&remove).status, 404, "there is nothing left to ask about");

    let first = query(&server, "SELECT min(id) FROM comments");
    let remove = format!("/carol/demo/issues/1/comments/{first}/remove");
    assert_eq!(logged_in(&server, "eve").get(&remove).status, 403, "who may not delete it is not asked");
    assert!(carol.page(&remove).contains("Looking at it &#60;b&#62;"));
    assert_eq!(carol.get(&remove.replace("issues/1", "issues/2")).status, 404, "bound to its issue");
}

#[rstest]
fn deleting_labels_and_milestones_is_asked(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = setup(engine);
    let (carol, eve) = (logged_in(&server, "carol"), logged_in(&server, "eve"));
    for (page, table, thing, reported) in [
        ("/carol/demo/labels", "labels", "a&#38;b &#60;b&#62;", "removed from every issue"),
        ("/carol/demo/milestones", "milestones", "v1", "It is removed from 1 issue."),
    ] {
        let remove = format!("{page}/remove");
        let question = carol.question(page, &remove, "");
        assert!(question.contains(thing) && question.contains(reported), "{question}");
        assert_eq!(count(&server, table), "1", "asking deletes nothing");
        assert_eq!(carol.post(&remove, &[("label", LABEL), ("number", "1")]).status, 403);
        assert_eq!(location(&carol.submit_in(&question, &remove, "", &[])), format!("{page}?done=removed"));
        assert_eq!(count(&server, table), "0");
        assert_eq!(carol.get(&format!("{remove}?label=x&number=1")).status, 404);
        assert_eq!(eve.get(&format!("{remove}?label=x&number=1")).status, 403, "{page}");
    }
    assert!(carol.page("/carol/demo/issues/1").contains("It crashes"), "the issue stays");
}

#[rstest]
fn removing_a_collaborator_is_asked(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = setup(engine);
    let (carol, eve) = (logged_in(&server, "carol"), logged_in(&server, "eve"));
    let page = "/carol/demo/settings/collaborators";
    let remove = format!("{page}/remove");
    let question = carol.question(page, &remove, "Remove bob");
    assert!(question.contains("Remove bob?") && question.contains("the triage role in carol/demo"), "{question}");
    assert_eq!(count(&server, "repo_collaborators"), "1", "asking removes nobody");
    assert_eq!(eve.get(&format!("{remove}?user=bob")).status, 403);
    for nobody in ["eve", "carol", "nobody", "", "%00"] {
        assert_eq!(carol.get(&format!("{remove}?user={nobody}")).status, 404, "{nobody}");
    }
    assert_eq!(location(&carol.submit_in(&question, &remove, "", &[])), format!("{page}?done=removed"));
    assert_eq!(count(&server, "repo_collaborators"), "0");
}

#[rstest]
fn discarding_an_event_that_was_set_aside_is_asked(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = setup(engine);
    let root = logged_in(&server, "carol");
    crate::support::settled(&server);
    query(
        &server,
        "INSERT INTO event_failures (consumer, seq, kind, error, tries, failed_at) \
         SELECT 'notifications', min(seq), 'push', 'broken', 3, 1 FROM domain_events",
    );
    let (page, settle) = ("/admin/events", "/admin/events/settle");
    let html = root.page(page);
    assert!(!html.contains("value=\"drop\""), "{html}");
    let link = html.split("href=\"/admin/events/settle?").nth(1).and_then(|rest| rest.split('"').next());
    let question = root.page(&format!("{settle}?{}", link.expect("a link").replace("&amp;", "&")));
    assert!(question.contains("Discard this event?"), "{question}");
    assert_eq!(count(&server, "event_failures"), "1");
    assert_eq!(location(&root.submit_in(&question, settle, "", &[])), "/admin/events?done=removed");
    assert_eq!(count(&server, "event_failures"), "0");
}

#[test]
fn strangers_are_led_to_the_login_before_they_are_asked() {
    let server = setup(Engine::Sqlite);
    let stranger = Browser::new(&server);
    for path in [
        "/settings/keys/remove?id=1",
        "/settings/tokens/revoke?id=1",
        "/settings/account/emails/remove?id=1",
        "/settings/security/sessions/end-all",
        "/settings/nostr/unlink",
    ] {
        assert!(location(&stranger.get(path)).starts_with("/login?next="), "{path}");
    }
    let bob = logged_in(&server, "bob");
    for path in ["/settings/keys/remove", "/settings/tokens/revoke", "/settings/account/emails/remove"] {
        for id in ["1", "x", "", "9223372036854775808"] {
            assert_eq!(bob.get(&format!("{path}?id={id}")).status, 404, "{path} {id}: not bob's");
        }
    }
    assert_eq!(location(&bob.get("/settings/nostr/unlink")), "/settings/nostr");
}
