//! Logging in with a nostr key, whose extension is played by the test.

use super::driver::Browser;
use super::open_server;
use abide_testkit::{Engine, Key};

#[tokio::test]
async fn someone_logs_in_with_the_key_in_their_extension_and_picks_a_name() {
    let server = open_server(Engine::Postgres);
    let browser = Browser::open(&server).await;
    browser.go("/login?next=/explore").await;
    browser.press("Sign in with nostr").await;
    browser.sees("No nostr extension (NIP-07) found").await;

    let challenge = browser.run("return document.querySelector('[data-nostr] [name=challenge]').value;").await;
    let url = browser.run("return document.querySelector('[data-nostr]').dataset.nostr;").await;
    let (challenge, url) = (challenge.as_str().unwrap(), url.as_str().unwrap());
    let tags: &[&[&str]] = &[&["u", url], &["method", "POST"], &["challenge", challenge]];
    let event = abide_nostr::event::to_json(&Key::new(1).event(Key::now(), 27_235, tags, ""));
    browser.run("window.nostr = { signEvent: async () => { throw new Error('no'); } };").await;
    browser.press("Sign in with nostr").await;
    browser.sees("The extension did not sign").await;
    browser
        .run(&format!("window.nostr = {{ signEvent: async draft => {{ window.draft = draft; return {event}; }} }};"))
        .await;
    browser.press("Sign in with nostr").await;
    browser.sees("Choose a user name").await;
    browser.fill("name", "zoe").await;
    browser.press("Save user name").await;
    browser.sees("Explore").await;
    assert!(browser.at().await.ends_with("/explore"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.close().await;
}
