//! Adding credentials asks for the password again if the last proof is older than ten minutes.

use crate::pages::logged_in;
use crate::support::{person, query, server};
use abide_testkit::{Engine, GitClient, PASSWORD};
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
        assert!(asked.text().contains("Confirm that it is you"), "{action}: {}", asked.text());
        assert_eq!(asked.header("cache-control"), Some("no-store"));
        let wrong =
            browser.submit_in(&asked.text(), action, "current_password", &[("current_password", "not it at all")]);
        assert!(wrong.text().contains("That is not your password"), "{action}: {}", wrong.text());
        assert_eq!(count(), before, "nothing is done until it is certain who asks");
        let done = browser.submit_in(&wrong.text(), action, "current_password", &[("current_password", PASSWORD)]);
        assert!(matches!(done.status, 200 | 303), "{action}: {}", done.text());
        assert_ne!(count(), before, "{action} does what was filled in");
    }
    // Proved a moment ago: not asked again.
    let again = browser.submit("/settings/account", "/settings/account/emails", &[("email", "third@example.org")]);
    assert_eq!(again.status, 303, "{}", again.text());
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
    assert!(!server.log().contains(&secret));
}
