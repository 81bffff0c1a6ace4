//! Attacks on threads that came by nostr: many statuses, and readers of large comments.

use super::asking::{again, answer};
use super::attacks::Front;
use super::telling::{heard, send};
use abide_nostr::Event;
use abide_testkit::http::Request;
use abide_testkit::{Key, Nostr};
use std::sync::atomic::{AtomicU32, Ordering};

/// Statuses, or comments, that are large: as many as a key without an account may store.
const LARGE: u32 = 200;

/// Statuses that are sent before the first answer is read.
const BATCH: u32 = 50;

/// Words on the status of a thread of one's own, after many large ones: each must cost the writer as little as the first.
pub fn statuses(front: &Front) {
    let key = Key::new(700);
    let Some((thread, _)) = laden(front, &key, |id, at, text| key.event(at, 1632, &[&["e", id, "", "root"]], text))
    else {
        return;
    };
    let id = thread.id.to_hex();
    let number = AtomicU32::new(0);
    again(front, 1, || {
        let Ok(mut relay) = Nostr::try_connect_from(front.from, &front.target.url) else {
            return front.tally.is_refused();
        };
        for _ in 0..BATCH {
            let at = number.fetch_add(1, Ordering::Relaxed);
            // Older than the large ones, so that those stay the newest.
            let kind = if at.is_multiple_of(2) { 1630 } else { 1632 };
            let older = thread.created_at.as_secs().saturating_sub(1000 + u64::from(at % 500));
            front.tally.tries();
            send(&mut relay, &key.event(older, kind, &[&["e", &id, "", "root"]], &at.to_string()));
        }
        for _ in 0..BATCH {
            let Some(heard) = heard(front, &mut relay) else { return };
            front.tally.is_told(heard.0, &heard.1);
        }
    });
}

/// Readers of a thread with many large comments.
pub fn readers(front: &Front) {
    let (key, other) = (Key::new(701), Key::new(702));
    let Some((_, page)) =
        laden(front, &key, |id, at, text| other.event(at, 1111, &[&["E", id], &["e", id], &["K", "1621"]], text))
    else {
        return;
    };
    let list = Request::new("GET", &format!("{}/issues", front.target.kept));
    let page = Request::new("GET", &page);
    let number = AtomicU32::new(0);
    again(front, 10, || {
        front.tally.tries();
        let asked = if number.fetch_add(1, Ordering::Relaxed).is_multiple_of(4) { &list } else { &page };
        if let Some(answer) = answer(front, asked) {
            front.tally.is_told(answer.status == 200, &answer.status.to_string());
        }
    });
}

/// An issue for the repository of somebody else with many large events that hang on it, and its page; `None` if the siege is
/// over before.
fn laden(front: &Front, key: &Key, event: impl Fn(&str, u64, &str) -> Event) -> Option<(Event, String)> {
    let text = "x".repeat(250 << 10);
    let issue = key.event(Key::now() - 100, 1621, &[&["a", &front.target.coordinate], &["subject", "x"]], "x");
    let id = issue.id.to_hex();
    let mut relay = Nostr::try_connect_from(front.from, &front.target.url).ok()?;
    send(&mut relay, &issue);
    heard(front, &mut relay)?;
    for n in 0..LARGE {
        if front.is_over() {
            return None;
        }
        send(&mut relay, &event(&id, Key::now() - 50, &format!("{n}{text}")));
        let (taken, _) = heard(front, &mut relay)?;
        if !taken {
            // The relay takes no more for now; what is there is what the attack has.
            break;
        }
    }
    Some((issue, format!("{}/nostr/{id}", front.target.kept)))
}
