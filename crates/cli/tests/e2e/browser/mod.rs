//! Pages in a real browser. What a page says and does is tested without one in `pages/`; here is what only a browser
//! can tell: that people find their way, with a keyboard too, that nothing complains, and how it looks. The longest walk is
//! walked on both engines, the others on one each.

mod accessible;
mod driver;
mod keys;
mod lifecycle;
mod lively;
mod notify;
mod pictures;
mod walk;

use crate::support::query;
use crate::{signed, support};
use abide_testkit::{Engine, GitClient, Key, Nostr, PASSWORD, Server};
use driver::Browser;

/// A server where anyone may make an account.
fn open_server(engine: Engine) -> Server {
    support::builder(engine).env("ABIDE_SIGNUP__MODE", "open").start()
}

/// Logs someone in who has an account.
async fn log_in(browser: &Browser, name: &str) {
    browser.go("/login").await;
    browser.fill("login", name).await;
    browser.fill("password", PASSWORD).await;
    browser.press("Sign in").await;
    browser.sees("Your repositories").await;
}

/// Puts something in every list of a repository's life: an offer to ann and one of hers, something deleted, an old name.
async fn live_a_little(browser: &Browser, server: &Server, ann: &support::Person) {
    let bob = support::person(server, "bob");
    bob.create(server, "gift", true);
    for name in ["gone", "given", "attic"] {
        ann.create(server, name, false);
    }
    push_samples(&bob.git, &server.http_url("bob", "gift"));
    log_in(browser, "bob").await;
    settle(browser, "bob/gift", "transfer", &[("new_owner", "ann"), ("confirmation", "bob/gift")]).await;
    browser.driver.delete_all_cookies().await.expect("cookies can be removed");
    log_in(browser, "ann").await;
    settle(browser, "ann/given", "transfer", &[("new_owner", "bob"), ("confirmation", "ann/given")]).await;
    settle(browser, "ann/gone", "delete", &[("confirmation", "ann/gone")]).await;
    settle(browser, "ann/attic", "rename", &[("name", "archive")]).await;
    settle(browser, "ann/archive", "archive", &[]).await;
}

/// Does something in a repository's settings.
async fn settle(browser: &Browser, slug: &str, verb: &str, fields: &[(&str, &str)]) {
    browser.go(&format!("/{slug}/settings/{verb}")).await;
    for (name, typed) in fields {
        browser.fill(name, typed).await;
    }
    browser.find("main form button").await.click().await.expect("it can be pressed");
    let _ = browser.find(".notice.good").await;
}

/// A repository that a key governs, with threads that came by nostr, and one that waits for its git data: their pages.
fn by_nostr(server: &Server) -> Vec<(&'static str, String)> {
    let (owner, reporter, at) = (Key::new(1), Key::new(2), Key::now() - 3_600);
    signed::governed(server, &owner, "my tool", |maker| {
        push_samples(&maker.git, &server.http_url("maker", "tool"));
    });
    let coordinate = owner.coordinate("my tool");
    let about = |kind, tags: &[&[&str]], text: &str| {
        let a = ["a", coordinate.as_str()];
        let tags: Vec<&[&str]> = std::iter::once(&a[..]).chain(tags.iter().copied()).collect();
        reporter.event(at, kind, &tags, text)
    };
    let issue = about(1621, &[&["subject", "It is slow"], &["t", "speed"]], "Adding **many** numbers takes long.");
    let patch = "Subject: [PATCH] Keep the sum in range\n\nNumbers may be large.\n---\n src/lib.rs | 2 +-\n\n\
        diff --git a/src/lib.rs b/src/lib.rs\n--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -5 +5 @@\n-    a + b\n+    \
        a.saturating_add(b)\n";
    let patch = about(1617, &[], patch);
    let pull = about(1618, &[&["subject", "Another way"], &["c", &"ab".repeat(20)]], "A *better* way.");
    let id = issue.id.to_hex();
    let events = [
        reporter.event(at + 60, 1111, &[&["E", &id], &["e", &id]], "Is there a number to compare with?"),
        owner.event(at + 120, 1631, &[&["e", &id, "", "root"]], ""),
        owner.event(at + 180, 1632, &[&["e", &patch.id.to_hex(), "", "root"]], ""),
    ];
    signed::keep(server, &[&[issue, patch.clone(), pull.clone()][..], &events[..]].concat());
    let state = [&["d", "waiting"][..], &["refs/heads/main", &"ab".repeat(20)], &["refs/tags/v1", &"cd".repeat(20)]];
    let waits = owner.announcement(at, "waiting", &server.url());
    signed::wait(server, "waiting", waits, Some(owner.event(at, 30_618, &state, "")));
    let key = signed::npub(&owner);
    let halves = [about(1618, &[&["c", &"cd".repeat(20)]], ""), about(1618, &[&["c", &"ef".repeat(20)]], "")];
    let mut relay = Nostr::connect(&server.url());
    assert!(halves.iter().all(|half| relay.publish(half).0), "they wait for their commits");
    let git = GitClient::new();
    let dir = git.init_work_tree();
    git.commit_file(&dir, "README.md", "A better one\n", "A better one");
    for repo in ["my%20tool", "waiting"] {
        let unknown = repo.len().to_string().repeat(64);
        git.ok(&dir, &["push", &format!("{}/{key}/{repo}.git", server.url()), &format!("HEAD:refs/nostr/{unknown}")]);
    }
    looked_for(server, "waiting");
    let page = |tail: &str| format!("/{key}/my%20tool{tail}");
    vec![
        ("nostr-profile", format!("/{key}")),
        ("nostr-home", page("")),
        ("nostr-issues", page("/issues")),
        ("nostr-issue", page(&format!("/nostr/{id}"))),
        ("nostr-proposals", page("/proposals")),
        ("nostr-patch", page(&format!("/nostr/{}", patch.id.to_hex()))),
        ("nostr-pull", page(&format!("/nostr/{}", pull.id.to_hex()))),
        ("nostr-collaborators", page("/settings/collaborators")),
        ("nostr-waiting", format!("/{key}/waiting")),
        ("nostr-account", "/settings/nostr".to_owned()),
        ("admin-purgatory", "/admin/purgatory".to_owned()),
        ("admin-sync", "/admin/sync".to_owned()),
    ]
}

/// A search for the git data of an identifier that has tried two servers, of which one rests.
fn looked_for(server: &Server, identifier: &str) {
    let now = i64::try_from(Key::now()).expect("a time of today") * 1_000_000;
    let (past, soon, later) = (now - 40_000_000, now + 80_000_000, now + 40_000_000_000);
    query(
        server,
        &format!(
            "INSERT INTO sync_queue (identifier, next_attempt, attempts, created_at)
                VALUES ('{identifier}', {soon}, 2, {past})"
        ),
    );
    for (url, domain, outcome, detail) in [
        ("https://git.example.org/x.git", "git.example.org:443", "absent", "it has none of the missing objects"),
        ("https://gone.example.org/x.git", "gone.example.org:443", "unreachable", "the host has no public IP address"),
    ] {
        query(
            server,
            &format!(
                "INSERT INTO sync_sources (queue_id, url, domain, tried_at, outcome, detail)
                    SELECT id, '{url}', '{domain}', {past}, '{outcome}', '{detail}'
                    FROM sync_queue WHERE identifier = '{identifier}'"
            ),
        );
        let rests = if outcome == "absent" { "NULL".to_owned() } else { later.to_string() };
        query(
            server,
            &format!(
                "INSERT INTO sync_domains (domain, rests_from, rests_until, reason, failures, failed_at, succeeded_at, asked_at)
                    VALUES ('{domain}', {past}, {rests}, 'the host has no public IP address', 1, {past}, {past}, {past})"
            ),
        );
    }
}

/// Signs up and is logged in.
async fn sign_up(browser: &Browser, name: &str) {
    browser.go("/signup").await;
    browser.fill("name", name).await;
    browser.fill("email", &format!("{name}@example.org")).await;
    browser.fill("password", PASSWORD).await;
    browser.press("Create account").await;
    browser.sees("Welcome").await;
}

/// A repository with something of everything in it.
fn push_samples(git: &GitClient, url: &str) {
    let dir = git.init_work_tree();
    let readme = "# Tool\n\nA small tool. See the [guide](docs/guide.md).\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n\
        - [x] done\n- [ ] open\n\n```rust\nfn main() {}\n```\n";
    git.commit_file(&dir, "README.md", readme, "Say what it is");
    git.commit_file(&dir, "docs/guide.md", "# Guide\n\nRead this.\n", "Add a guide");
    let source = "//! Adds numbers.\n\n/// The sum.\npub fn sum(a: u32, b: u32) -> u32 {\n    a + b // never overflows here\n}\n";
    git.commit_file(&dir, "src/lib.rs", source, "Add the sum");
    git.commit_file(&dir, "data.bin", [0_u8, 159, 146, 150], "Add data");
    git.commit_file(&dir, "src/lib.rs", source.replace("a + b", "a.saturating_add(b)"), "Keep the sum in range");
    git.ok(&dir, &["tag", "v1.0"]);
    git.ok(&dir, &["push", "--quiet", url, "main", "main~1:refs/heads/feature/sum", "v1.0"]);
}
