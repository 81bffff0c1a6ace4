//! People finding their way.

use super::driver::Browser;
use super::{open_server, push_samples, sign_up};
use crate::beside::Beside as _;
use abide_testkit::{Engine, GitClient, PASSWORD};
use rstest::rstest;
use thirtyfour::prelude::*;

#[rstest]
#[tokio::test]
async fn someone_signs_up_creates_pushes_browses_makes_a_token_and_deletes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = open_server(engine);
    let browser = Browser::open(&server).await;
    sign_up(&browser, "ann").await;

    // Create, without content.
    browser.press("New repository").await;
    browser.fill("name", "Bad Name").await;
    browser.fill("description", "A small tool").await;
    browser.press("Create repository").await;
    browser.sees("only letters a–z, digits, dots, underscores and hyphens").await;
    let kept = browser.find("main [name=\"description\"]").await.value().await.unwrap();
    assert_eq!(kept.as_deref(), Some("A small tool"), "what was typed is kept");
    browser.fill("name", "tool").await;
    browser.press("Create repository").await;
    browser.sees("This repository is empty").await;

    // A token from the page, and a push with it.
    browser.go("/settings/tokens").await;
    browser.fill("label", "laptop").await;
    browser.find("main [name=\"scope\"][value=\"repo\"]").await.click().await.unwrap();
    browser.press("Create token").await;
    let token = browser.find(".secret").await.text().await.unwrap();
    assert!(token.starts_with("abide_pat_"), "{token}");
    let git = GitClient::new().with_token(token.trim());
    push_samples(&git, &server.http_url("ann", "tool"));

    // Browse.
    browser.go("/ann/tool").await;
    browser.sees("Keep the sum in range").await;
    browser.sees("A small tool. See the guide.").await;
    browser.press("guide").await;
    browser.sees("Read this.").await;
    assert_eq!(browser.at().await, "/ann/tool/blob/main/docs/guide.md");
    browser.go("/ann/tool").await;
    browser.press("src").await;
    browser.press("lib.rs").await;
    browser.sees("saturating_add").await;
    browser.press("5").await;
    assert_eq!(browser.at().await, "/ann/tool/blob/main/src/lib.rs#L5");
    browser.press("Blame").await;
    browser.sees("Keep the sum in range").await;
    browser.go("/ann/tool/commits").await;
    browser.press("Keep the sum in range").await;
    browser.sees("1 file changed").await;
    browser.go("/ann/tool/branches").await;
    browser.press("feature/sum").await;
    assert_eq!(browser.at().await, "/ann/tool/tree/feature/sum");

    // Settings.
    browser.go("/ann/tool/settings").await;
    browser.fill("description", "A very small tool").await;
    browser.fill("topics", "rust sums").await;
    browser.press("Save").await;
    browser.sees("Saved.").await;
    browser.go("/search?q=sums").await;
    browser.sees("A very small tool").await;

    // Delete, which must be confirmed by name.
    browser.go("/ann/tool/settings").await;
    browser.press("Delete").await;
    browser.fill("confirmation", "ann/other").await;
    browser.press("Delete this repository").await;
    browser.sees("Type ann/tool to confirm").await;
    browser.fill("confirmation", "ann/tool").await;
    browser.press("Delete this repository").await;
    browser.sees("Repository deleted").await;
    let complaints: Vec<String> =
        browser.complaints().into_iter().filter(|line| !line.contains("status of 400")).collect();
    assert_eq!(complaints, Vec::<String>::new(), "the console says nothing");
    browser.go("/ann/tool").await;
    browser.sees("ann/tool is deleted").await;
    browser.close().await;
}

#[tokio::test]
async fn everything_can_be_done_with_the_keyboard_alone() {
    let server = open_server(Engine::Sqlite);
    server.add_user("ann");
    let browser = Browser::open(&server).await;
    browser.go("/").await;
    // The first stop is the way past the navigation.
    browser.keys(Key::Tab + "").await;
    assert_eq!(focused(&browser).await, "Skip to content");
    tab_to(&browser, "Sign in").await;
    browser.keys(Key::Enter + "").await;
    let _ = browser.find("main [name=\"login\"]").await;
    tab_to(&browser, "login").await;
    browser.keys("ann").await;
    tab_to(&browser, "password").await;
    browser.keys(PASSWORD.to_owned() + Key::Enter).await;
    browser.sees("Your repositories").await;
    tab_to(&browser, "New repository").await;
    browser.keys(Key::Enter + "").await;
    let _ = browser.find("main [name=\"description\"]").await;
    tab_to(&browser, "name").await;
    browser.keys("typed".to_owned() + Key::Enter).await;
    browser.sees("This repository is empty").await;
    assert_eq!(browser.at().await, "/ann/typed");
    browser.close().await;
}

/// The focused element: its name as a field, or its text. Fails if the focus is not visible.
async fn focused(browser: &Browser) -> String {
    let found = browser
        .run(
            "const e = document.activeElement; const s = getComputedStyle(e);\
             return [e.name || e.getAttribute('aria-label') || e.textContent.trim(), s.outlineStyle, s.outlineWidth,\
             e.matches(':focus-visible'), e.tagName];",
        )
        .await;
    let name = found[0].as_str().unwrap_or_default().to_owned();
    if found[4] != "BODY" && found[4] != "MAIN" {
        assert!(found[1] != "none" && found[2] != "0px", "{name} has the focus, and nobody sees it: {found}");
    }
    name
}

/// Presses Tab until something has the focus.
async fn tab_to(browser: &Browser, wanted: &str) {
    for _ in 0..60 {
        if focused(browser).await == wanted {
            return;
        }
        browser.keys(Key::Tab + "").await;
    }
    panic!("{wanted} cannot be reached with Tab at {}", browser.at().await);
}
