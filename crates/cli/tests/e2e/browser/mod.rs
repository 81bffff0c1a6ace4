//! Pages in a real browser. What a page says and does is tested without one in `pages/`; here is what only a browser
//! can tell: that people find their way, with a keyboard too, that nothing complains, and how it looks.

mod accessible;
mod driver;
mod pictures;
mod walk;

use crate::support;
use abide_testkit::{Engine, GitClient, PASSWORD, Server};
use driver::Browser;

/// A server where anyone may make an account.
fn open_server(engine: Engine) -> Server {
    support::builder(engine).env("ABIDE_SIGNUP__MODE", "open").start()
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
