//! Issues, as someone with a browser meets them.

use super::{add_admin, logged_in};
use crate::beside::Beside as _;
use crate::pages::browser::{Browser, location};
use crate::support::server;
use abide_testkit::{Engine, Server, http};
use rstest::rstest;
use serde_json::json;

/// Breaks out of text, of both kinds of attributes, and of a comment.
const MARKUP: &str = "--><script>alert(1)</script><img src=x onerror=alert(2)>\"'><b>";

/// Markup that Markdown must not let through.
const TRICKS: &str = "<script>alert(1)</script> <img src=x onerror=alert(2)> <a href=\"javascript:alert(3)\">x</a> \
    <svg onload=alert(5)> <iframe src=//x></iframe> <form action=/logout><button>z</button></form> \
    <p style=\"position:fixed\">w</p>\n\n[y](javascript:alert(4)) #12 @carol";

/// The insides of all tags of a page.
fn tags(html: &str) -> String {
    html.split('<').skip(1).filter_map(|rest| rest.split('>').next()).collect::<Vec<_>>().join("\n")
}

fn setup(engine: Engine) -> Server {
    let server = server(engine);
    add_admin(&server, "carol");
    server.add_user("bob");
    let token = server.add_token("carol", "repo");
    for (name, private) in [("demo", false), ("secret", true)] {
        let body = json!({ "name": name, "private": private });
        let made = http::post(server.http_addr(), "/api/v3/user/repos", Some(&token), &body);
        assert_eq!(made.status, 201, "{}", made.text());
    }
    server
}

#[rstest]
fn an_issue_is_opened_discussed_and_closed_without_a_script(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = setup(engine);
    let (carol, bob) = (logged_in(&server, "carol"), logged_in(&server, "bob"));
    assert!(carol.page("/carol/demo/issues").contains("No issues"), "an empty list says what to do");
    let new = "/carol/demo/issues/new";
    let opened = bob.submit(new, new, &[("title", "It crashes"), ("body", "See @carol and #1, `@bob`")]);
    assert_eq!((opened.status, location(&opened)), (303, "/carol/demo/issues/1"));
    let page = carol.page("/carol/demo/issues/1");
    assert!(page.contains(">@carol</a>") && page.contains("/carol/demo/issues/1\""), "names become links: {page}");
    assert!(!page.contains(">@bob</a>"), "but not in code");

    let at = "/carol/demo/issues/1";
    assert_eq!(carol.submit(at, at, &[("body", "Thanks"), ("then", "close")]).status, 303);
    let page = bob.page(at);
    assert!(page.contains("Thanks") && page.contains("closed this as completed") && page.contains("Closed"), "{page}");
    assert!(carol.page("/carol/demo/issues?q=is:closed").contains("It crashes"));
    assert!(!carol.page("/carol/demo/issues").contains("It crashes"));
    assert_eq!(bob.submit(at, at, &[("then", "reopen")]).status, 303, "authors open their own again");

    let labels = "/carol/demo/labels";
    let fields = [("name", "bug"), ("color", "d73a4a"), ("description", "Broken")];
    assert_eq!(carol.submit(labels, labels, &fields).status, 303);
    let milestones = "/carol/demo/milestones";
    let fields = [("title", "v1"), ("description", ""), ("due", "2026-12-31")];
    assert_eq!(carol.submit(milestones, milestones, &fields).status, 303);
    assert_eq!(carol.submit(at, &format!("{at}/labels"), &[("label", "bug")]).status, 303);
    assert_eq!(carol.submit(at, &format!("{at}/assignees"), &[("assignee", "carol")]).status, 303);
    assert_eq!(carol.submit(at, &format!("{at}/milestone"), &[("milestone", "1")]).status, 303);
    assert_eq!(bob.submit(at, &format!("{at}/subscription"), &[]).status, 303);
    let page = bob.page(at);
    for text in ["#d73a4a", "assigned carol", "added this to the v1 milestone", ">Subscribe<"] {
        assert!(page.contains(text), "{text} is missing: {page}");
    }
    for query in ["label:bug", "assignee:carol", "milestone:v1", "crashes", "author:bob"] {
        assert!(carol.page(&format!("/carol/demo/issues?q={query}")).contains("It crashes"), "{query}");
    }
    assert!(carol.page("/carol/demo/issues?q=label:ui").contains("No issues match"));
    let edit = format!("{at}/edit");
    assert_eq!(bob.submit(&edit, &edit, &[("title", "It crashes at start"), ("body", "now")]).status, 303);
    assert!(bob.page(at).contains("It crashes at start"));
    assert_eq!(bob.get(labels).status, 200);
    let token = bob.token(at);
    let refused = bob.post(&format!("{labels}/remove"), &[("_token", token.as_str()), ("label", "bug")]);
    assert_eq!(refused.status, 403);
}

#[rstest]
fn what_people_write_into_issues_is_tame(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = setup(engine);
    let carol = logged_in(&server, "carol");
    let new = "/carol/demo/issues/new";
    assert_eq!(carol.submit(new, new, &[("title", MARKUP), ("body", TRICKS)]).status, 303);
    let at = "/carol/demo/issues/1";
    assert_eq!(carol.submit(at, at, &[("body", TRICKS)]).status, 303);
    let labels = "/carol/demo/labels";
    let name = &MARKUP[..50];
    assert_eq!(
        carol.submit(labels, labels, &[("name", name), ("color", "d73a4a"), ("description", MARKUP)]).status,
        303
    );
    let milestones = "/carol/demo/milestones";
    assert_eq!(
        carol.submit(milestones, milestones, &[("title", MARKUP), ("description", MARKUP), ("due", "")]).status,
        303
    );
    assert_eq!(carol.submit(at, &format!("{at}/labels"), &[("label", name)]).status, 303);
    assert_eq!(carol.submit(at, &format!("{at}/milestone"), &[("milestone", "1")]).status, 303);
    let encoded: String = MARKUP.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let filter = format!("/carol/demo/issues?q={encoded}");
    let markup = ["<script>alert", "<img src=x", "'><b>", "<svg onload", "<iframe", "<form action=/logout"];
    for path in ["/carol/demo/issues", at, labels, milestones, "/carol/demo/issues/1/edit", &filter] {
        let html = carol.page(path);
        for wild in markup {
            assert!(!html.contains(wild), "{path}: {wild}\n{html}");
        }
        // Where it is edited, what was written stands as it is, as the text of a field.
        let edited = path.ends_with("/edit");
        let tags = tags(&html);
        assert!(edited || !tags.contains(" style=") && !tags.contains(" onclick="), "{path}");
    }
    // Markup that is not understood is shown as text, so only what is inside tags counts.
    let html = tags(&carol.page(at));
    for wild in ["javascript:", "onload=", "onerror=alert(2)>", "position:fixed"] {
        assert!(!html.contains(wild), "{wild}\n{html}");
    }
}

#[rstest]
fn issues_of_a_private_repository_are_not_there(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = setup(engine);
    let (carol, bob) = (logged_in(&server, "carol"), logged_in(&server, "bob"));
    let new = "/carol/secret/issues/new";
    let fields = [("title", "plan"), ("body", "because of carol/demo#1")];
    let open = "/carol/demo/issues/new";
    assert_eq!(carol.submit(open, open, &[("title", "target"), ("body", "")]).status, 303);
    assert_eq!(carol.submit(new, new, &fields).status, 303);
    for path in
        ["/carol/secret/issues", "/carol/secret/issues/1", new, "/carol/secret/labels", "/carol/secret/milestones"]
    {
        for visitor in [&bob, &Browser::new(&server)] {
            assert_eq!(visitor.get(path).status, 404, "{path}");
        }
    }
    assert!(carol.page("/carol/demo/issues/1").contains("carol/secret#1"));
    assert!(!bob.page("/carol/demo/issues/1").contains("secret"), "a reference from there does not tell of it");
}
