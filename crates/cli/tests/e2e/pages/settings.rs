//! One's own account: profile, addresses, tokens, keys.

use super::browser::{location, text_of};
use super::{SOON, logged_in, mailed_link};
use crate::beside::Beside as _;
use crate::support::{person, query, server};
use abide_testkit::{Engine, GitClient, eventually, http};
use rstest::rstest;

#[rstest]
fn a_profile_is_shown_to_everyone_and_mistakes_stand_at_their_field(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    server.add_user("alice");
    let browser = logged_in(&server, "alice");
    let path = "/settings/profile";
    assert_eq!(location(&browser.get("/settings")), path);
    let fields = [("display_name", "Alice A."), ("bio", "I write."), ("website", "javascript:x"), ("location", "Here")];
    let wrong = browser.submit(path, path, &fields);
    let html = wrong.text();
    assert!(
        wrong.status == 400 && html.contains("id=\"website-error\"") && html.contains("value=\"I write.\""),
        "{html}"
    );
    let fields =
        [("display_name", "Alice A."), ("bio", "I write."), ("website", "https://a.example"), ("location", "Here")];
    assert_eq!(location(&browser.submit(path, path, &fields)), "/settings/profile?done=saved");
    let seen = http::get(server.http_addr(), "/alice", None).text();
    for text in ["Alice A.", "I write.", "https://a.example", "Here"] {
        assert!(seen.contains(text), "{text} in {seen}");
    }
}

#[rstest]
fn a_token_made_on_the_page_works_is_shown_once_and_ends_when_revoked(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    server.add_user("alice");
    let browser = logged_in(&server, "alice");
    let path = "/settings/tokens";
    assert!(browser.page(path).contains("No tokens yet"));
    assert!(!browser.page(path).contains("value=\"admin\""), "only who administers the site is offered that");
    let none = browser.submit(path, path, &[("label", "laptop"), ("expires", "30")]);
    assert!(
        none.status == 400 && none.text().contains("id=\"scope-error\"") && none.text().contains("value=\"laptop\"")
    );
    let made = browser.submit(
        path,
        path,
        &[("label", "laptop"), ("expires", "30"), ("scope", "user:read"), ("scope", "repo")],
    );
    assert_eq!((made.status, made.header("cache-control")), (200, Some("no-store")), "{}", made.text());
    let secret = text_of(&made.text(), "secret");
    assert!(secret.starts_with("abide_pat_"), "{secret}");
    let html = browser.page(path);
    assert!(!html.contains(&secret) && html.contains("laptop") && html.contains("user:read,repo"), "{html}");
    assert!(html.contains("Never used") && html.contains("Expires <time"), "{html}");

    let asked = |path: &str| http::get(server.http_addr(), path, Some(&secret));
    assert_eq!(asked("/api/v3/user").json()["login"], "alice");
    eventually(SOON, || browser.page(path).contains("Last used"));
    let revoked = browser.confirm(path, "/settings/tokens/revoke", &[]);
    assert_eq!(location(&revoked), "/settings/tokens?done=revoked");
    assert_eq!(asked("/api/v3/user").status, 401);
    assert!(browser.page(path).contains("No tokens yet"));
}

#[rstest]
fn tokens_keys_and_addresses_of_others_cannot_be_touched(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice").with_ssh(&server);
    server.add_user("bob");
    let bob = logged_in(&server, "bob");
    let token = bob.token("/settings/tokens");
    let id = |table: &str| query(&server, &format!("SELECT min(id) FROM {table}"));
    for (path, id) in [
        ("/settings/tokens/revoke", id("tokens")),
        ("/settings/keys/remove", id("ssh_keys")),
        ("/settings/account/emails/remove", id("emails")),
        ("/settings/account/emails/primary", id("emails")),
        ("/settings/account/emails/resend", id("emails")),
        ("/settings/tokens/revoke", "x".to_owned()),
    ] {
        assert_eq!(bob.post(path, &[("_token", &token), ("id", &id)]).status, 404, "{path} {id}");
    }
    assert_eq!(
        http::get(server.http_addr(), "/api/v3/user/keys", Some(&alice.token)).json().as_array().map(Vec::len),
        Some(1)
    );
}

#[rstest]
fn a_key_added_on_the_page_opens_git_and_a_removed_one_does_not(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "demo", true);
    let browser = logged_in(&server, "alice");
    let path = "/settings/keys";
    assert!(browser.page(path).contains("No SSH keys yet"));
    let bad = browser.submit(path, path, &[("title", "desk"), ("key", "-----BEGIN OPENSSH PRIVATE KEY-----")]);
    assert!(bad.status == 400 && bad.text().contains("id=\"key-error\"") && bad.text().contains("value=\"desk\""));

    let git = GitClient::new().with_ssh_key();
    let key = std::fs::read_to_string(git.public_key()).expect("there");
    let added = browser.submit(path, path, &[("title", "desk"), ("key", &key)]);
    assert_eq!(location(&added), "/settings/keys?done=added");
    let html = browser.page(path);
    assert!(html.contains("desk") && html.contains("SHA256:") && html.contains("Never used"), "{html}");
    let url = server.ssh_url("alice", "demo");
    git.ok(&git.fresh_dir(), &["ls-remote", &url]);
    assert_eq!(location(&browser.confirm(path, "/settings/keys/remove", &[])), "/settings/keys?done=removed");
    git.fails(&git.fresh_dir(), &["ls-remote", &url]);
}

#[rstest]
fn addresses_are_added_confirmed_made_primary_and_removed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    server.add_user("alice");
    query(&server, "UPDATE emails SET verified_at = 1 RETURNING id");
    let browser = logged_in(&server, "alice");
    let (page, emails) = ("/settings/account", "/settings/account/emails");
    let taken = browser.submit(page, emails, &[("email", "alice@example.org")]);
    assert!(taken.status == 400 && taken.text().contains("id=\"email-error\""), "{}", taken.text());
    assert_eq!(
        location(&browser.submit(page, emails, &[("email", "second@example.org")])),
        "/settings/account?done=mail-sent"
    );
    let html = browser.page(page);
    assert!(html.contains("Not verified") && !html.contains("Make second@example.org primary"), "{html}");
    let link = mailed_link(&server, "verify");
    browser.submit(&link, &link, &[]);
    let html = browser.page(page);
    let made = browser.submit_in(&html, "/settings/account/emails/primary", "second@example.org", &[]);
    assert_eq!(location(&made), "/settings/account?done=saved");
    let remove = "/settings/account/emails/remove";
    let question = browser.question(page, remove, "alice@example.org");
    let removed = browser.submit_in(&question, remove, "", &[]);
    assert_eq!(location(&removed), "/settings/account?done=removed");
    assert_eq!(query(&server, "SELECT address FROM emails"), "second@example.org");
}
