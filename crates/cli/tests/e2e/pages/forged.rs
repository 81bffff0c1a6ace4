//! Forms that someone else made: none of them does anything, on any page.

use super::browser::{Browser, form_request, location};
use super::{add_admin, logged_in};
use crate::beside::Beside as _;
use crate::support::{query, server};
use abide_testkit::http::{self, Response};
use abide_testkit::{Engine, PASSWORD, Server};
use rstest::rstest;
use serde_json::json;

/// Everything that a form could have changed.
fn state(server: &Server) -> String {
    let tables = [
        "users",
        "emails",
        "sessions",
        "tokens",
        "ssh_keys",
        "repos",
        "repo_collaborators",
        "audit_log",
        "domain_events",
        "one_time_links",
        "totp",
        "user_redirects",
        "repo_redirects",
        "repo_transfers",
        "stars",
        "watches",
        "follows",
        "webhooks",
        "webhook_deliveries",
    ];
    let counts = tables.map(|table| format!("(SELECT count(*) FROM {table})"));
    let suspended = "(SELECT count(*) FROM users WHERE suspended_at IS NOT NULL OR site_admin)";
    let marks =
        "(SELECT count(*) FROM repos WHERE archived_at IS NOT NULL OR deleted_at IS NOT NULL OR name = 'mallory')";
    let pending = "(SELECT count(*) FROM repo_transfers WHERE status = 'pending')";
    query(server, &format!("SELECT {}, {suspended}, {marks}, {pending}", counts.join(", ")))
}

/// The address of every page, with something real in the place of each name.
pub fn addresses(server: &Server) -> Vec<String> {
    let bob = query(server, "SELECT id FROM users WHERE name = 'bob'");
    let offer = query(server, "SELECT id FROM repo_transfers");
    let deleted = query(server, "SELECT id FROM repos WHERE deleted_at IS NOT NULL");
    let hook = query(server, "SELECT id FROM webhooks");
    let delivery = query(server, "SELECT id FROM webhook_deliveries");
    let filled = |path: &str| {
        let id = match path.split('/').nth(1) {
            Some("transfers") => &offer,
            Some("settings") => &deleted,
            _ => &bob,
        };
        path.replace("{owner}", "carol")
            .replace("{repo}", "demo")
            .replace("{id}", id)
            .replace("{hook}", &hook)
            .replace("{delivery}", &delivery)
            .replace("{*rest}", "main")
            .replace(['{', '}'], "")
    };
    abide_web_pages::page_paths().into_iter().map(filled).collect()
}

/// A site with an admin who has a repository and a deleted one, and bob, who offers them one of his.
pub fn setup(engine: Engine) -> Server {
    let server = server(engine);
    add_admin(&server, "carol");
    server.add_user("bob");
    for (owner, name) in [("carol", "demo"), ("carol", "gone"), ("bob", "gift")] {
        let token = server.add_token(owner, "repo");
        let made = http::post(server.http_addr(), "/api/v3/user/repos", Some(&token), &json!({ "name": name }));
        assert_eq!(made.status, 201, "{}", made.text());
    }
    let delete = "/carol/gone/settings/delete";
    let deleted = logged_in(&server, "carol").submit(delete, delete, &[("confirmation", "carol/gone")]);
    let offer = "/bob/gift/settings/transfer";
    let fields = [("new_owner", "carol"), ("confirmation", "bob/gift")];
    let offered = logged_in(&server, "bob").submit(offer, offer, &fields);
    assert_eq!((deleted.status, offered.status), (303, 303));
    // A hook that sends nothing by itself while the forms are tried.
    let hooks = server.add_token("carol", "hooks");
    let wanted = json!({ "active": false, "config": { "url": "https://hooks.example/" } });
    let made = http::post(server.http_addr(), "/api/v3/repos/carol/demo/hooks", Some(&hooks), &wanted);
    assert_eq!(made.status, 201, "{}", made.text());
    let row = "INSERT INTO webhook_deliveries (hook_id, guid, kind, payload, draft, state, created_at) \
        SELECT id, 'x', 'ping', '{}', FALSE, 'ok', 0 FROM webhooks";
    query(&server, row);
    server
}

/// Fields with which each form would succeed, so that only the forgery stops it.
const FIELDS: [(&str, &str); 19] = [
    ("url", "https://mallory.example/"),
    ("content_type", "json"),
    ("which", "all"),
    ("active", "1"),
    ("id", "1"),
    ("confirmation", "carol/demo"),
    ("visibility", "private"),
    ("new_owner", "bob"),
    ("name", "mallory"),
    ("email", "mallory@example.org"),
    ("password", PASSWORD),
    ("current_password", PASSWORD),
    ("label", "planted"),
    ("scope", "repo"),
    ("user", "bob"),
    ("role", "admin"),
    ("starred", "1"),
    ("level", "all"),
    ("follow", "1"),
];

#[rstest]
fn a_form_without_our_token_or_from_another_site_is_refused_by_every_page(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = setup(engine);
    let victim = logged_in(&server, "carol");
    let mallory = logged_in(&server, "bob");
    let (ours, theirs) = (victim.token("/settings/profile"), mallory.token("/settings/profile"));
    let before = state(&server);
    let sent = |path: &str, token: Option<&str>, header: Option<(&str, &str)>| -> Response {
        let request = victim.request("POST", path);
        let request = header.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        let token = token.map(|token| ("_token", token));
        let fields: Vec<_> = token.into_iter().chain(FIELDS).collect();
        form_request(request, &fields).send(server.http_addr())
    };
    let mut forms = 0;
    for path in addresses(&server) {
        let bare = sent(&path, None, None);
        if bare.status == 405 {
            let allowed = bare.header("allow").unwrap_or_default();
            assert!(!allowed.contains("POST"), "{path} allows {allowed}");
        } else {
            assert_eq!(bare.status, 403, "{path} without a token");
            assert!(bare.text().contains("Nothing was changed"), "{path}: {}", bare.text());
            for token in ["", "x", theirs.as_str()] {
                assert_eq!(sent(&path, Some(token), None).status, 403, "{path} with the token {token:?}");
            }
            forms += 1;
        }
        for header in [
            ("Origin", "https://evil.example"),
            ("Origin", "null"),
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
        ] {
            assert_eq!(sent(&path, Some(&ours), Some(header)).status, 403, "{path} with {header:?}");
        }
    }
    assert!(forms > 45, "the pages are walked, not imagined: {forms}");
    assert_eq!(state(&server), before);

    // The same form is taken when it is ours, so it was the forgery that was refused.
    let taken = sent("/settings/account/emails", Some(&ours), Some(("Sec-Fetch-Site", "same-origin")));
    assert_eq!(location(&taken), "/settings/account?done=mail-sent");
    assert_ne!(state(&server), before);
}

#[rstest]
fn strangers_need_our_token_too(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = setup(engine);
    let before = state(&server);
    let (stranger, other) = (Browser::new(&server), Browser::new(&server));
    let (ours, theirs) = (stranger.token("/login"), other.token("/login"));
    let with = |browser: &Browser<'_>, token: &str| {
        let fields = [("login", "bob"), ("password", PASSWORD), ("_token", token)];
        browser.post("/login", &fields).status
    };
    assert_eq!(with(&stranger, ""), 403);
    assert_eq!(with(&stranger, &theirs), 403, "nobody can be logged in by someone else's form");
    assert_eq!(with(&Browser::new(&server), &ours), 403, "a token is worth nothing without its cookie");
    assert_eq!(state(&server), before);
    assert_eq!(with(&stranger, &ours), 303);
}

#[rstest]
fn looking_changes_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = setup(engine);
    let root = logged_in(&server, "carol");
    let before = state(&server);
    for path in addresses(&server) {
        for address in [path.clone(), format!("{path}?done=saved&id=1&name=mallory&email=m%40example.org")] {
            let answer = root.get(&address);
            assert!(answer.status < 500, "{address}: {}", answer.text());
        }
    }
    assert_eq!(state(&server), before);
}
