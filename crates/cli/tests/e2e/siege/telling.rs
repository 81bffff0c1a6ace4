//! Attacks that publish events.

use super::asking::{again, answer};
use super::attacks::{Front, TIP};
use super::pushing::commands;
use crate::grasp::setup::{npub, state};
use abide_nostr::Event;
use abide_testkit::http::Request;
use abide_testkit::{Key, Nostr};
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tungstenite::Message;

/// Events that are sent before the first answer is read.
const BATCH: u32 = 50;

/// Issues and repositories of ever new keys, as many as the relay takes.
pub fn events(front: &Front) {
    let text = "x".repeat(60_000);
    let number = AtomicU32::new(10_000);
    again(front, 1, || {
        let Ok(mut relay) = Nostr::try_connect_from(front.from, &front.target.url) else {
            return front.tally.is_refused();
        };
        for _ in 0..BATCH {
            let at = number.fetch_add(1, Ordering::Relaxed);
            let key = Key::new(at);
            front.tally.tries();
            send(
                &mut relay,
                &match at % 10 {
                    0 => key.announcement(Key::now(), "more", &front.target.url),
                    _ => key.event(Key::now(), 1621, &[&["a", &front.target.coordinate]], &text),
                },
            );
        }
        for _ in 0..BATCH {
            let Some(heard) = heard(front, &mut relay) else { return };
            front.tally.is_told(heard.0, &heard.1);
        }
    });
}

/// Everything that a suspended account tries with its key; nothing of it may be taken.
pub fn suspended(front: &Front) {
    let key = &front.target.suspended;
    let push = Request::new("POST", &format!("/{}/gone.git/git-receive-pack", npub(key)))
        .header("Content-Type", "application/x-git-receive-pack-request")
        .body([commands(), front.target.lesser_bomb.clone()].concat());
    let number = AtomicU32::new(0);
    again(front, 1, || {
        let Ok(mut relay) = Nostr::try_connect_from(front.from, &front.target.url) else {
            return front.tally.is_refused();
        };
        let text = number.fetch_add(1, Ordering::Relaxed).to_string();
        for event in [
            key.event(Key::now(), 1621, &[&["a", &front.target.coordinate]], &text),
            key.announcement(Key::now(), "more", &front.target.url),
            state(key, Key::now(), "gone", &[("refs/heads/main", TIP)], Some("main")),
        ] {
            front.tally.tries();
            send(&mut relay, &event);
            let Some((taken, why)) = heard(front, &mut relay) else { return };
            assert!(!taken, "an event of a suspended account was taken");
            front.tally.is_told(why.starts_with("blocked: the account of this key is suspended"), &why);
        }
        front.tally.tries();
        if let Some(answer) = answer(front, &push) {
            let text = answer.text();
            assert!(!text.contains("ok refs/heads/main"), "a push for a suspended account was taken: {text}");
            front.tally.is_told(text.contains("suspended"), &text);
        }
    });
}

pub fn send(relay: &mut Nostr, event: &Event) {
    relay.send_if_taken(Message::text(json!(["EVENT", event]).to_string()));
}

/// The next answer; `None` if none comes, or the siege is over.
pub fn heard(front: &Front, relay: &mut Nostr) -> Option<(bool, String)> {
    for _ in 0..60 {
        if front.is_over() {
            return None;
        }
        if let Some(heard) = relay.hear_within(Duration::from_millis(500)) {
            return Some((heard.0[2] == true, heard.0[3].as_str().unwrap_or_default().to_owned()));
        }
    }
    None
}
