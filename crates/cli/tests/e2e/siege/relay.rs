//! Attacks on the relay: pull requests that cost git work, and connections that hold memory of the server.

use super::asking::again;
use super::attacks::Front;
use abide_testkit::{Key, Nostr};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use tungstenite::Message;

/// Connections that publish at once, and pull requests on each before the first answer is read.
const PUBLISHING: usize = 8;
const BATCH: u32 = 50;

/// Connections that ask and do not read.
const SILENT: usize = 40;

/// Connections that reconcile, and reconciliations of each.
const RECONCILING: usize = 20;
const SIDES: u32 = 4;

/// Pull requests of ever new keys for a commit that the repository of somebody else has.
pub fn pull_requests(front: &Front) {
    let number = AtomicU32::new(1_000_000);
    again(front, PUBLISHING, || {
        let Ok(mut relay) = Nostr::try_connect_from(front.from, &front.target.url) else {
            return front.tally.is_refused();
        };
        let tags: &[&[&str]] = &[&["a", &front.target.coordinate], &["c", &front.target.tip]];
        for _ in 0..BATCH {
            front.tally.tries();
            let event = Key::new(number.fetch_add(1, Ordering::Relaxed)).event(Key::now(), 1618, tags, "");
            send(&mut relay, &json!(["EVENT", event]));
        }
        for _ in 0..BATCH {
            let Some(heard) = heard(front, &mut relay) else { return };
            front.tally.is_told(heard[2] == true, heard[3].as_str().unwrap_or_default());
        }
    });
}

/// Questions whose answers are larger than the buffers of a connection and are never read.
pub fn pages_not_read(front: &Front) {
    let text = "x".repeat(200_000);
    if let Ok(mut relay) = Nostr::try_connect_from(front.from, &front.target.url) {
        for number in 0..80 {
            let tags: &[&[&str]] = &[&["a", &front.target.coordinate]];
            send(&mut relay, &json!(["EVENT", Key::new(2_000_000 + number).event(Key::now(), 1621, tags, &text)]));
            let _ = heard(front, &mut relay);
        }
    }
    hold(front, SILENT, |relay| {
        send(relay, &json!(["REQ", "unread", { "kinds": [1621] }]));
        true
    });
}

/// Reconciliations of everything that are begun and left.
pub fn reconciliations(front: &Front) {
    hold(front, RECONCILING, |relay| {
        for side in 0..SIDES {
            send(relay, &json!(["NEG-OPEN", side.to_string(), {}, "6100000200"]));
        }
        let answers = (0..SIDES).filter_map(|_| heard(front, relay));
        answers.filter(|heard| heard[0] == "NEG-MSG").count() > 0
    });
}

/// Keeps so many connections after each began something, and opens the oldest anew from time to time. `begin` tells whether
/// it got anywhere.
fn hold(front: &Front, count: usize, begin: impl Fn(&mut Nostr) -> bool) {
    let mut held = Vec::new();
    while !front.is_over() {
        if held.len() == count {
            held.remove(0);
        }
        front.tally.tries();
        let opened = Nostr::try_connect_from(front.from, &front.target.url).ok();
        let begun = opened.and_then(|mut relay| begin(&mut relay).then_some(relay));
        match begun {
            Some(relay) => {
                front.tally.reaches();
                held.push(relay);
            }
            None => front.tally.is_refused(),
        }
        front.tally.holds(held.len());
        // An attacker of many connections is not a busy loop: what hurts is that they stay.
        if held.len() == count {
            thread::sleep(Duration::from_millis(200));
        }
    }
}

fn send(relay: &mut Nostr, message: &Value) {
    relay.send_if_taken(Message::text(message.to_string()));
}

/// The next frame; `None` if none comes, or the siege is over.
fn heard(front: &Front, relay: &mut Nostr) -> Option<Value> {
    for _ in 0..60 {
        if front.is_over() {
            return None;
        }
        if let Some(heard) = relay.hear_within(Duration::from_millis(500)) {
            return Some(heard.0);
        }
    }
    None
}
