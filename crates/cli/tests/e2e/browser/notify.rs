//! Two people: one watches what the other does, and hears of it in the inbox and by mail.

use super::driver::Browser;
use super::{open_server, sign_up};
use crate::pages::mailed_link;
use abide_testkit::{Engine, Server, eventually};
use std::fs;
use std::time::Duration;

/// Signs up and proves to read the mail.
async fn join(browser: &Browser, server: &Server, name: &str) {
    sign_up(browser, name).await;
    let link = mailed_link(server, "verify");
    browser.go(&link).await;
    browser.press("Verify address").await;
    browser.sees("E-mail address verified.").await;
    fs::remove_dir_all(server.data_dir().join("outbox")).expect("what was sent can be removed");
}

/// Waits for a mail to someone with a text in it, and returns it.
fn mail(server: &Server, to: &str, text: &str) -> String {
    let outbox = server.data_dir().join("outbox");
    let mut found = None;
    eventually(Duration::from_secs(60), || {
        let files = fs::read_dir(&outbox).into_iter().flatten().flatten();
        let mails = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        let to = format!("To: {to}@example.org");
        found = mails.map(|mail| mail.replace("\r\n ", " ")).find(|mail| mail.contains(&to) && mail.contains(text));
        found.is_some()
    });
    found.expect("it was waited for")
}

#[tokio::test]
async fn bob_stars_and_watches_anns_repository_and_hears_of_what_she_does() {
    let server = open_server(Engine::Sqlite);
    let (ann, bob) = (Browser::open(&server).await, Browser::open(&server).await);
    join(&ann, &server, "ann").await;
    join(&bob, &server, "bob").await;
    ann.go("/new").await;
    ann.fill("name", "tool").await;
    ann.press("Create repository").await;
    ann.sees("tool").await;

    bob.go("/ann/tool").await;
    bob.find("form[action=\"/ann/tool/star\"] button").await.click().await.expect("it can be pressed");
    bob.sees("Unstar").await;
    bob.find(".attention details summary").await.click().await.expect("it opens");
    bob.find("button[name=\"level\"][value=\"all\"]").await.click().await.expect("it can be chosen");
    bob.sees("Watching").await;
    bob.go("/notifications").await;
    bob.sees("No unread notifications").await;

    ann.go("/ann/tool/settings/rename").await;
    ann.fill("name", "gadget").await;
    ann.find("main form button").await.click().await.expect("it can be pressed");
    ann.find(".notice.good").await;
    ann.go("/ann/gadget/issues/new").await;
    ann.fill("title", "It squeaks").await;
    ann.fill("body", "Listen, @bob.").await;
    ann.press("Open issue").await;
    ann.sees("Listen").await;

    let renamed = mail(&server, "bob", "Renamed from tool to gadget");
    assert!(renamed.contains("List-Unsubscribe-Post: List-Unsubscribe=One-Click"), "{renamed}");
    mail(&server, "bob", "It squeaks");
    let files = fs::read_dir(server.data_dir().join("outbox")).expect("mails went out").flatten();
    let to_ann = files.filter_map(|file| fs::read_to_string(file.path()).ok()).find(|mail| mail.contains("To: ann@"));
    assert_eq!(to_ann, None, "nobody is mailed about what they did themselves");
    bob.go("/notifications").await;
    bob.sees("Renamed from tool to gadget").await;
    bob.sees("It squeaks").await;
    bob.sees("Mentioned").await;
    assert_eq!(bob.find(".bell .count").await.text().await.expect("a number"), "2");
    bob.press("It squeaks").await;
    bob.sees("Listen").await;
    assert_eq!(bob.find(".bell .count").await.text().await.expect("a number"), "1");
    bob.go("/notifications").await;
    bob.press("Mute: Renamed from tool to gadget").await;
    bob.sees("No unread notifications").await;
    ann.go("/notifications").await;
    ann.sees("No unread notifications").await;
    for browser in [ann, bob] {
        assert_eq!(browser.complaints(), [""; 0]);
        browser.close().await;
    }
}
