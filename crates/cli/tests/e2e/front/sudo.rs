//! Adding credentials asks for the password again if the last proof is older than ten minutes.

use crate::pages::browser::Browser;
use crate::pages::keys::{enter, field, proof};
use crate::pages::{logged_in, open_server};
use crate::support::{person, query, server};
use abide_testkit::{Engine, GitClient, Key, PASSWORD};
use rstest::rstest;
use std::fs;

#[rstest]
fn adding_keys_tokens_and_addresses_asks_for_the_password_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    person(&server, "alice");
    let browser = logged_in(&server, "alice");
    let key = fs::read_to_string(GitClient::new().with_ssh_key().public_key()).expect("there");
    let age = "UPDATE sessions SET created_at = created_at - 660000000, confirmed_at = NULL";
    type Fields<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&str, &str, Fields<'_>, &str); 4] = [
        ("/settings/keys", "/settings/keys", &[("title", "laptop"), ("key", &key)], "ssh_keys"),
        (
            "/settings/tokens",
            "/settings/tokens",
            &[("label", "ci"), ("expires", "7"), ("scope", "repo"), ("scope", "user")],
            "tokens",
        ),
        ("/settings/account", "/settings/account/emails", &[("email", "more@example.org")], "emails"),
        ("/settings/security/two-factor", "/settings/security/two-factor", &[], "totp_pending"),
    ];
    for (page, action, fields, table) in cases {
        let count = || match table {
            "totp_pending" => browser.page(page).contains("Scan this").to_string(),
            table => query(&server, &format!("SELECT count(*) FROM {table}")),
        };
        query(&server, age);
        let before = count();
        let asked = browser.submit(page, action, fields);
        assert!(asked.text().contains("Confirm your identity"), "{action}: {}", asked.text());
        assert_eq!(asked.header("cache-control"), Some("no-store"));
        let wrong =
            browser.submit_in(&asked.text(), action, "current_password", &[("current_password", "not it at all")]);
        assert!(wrong.text().contains("Wrong password"), "{action}: {}", wrong.text());
        assert_eq!(count(), before, "nothing is done until it is certain who asks");
        let done = browser.submit_in(&wrong.text(), action, "current_password", &[("current_password", PASSWORD)]);
        assert!(matches!(done.status, 200 | 303), "{action}: {}", done.text());
        assert_ne!(count(), before, "{action} does what was filled in");
    }
    // Proved a moment ago: not asked again.
    let again = browser.submit("/settings/account", "/settings/account/emails", &[("email", "third@example.org")]);
    assert_eq!(again.status, 303, "{}", again.text());
}

#[rstest]
fn an_account_without_a_password_signs_with_its_key_again(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = open_server(engine);
    let (key, browser) = (Key::new(31), Browser::new(&server));
    assert_eq!(enter(&server, &browser, &key, "/").status, 303);
    assert_eq!(browser.submit("/settings/name", "/settings/name", &[("name", "zoe")]).status, 303);
    let ssh_key = fs::read_to_string(GitClient::new().with_ssh_key().public_key()).expect("there");
    let age = "UPDATE sessions SET created_at = created_at - 660000000, confirmed_at = NULL";
    type Fields<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&str, &str, Fields<'_>, &str); 3] = [
        ("/settings/keys", "/settings/keys", &[("title", "laptop"), ("key", &ssh_key)], "ssh_keys"),
        ("/settings/tokens", "/settings/tokens", &[("label", "ci"), ("expires", "7"), ("scope", "repo")], "tokens"),
        ("/settings/account", "/settings/account/emails", &[("email", "zoe@example.org")], "emails"),
    ];
    for (page, action, fields, table) in cases {
        let count = || query(&server, &format!("SELECT count(*) FROM {table}"));
        query(&server, age);
        let before = count();
        let asked = browser.submit(page, action, fields).text();
        assert!(asked.contains("Confirm your identity") && asked.contains("Sign with your key"), "{action}: {asked}");
        assert!(!asked.contains("current_password"), "{action}: {asked}");
        // Neither a password that nobody set, nor another key, nor a signature for another form.
        let mut asked = browser.submit_in(&asked, action, "challenge", &[("current_password", PASSWORD)]).text();
        assert_eq!(count(), before, "{action}");
        for (signer, path) in [(Key::new(32), action), (key.clone(), "/login/nostr")] {
            let event = proof(&server, &signer, path, &field(&asked, action, "challenge"));
            asked = browser.submit_in(&asked, action, "challenge", &[("event", &event)]).text();
            assert!(asked.contains("Confirm your identity"), "{action}: {asked}");
            assert_eq!(count(), before, "{action}: nothing is done until it is certain who asks");
        }
        let event = proof(&server, &key, action, &field(&asked, action, "challenge"));
        let done = browser.submit_in(&asked, action, "challenge", &[("event", &event)]);
        assert!(matches!(done.status, 200 | 303), "{action}: {}", done.text());
        assert_ne!(count(), before, "{action} does what was filled in");
        query(&server, age);
        let again = browser.submit_in(&asked, action, "challenge", &[("event", &event)]).text();
        assert!(again.contains("Confirm your identity"), "{action}: a signature serves once: {again}");
    }
    // Signed a moment ago: not asked again.
    let (page, action) = ("/settings/account", "/settings/account/emails");
    let asked = browser.submit(page, action, &[("email", "more@example.org")]).text();
    let event = proof(&server, &key, action, &field(&asked, action, "challenge"));
    assert_eq!(browser.submit_in(&asked, action, "challenge", &[("event", &event)]).status, 303);
    let added = browser.submit(page, action, &[("email", "third@example.org")]);
    assert_eq!(added.status, 303, "{}", added.text());
}

#[test]
fn a_private_key_that_was_pasted_by_mistake_is_neither_shown_again_nor_logged() {
    let server = server(Engine::Sqlite);
    person(&server, "alice");
    let browser = logged_in(&server, "alice");
    let git = GitClient::new().with_ssh_key();
    let private = fs::read_to_string(git.public_key().with_extension("")).expect("it lies beside the public one");
    let secret = private.lines().nth(2).expect("it has several lines").to_owned();
    let answer = browser.submit("/settings/keys", "/settings/keys", &[("title", "laptop"), ("key", &private)]);
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("private key") && answer.text().contains("laptop"), "{}", answer.text());
    assert!(!answer.text().contains(&secret), "{}", answer.text());
    // Parts of it, without its first line or in the wrong field.
    let body = private.lines().skip(1).collect::<Vec<_>>().join("\n");
    let later = private.lines().skip(2).collect::<Vec<_>>().join("\n");
    for (title, key) in [("laptop", body.as_str()), ("laptop", &later), (&private, "ssh-ed25519 AAAA"), (&body, "")] {
        let answer = browser.submit("/settings/keys", "/settings/keys", &[("title", title), ("key", key)]);
        assert_eq!(answer.status, 400, "{key}");
        assert!(!answer.text().contains(&secret), "{}", answer.text());
    }
    assert!(!server.log().contains(&secret));
}
