//! Names that mean harm: whatever stands in an address or a body, nothing is found, nothing is made, nothing breaks.

use super::Api;
use crate::support::{Person, assert_healthy, person, server};
use abide_core::{RepoName, UserName};
use abide_testkit::{Engine, Server, http};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;
use serde_json::json;

/// Names that were a hole somewhere.
const NASTY: &[&str] = &[
    "",
    ".",
    "..",
    "...",
    "../..",
    "..\\..",
    ".git",
    "a.git",
    "a.lock",
    "a.",
    "a ",
    " a",
    "-rf",
    "--upload-pack=id",
    "a/b",
    "a\\b",
    "a\0",
    "\0",
    "a\nb",
    "a\r\nX: y",
    "a;id",
    "$(id)",
    "`id`",
    "|id",
    "~root",
    "%2e%2e",
    "%2F",
    "%00",
    "a%20b",
    "a?b",
    "a#b",
    "аlice",
    "ａlice",
    "alice\u{200b}",
    "alice\u{202e}",
    "İ",
    "ß",
    "ﬁ",
    "K",
    "é",
    "\u{feff}a",
    "con",
    "nul",
    "null",
    "undefined",
    "NaN",
    "1e9",
    "-1",
    "0x1",
    "npub1aaaa",
    "settings",
    "api",
    "r",
    "HEAD",
    "FETCH_HEAD",
    "'; DROP TABLE repos; --",
    "\" OR 1=1",
    "{}",
    "[]",
    "<script>",
    "{owner}",
    "*",
    "@",
    "@{u}",
    ":",
    "C:\\",
    "\u{10ffff}",
];

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => select(NASTY).prop_map(str::to_owned),
        1 => select(NASTY).prop_map(|name| format!("{name}{name}")),
        1 => Just("a".repeat(300)),
        1 => Just("ü".repeat(2000)),
        2 => any::<String>(),
        1 => "[a-z0-9._-]{1,120}",
        1 => "[A-Za-z0-9%./\\\\ -]{1,20}",
    ]
}

/// How careful the client is with what it puts into an address.
#[derive(Debug, Clone, Copy)]
enum Written {
    /// Every byte that could mean something is escaped.
    Escaped,
    /// Escaped again, as some proxies do.
    Twice,
    /// As it is, but for what would end the request line.
    Raw,
}

fn write(name: &str, how: Written) -> String {
    let escape = |text: &str| -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric();
        text.bytes()
            .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
            .collect()
    };
    match how {
        Written::Escaped => escape(name),
        Written::Twice => escape(&escape(name)),
        Written::Raw => name.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect(),
    }
}

#[test]
fn no_name_does_harm() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    alice.create(&server, "project", false);

    for name in NASTY {
        try_everywhere(&server, &alice, (name, name), Written::Escaped).expect("no known name does harm");
    }
    let written = select(&[Written::Escaped, Written::Twice, Written::Raw][..]);
    let config = ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&(any_name(), any_name(), written), |(first, second, how)| {
        try_everywhere(&server, &alice, (&first, &second), how)
    });
    outcome.expect("no name does harm");
    assert_healthy(&server);
}

/// Puts two names wherever a name can stand.
fn try_everywhere(
    server: &Server,
    alice: &Person,
    (first, second): (&str, &str),
    how: Written,
) -> Result<(), TestCaseError> {
    let api = Api::of(server, alice);
    let (a, b) = (write(first, how), write(second, how));
    // In an address a name is at most not found. What is no URI, or far too long for one, is refused before it gets here.
    for path in [
        format!("/users/{a}"),
        format!("/users/{a}/repos"),
        format!("/repos/{a}/{b}"),
        format!("/repos/alice/{b}"),
        format!("/repos/{a}/project"),
        format!("/repositories/{a}"),
        format!("/repos/alice/project/collaborators/{a}"),
        format!("/user/keys/{a}"),
        format!("/repository_transfers/{a}"),
    ] {
        let response = api.get(&path);
        let odd = matches!(how, Written::Raw) || may_exist(first) || may_exist(second);
        let fine = response.status == 404 || (odd && response.status < 500);
        prop_assert!(fine, "GET {path}: {} {}", response.status, response.text());
    }
    for path in [format!("/{a}/{b}.git"), format!("/r/{a}")] {
        let path = format!("{path}/info/refs?service=git-upload-pack");
        let status = http::get(server.http_addr(), &path, Some(&alice.token)).status;
        prop_assert!(status < 500, "GET {path}: {status}");
    }

    // In a body it is a name or it is refused.
    let made = api.post("/user/repos", json!({ "name": first }));
    match first.parse::<RepoName>() {
        Ok(name) => {
            prop_assert!(made.status == 201 || made.status == 409, "{}", made.text());
            let read = api.read(&format!("/repos/alice/{name}"));
            prop_assert_eq!(read["name"].as_str(), Some(name.as_str()));
        }
        Err(rule) => {
            prop_assert_eq!(made.status, 422, "{}", made.text());
            prop_assert!(made.text().contains(&rule.to_string()), "{}", made.text());
        }
    }
    if let Err(rule) = first.trim().parse::<RepoName>() {
        let renamed = api.patch("/repos/alice/project", json!({ "name": first }));
        prop_assert_eq!(renamed.status, 422, "{}", renamed.text());
        prop_assert!(renamed.text().contains(&rule.to_string()), "{}", renamed.text());
    }
    if first.trim().parse::<UserName>().is_err() {
        let offered = api.post("/repos/alice/project/transfer", json!({ "new_owner": first }));
        prop_assert_eq!(offered.status, 422, "{}", offered.text());
    }
    for field in ["description", "default_branch"] {
        let edited = api.patch("/repos/alice/project", json!({ field: first }));
        prop_assert!([200, 422].contains(&edited.status), "{field}: {}", edited.text());
    }
    Ok(())
}

/// Whether this can be the name or number of something, or, being empty, make another address of the one around it.
fn may_exist(text: &str) -> bool {
    text.is_empty()
        || text.bytes().all(|byte| byte.is_ascii_digit())
        || text.parse::<UserName>().is_ok()
        || text.parse::<RepoName>().is_ok()
}
