//! Text that people typed is shown as text, wherever it is shown.

use super::browser::Browser;
use super::{add_admin, logged_in};
use crate::support::{query, server};
use abide_testkit::{Engine, GitClient, PASSWORD, http};
use rstest::rstest;

/// Breaks out of text, of both kinds of attributes, and of a comment.
const MARKUP: &str = "--><script>alert(1)</script><img src=x onerror=alert(2)>\"'><b>";

/// Fails if any of it arrived as markup.
#[track_caller]
fn assert_tame(place: &str, html: &str) {
    for wild in ["<script>alert", "<img src=x", "\"'><b>", "'><b>"] {
        assert!(!html.contains(wild), "{place} shows {wild}\n{html}");
    }
    assert!(html.contains("&#60;script&#62;alert(1)"), "{place} does not show it at all\n{html}");
}

#[rstest]
fn markup_in_names_labels_and_titles_is_shown_as_text(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    add_admin(&server, "carol");
    let browser = Browser::called(&server, MARKUP);
    browser.log_in("carol", PASSWORD);
    let fields = [("display_name", MARKUP), ("bio", MARKUP), ("website", ""), ("location", MARKUP)];
    assert_eq!(browser.submit("/settings/profile", "/settings/profile", &fields).status, 303);
    let fields = [("label", MARKUP), ("expires", "7"), ("scope", "repo")];
    let made = browser.submit("/settings/tokens", "/settings/tokens", &fields);
    assert_tame("the new token", &made.text());
    let git = GitClient::new().with_ssh_key();
    let key = std::fs::read_to_string(git.public_key()).expect("there");
    let fields = [("title", MARKUP), ("key", key.as_str())];
    assert_eq!(browser.submit("/settings/keys", "/settings/keys", &fields).status, 303);
    let id = query(&server, "SELECT id FROM users WHERE name = 'carol'");

    for path in [
        "/carol",
        "/settings/profile",
        "/settings/tokens",
        "/settings/keys",
        "/settings/security",
        "/admin/audit?action=logged_in",
        &format!("/admin/users/{id}"),
    ] {
        assert_tame(path, &browser.page(path));
    }
}

#[test]
fn what_is_shown_again_after_a_mistake_is_text_too() {
    let server = server(Engine::Sqlite);
    add_admin(&server, "carol");
    let stranger = Browser::new(&server);
    let fields = [("login", MARKUP), ("password", "wrong password")];
    assert_tame("a login", &stranger.submit("/login", "/login", &fields).text());
    assert_tame("a forgotten password", &stranger.submit("/forgot", "/forgot", &[("email", MARKUP)]).text());
    let root = logged_in(&server, "carol");
    for (page, action, field) in [
        ("/settings/account", "/settings/account/name", "name"),
        ("/settings/account", "/settings/account/emails", "email"),
        ("/settings/keys", "/settings/keys", "title"),
        ("/settings/tokens", "/settings/tokens", "label"),
        ("/admin/invites", "/admin/invites", "email"),
    ] {
        assert_tame(action, &root.submit(page, action, &[(field, MARKUP)]).text());
    }
    let encoded: String = MARKUP.bytes().map(|byte| format!("%{byte:02X}")).collect();
    for path in ["/admin/users?q=", "/admin/audit?action=", "/admin/audit?actor=", "/admin/audit?repo="] {
        assert_tame(path, &root.page(&format!("{path}{encoded}")));
    }
}

#[test]
fn every_page_forbids_scripts_and_frames_that_are_not_ours() {
    let server = server(Engine::Sqlite);
    for path in ["/login", "/forgot", "/signup", "/nobody", "/settings/profile", "/admin/users"] {
        let answer = http::get(server.http_addr(), path, None);
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
        assert!(!answer.text().contains(" style=") && !answer.text().contains(" onclick="), "{path}");
    }
}
