//! axe-core looks at every page: nothing serious, on a desk in the light and on a phone in the dark.

use super::driver::Browser;
use super::{by_nostr, live_a_little, open_server, push_samples};
use crate::beside::Beside as _;
use crate::support;
use abide_testkit::{Engine, Server, http};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// Pages of a visitor who is not logged in.
const OUTSIDE: [&str; 6] = ["/", "/login", "/signup", "/forgot", "/explore", "/nowhere/at/all"];

/// Pages of someone who is, with something in all of them.
const INSIDE: [&str; 81] = [
    "/",
    "/?tab=repositories",
    "/explore/activity",
    "/trending",
    "/new",
    "/search?q=tool",
    "/ann",
    "/ann?tab=stars",
    "/ann/followers",
    "/ann/activity",
    "/ann/tool",
    "/ann/tool/stargazers",
    "/ann/tool/watchers",
    "/ann/tool/activity",
    "/ann/empty",
    "/ann/tool/tree/main/src",
    "/ann/tool/blob/main/src/lib.rs",
    "/ann/tool/blob/main/README.md",
    "/ann/tool/blob/main/data.bin",
    "/ann/tool/blame/main/src/lib.rs",
    "/ann/tool/commits",
    "/ann/tool/commit/main",
    "/ann/tool/compare?base=feature/sum&head=main",
    "/ann/tool/branches",
    "/ann/tool/tags",
    "/ann/tool/tags?q=nothing",
    "/ann/tool/commits/main/src/lib.rs",
    "/ann/tool/fork",
    "/ann/tool/issues",
    "/ann/tool/issues?q=is:closed",
    "/ann/tool/issues/new",
    "/ann/tool/issues/1",
    "/ann/tool/labels",
    "/ann/tool/milestones",
    "/ann/tool/issues/1/comments/1/remove",
    "/ann/tool/labels/remove?label=bug",
    "/ann/tool/milestones/remove?number=1",
    "/ann/tool/settings",
    "/ann/tool/settings/collaborators",
    "/ann/tool/settings/rename",
    "/ann/tool/settings/transfer",
    "/ann/tool/settings/archive",
    "/ann/tool/settings/visibility",
    "/ann/tool/settings/delete",
    "/ann/tool/settings/audit",
    "/ann/tool/settings/webhooks",
    "/ann/tool/settings/webhooks/new",
    "/ann/tool/settings/webhooks/1",
    "/ann/tool/settings/webhooks/1/delete",
    "/ann/tool/settings/webhooks/1/deliveries/1",
    "/ann/archive",
    "/ann/archive/settings/old-names",
    "/ann/archive/settings/unarchive",
    "/ann/given/settings",
    "/transfers",
    "/transfers/1",
    "/ann/gone",
    "/settings/repositories",
    "/settings/notifications",
    "/notifications",
    "/notifications?all=1",
    "/settings/profile",
    "/settings/account",
    "/settings/security",
    "/settings/tokens",
    "/settings/keys",
    "/settings/nostr",
    "/settings/tokens/revoke?id=1",
    "/settings/security/sessions/end-all",
    "/settings/security/two-factor/off",
    "/admin/users",
    "/admin/users/1",
    "/admin/users/1/suspend",
    "/admin/users/1/give-admin",
    "/admin/invites",
    "/admin/jobs",
    "/admin/events",
    "/admin/purgatory",
    "/admin/sync",
    "/admin/audit",
    "/api/docs",
];

#[tokio::test]
async fn no_page_has_a_serious_accessibility_problem_or_a_complaint_in_the_console() {
    let server = open_server(Engine::Sqlite);
    let ann = support::admin(&server, "ann");
    for name in ["tool", "empty"] {
        ann.create(&server, name, false);
    }
    push_samples(&ann.git, &server.http_url("ann", "tool"));
    discuss(&server, &ann.token);
    add_webhook(&server);
    let browser = Browser::open(&server).await;
    browser.run_in_every_page(&axe()).await;
    let mut found = Vec::new();
    for path in OUTSIDE {
        found.extend(problems(&browser, path).await);
    }
    live_a_little(&browser, &server, &ann).await;
    let by_nostr = by_nostr(&server);
    for path in INSIDE.into_iter().chain(by_nostr.iter().map(|(_, path)| path.as_str())) {
        found.extend(problems(&browser, path).await);
    }
    browser.close().await;
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A webhook that nobody answers, with a ping that waits to be sent.
fn add_webhook(server: &Server) {
    let body = json!({ "config": { "url": "https://hooks.invalid/", "secret": "x" } });
    let token = server.add_token("ann", "hooks");
    let made = http::post(server.http_addr(), "/api/v3/repos/ann/tool/hooks", Some(&token), &body);
    assert_eq!(made.status, 201, "{}", made.text());
}

/// An issue with something of everything.
fn discuss(server: &Server, token: &str) {
    let send = |tail: &str, body: Value| {
        let made = http::post(server.http_addr(), &format!("/api/v3/repos/ann/tool{tail}"), Some(token), &body);
        assert_eq!(made.status, 201, "{tail}: {}", made.text());
    };
    send("/labels", json!({ "name": "bug", "color": "d73a4a", "description": "Broken" }));
    send("/milestones", json!({ "title": "v1", "due_on": "2026-12-31T00:00:00Z" }));
    send(
        "/issues",
        json!({ "title": "It crashes", "body": "See @ann", "labels": ["bug"], "assignees": ["ann"], "milestone": 1 }),
    );
    send("/issues/1/comments", json!({ "body": "Looking at it: #1" }));
}

/// axe, which is not asked for what it would not call serious.
fn axe() -> String {
    let home = std::env::var("ABIDE_TEST_OCTOKIT").expect("./test says where npm packages are");
    let file = PathBuf::from(home).join("node_modules/axe-core/axe.min.js");
    let axe = fs::read_to_string(file).expect("axe-core is installed by ./test");
    let configure = "axe.configure({ rules: axe._audit.rules.filter(rule => ['minor', 'moderate'].includes(rule.impact))\
        .map(({ id }) => ({ id, enabled: false })) });";
    format!("{axe}\n{configure}")
}

/// Everything that axe knows, on a desk in the light; then the same page on a phone in the dark, where only what depends on
/// colours and room can have become another.
async fn problems(browser: &Browser, path: &str) -> Vec<String> {
    browser.looks(1400, 900, "light").await;
    browser.go(path).await;
    let refused = ["/nowhere/at/all", "/ann/gone", "/ann/tool/issues?q=foo:bar"].contains(&path);
    let refusals = ["status of 404", "status of 410", "status of 422"];
    let expected = |line: &String| refused && refusals.iter().any(|refusal| line.contains(refusal));
    let complaints = browser.complaints().into_iter().filter(|line| !expected(line));
    let mut found: Vec<String> = complaints.collect();
    found.extend(look(browser, "").await);
    browser.looks(360, 900, "dark").await;
    const BY_LOOKS: &str = "runOnly: ['color-contrast', 'link-in-text-block', 'scrollable-region-focusable'],";
    found.extend(look(browser, BY_LOOKS).await.into_iter().map(|problem| format!("phone, dark: {problem}")));
    found.into_iter().map(|problem| format!("{path}: {problem}")).collect()
}

/// Findings of axe about the current page, and whether the page fits the window.
async fn look(browser: &Browser, rules: &str) -> Vec<String> {
    let script = format!(
        "const done = arguments[arguments.length - 1];\
         const tell = n => n.html.slice(0, 200) + ' ' + (n.any[0]?.message ?? '');\
         axe.run(document, {{ {rules} resultTypes: ['violations'], preload: false }}).then(result => done(result.violations\
         .filter(v => v.impact === 'serious' || v.impact === 'critical')\
         .map(v => v.id + ': ' + v.nodes.slice(0, 3).map(tell).join(' | '))));"
    );
    let serious = browser.driver.execute_async(script, Vec::new()).await.expect("axe runs");
    let mut found: Vec<String> = serious.json().as_array().into_iter().flatten().map(ToString::to_string).collect();
    // Nothing sticks out of the page: what is wide scrolls by itself.
    let too_wide = browser.run("return document.documentElement.scrollWidth - innerWidth;").await;
    if too_wide.as_i64() > Some(0) {
        found.push(format!("sticks out by {too_wide} pixels"));
    }
    found
}
