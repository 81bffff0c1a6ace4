//! Names that mean harm: whatever stands in an address or a body, nothing is found, nothing is made, nothing breaks.

use super::Api;
use crate::support::{assert_healthy, person, server};
use abide_core::{RepoName, UserName};
use abide_testkit::{Engine, http};
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
    let (owner, nobody) = (Api::of(&server, &alice), Api::nobody(&server));
    let addr = server.http_addr();

    let written = select(&[Written::Escaped, Written::Twice, Written::Raw][..]);
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() });
    let outcome = runner.run(&(any_name(), any_name(), written), |(first, second, how)| {
        let (a, b) = (write(&first, how), write(&second, how));
        // In an address a name is at most not found. Hyper itself refuses what is no URI, or far too long for one.
        for path in [
            format!("/users/{a}"),
            format!("/users/{a}/repos"),
            format!("/repos/{a}/{b}"),
            format!("/repos/alice/{b}"),
            format!("/repos/{a}/project"),
            format!("/repositories/{a}"),
            format!("/repos/alice/project/collaborators/{a}"),
            format!("/user/keys/{a}"),
        ] {
            let response = owner.get(&path);
            let fine = match how {
                Written::Escaped | Written::Twice => response.status == 404 || leads_somewhere(&first, &second, how),
                Written::Raw => response.status < 500,
            };
            prop_assert!(fine, "GET {path}: {} {}", response.status, response.text());
        }
        for path in [
            format!("/{a}/{b}.git/info/refs?service=git-upload-pack"),
            format!("/r/{a}/info/refs?service=git-upload-pack"),
        ] {
            let status = http::get(addr, &path, Some(&alice.token)).status;
            prop_assert!(status < 500, "GET {path}: {status}");
        }

        // In a body it is a name or it is refused.
        let made = owner.post("/user/repos", json!({ "name": first }));
        match first.parse::<RepoName>() {
            Ok(name) => {
                prop_assert!(made.status == 201 || made.status == 422, "{}", made.text());
                let read = nobody.read(&format!("/repos/alice/{name}"));
                prop_assert_eq!(read["name"].as_str(), Some(name.as_str()));
            }
            Err(rule) => {
                prop_assert_eq!(made.status, 422, "{}", made.text());
                prop_assert!(made.text().contains(&rule.to_string()), "{}", made.text());
            }
        }
        for field in ["description", "default_branch"] {
            let edited = owner.patch("/repos/alice/project", json!({ field: first }));
            prop_assert!([200, 422].contains(&edited.status), "{field}: {}", edited.text());
        }
        Ok(())
    });
    outcome.expect("no name does harm");
    assert_healthy(&server);
}

/// Whether one of the addresses may name something: these are real names, or numbers.
fn leads_somewhere(first: &str, second: &str, how: Written) -> bool {
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    // An empty segment or a lone plain one can make up another route.
    let real = |text: &str| {
        text.is_empty() || number(text) || text.parse::<UserName>().is_ok() || text.parse::<RepoName>().is_ok()
    };
    matches!(how, Written::Escaped | Written::Twice) && (real(first) || real(second))
}
