//! Pages in a real browser. What a page says and does is tested without one in `pages/`; here is what only a browser
//! can tell: that people find their way, with a keyboard too, that nothing complains, and how it looks.

mod accessible;
mod driver;
mod lifecycle;
mod lively;
mod notify;
mod pictures;
mod walk;

use crate::support;
use abide_testkit::{Engine, GitClient, PASSWORD, Server};
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
    browser.press("Log in").await;
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
