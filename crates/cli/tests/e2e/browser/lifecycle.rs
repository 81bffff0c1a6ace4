//! A repository's life in a browser: people rename, archive, hand over, delete and restore.

use super::driver::Browser;
use super::{log_in, open_server, push_samples};
use crate::beside::Beside as _;
use crate::support::{self, Person};
use abide_testkit::{Engine, Server};
use thirtyfour::prelude::*;

/// A server where ann has a repository with content.
fn setup(engine: Engine, private: bool) -> (Server, Person) {
    let server = open_server(engine);
    let ann = support::person(&server, "ann");
    ann.create(&server, "tool", private);
    push_samples(&ann.git, &server.http_url("ann", "tool"));
    (server, ann)
}

/// Nothing but the answers that were refused on purpose.
fn silent(browser: &Browser) {
    let expected = ["status of 400", "status of 404", "status of 409", "status of 410"];
    let complaints = browser.complaints().into_iter();
    let complaints: Vec<_> =
        complaints.filter(|line| !expected.iter().any(|reported| line.contains(reported))).collect();
    assert_eq!(complaints, Vec::<String>::new(), "the console says nothing");
}

#[tokio::test]
async fn the_danger_zone_is_used_with_open_eyes() {
    let (server, _) = setup(Engine::Postgres, false);
    let browser = Browser::open(&server).await;
    log_in(&browser, "ann").await;

    // Rename, with the keyboard: the field has what there is, and Enter sends it.
    browser.go("/ann/tool/settings").await;
    browser.sees("Danger zone").await;
    browser.press("Rename").await;
    browser.sees("The old URL ann/tool redirects here").await;
    browser.fill("name", "Bad Name").await;
    browser.keys(Key::Enter + "").await;
    browser.sees("only letters a–z, digits, dots, underscores and hyphens").await;
    let kept = browser.find("main [name=\"name\"]").await.value().await.unwrap();
    assert_eq!(kept.as_deref(), Some("Bad Name"), "what was typed is kept");
    browser.fill("name", "gadget").await;
    browser.keys(Key::Enter + "").await;
    browser.sees("Renamed. The old name redirects here.").await;
    browser.go("/ann/tool/blob/main/src/lib.rs?plain=1#L3").await;
    assert_eq!(browser.at().await, "/ann/gadget/blob/main/src/lib.rs?plain=1#L3");
    browser.go("/ann/gadget/settings").await;
    browser.press("Old names").await;
    browser.sees("ann/tool").await;
    browser.sees("Last used").await;

    // Archive, and back from the banner.
    browser.press("General").await;
    browser.press("Archive").await;
    browser.sees("You can unarchive it at any time").await;
    browser.press("Archive this repository").await;
    browser.sees("The repository is read-only until it is unarchived.").await;
    browser.go("/ann/gadget").await;
    browser.sees("It is read-only").await;
    browser.press("Unarchive").await;
    browser.press("Unarchive this repository").await;
    browser.sees("The repository accepts pushes again.").await;

    // Private, after being told that clones stay where they are.
    browser.press("Make private").await;
    browser.sees("Existing clones and forks are not affected.").await;
    browser.press("Make it private").await;
    browser.sees("The repository is private.").await;

    // All of it is on record.
    browser.press("Audit log").await;
    for reported in
        ["Made private", "Unarchived", "Archived", "Renamed from tool to gadget", "Created as ann/tool, public"]
    {
        browser.sees(reported).await;
    }
    silent(&browser);
    browser.close().await;
}

#[tokio::test]
async fn a_private_repository_is_offered_and_taken() {
    let (server, _) = setup(Engine::Sqlite, true);
    server.add_user("bob");
    let giver = Browser::open(&server).await;
    log_in(&giver, "ann").await;
    giver.go("/ann/tool/settings").await;
    giver.press("Transfer").await;
    giver.sees("Your access ends").await;
    giver.fill("new_owner", "bob").await;
    giver.fill("confirmation", "ann/tool").await;
    giver.keys(Key::Enter + "").await;
    giver.sees("Transfer offered.").await;
    giver.sees("Transfer offered to bob").await;

    let taker = Browser::open(&server).await;
    log_in(&taker, "bob").await;
    taker.sees("You have a transfer offer.").await;
    taker.press("View offer").await;
    taker.sees("If you accept, you own it as bob/tool.").await;
    taker.press("Accept: ann/tool").await;
    taker.sees("ann wants to transfer a repository to you").await;
    taker.sees("Private: only the owner and collaborators can read it").await;
    taker.press("Accept: ann/tool").await;
    taker.sees("You own this repository now.").await;
    assert_eq!(taker.at().await, "/bob/tool?done=accepted");
    taker.sees("A small tool. See the guide.").await;
    taker.go("/ann/tool/commits").await;
    assert_eq!(taker.at().await, "/bob/tool/commits");
    taker.go("/").await;
    assert!(!taker.text().await.contains("transfer offer"));

    giver.go("/ann/tool").await;
    giver.sees("Page not found").await;
    silent(&giver);
    silent(&taker);
    giver.close().await;
    taker.close().await;
}

#[tokio::test]
async fn what_was_deleted_comes_back_also_under_another_name() {
    let (server, ann) = setup(Engine::Postgres, false);
    let browser = Browser::open(&server).await;
    log_in(&browser, "ann").await;
    for _ in 0..2 {
        browser.go("/ann/tool/settings").await;
        browser.press("Delete").await;
        browser.sees("You can restore it until 20").await;
        browser.fill("confirmation", "ann/tool").await;
        browser.keys(Key::Enter + "").await;
        browser.sees("Can be restored until").await;
        browser.go("/ann/tool/commits").await;
        browser.sees("ann/tool is deleted").await;
        browser.press("Restore").await;
        browser.sees("Repository restored with all its data.").await;
        browser.sees("Keep the sum in range").await;
    }
    // Somebody was quicker with the name.
    browser.go("/ann/tool/settings/delete").await;
    browser.fill("confirmation", "ann/tool").await;
    browser.press("Delete this repository").await;
    browser.sees("Can be restored until").await;
    ann.create(&server, "tool", false);
    browser.press("Restore ann/tool").await;
    browser.sees("You already have another repository with this name").await;
    browser.fill("name", "tool-of-old").await;
    browser.keys(Key::Enter + "").await;
    browser.sees("Repository restored with all its data.").await;
    assert_eq!(browser.at().await, "/ann/tool-of-old?done=restored");
    browser.sees("Keep the sum in range").await;
    silent(&browser);
    browser.close().await;
}
