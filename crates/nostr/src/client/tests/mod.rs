//! The client against frames that a test writes, and against the server's session.

mod convergence;
mod lies;
mod network;
mod transitions;

use super::*;
use crate::testing::{NOW, NOW_SECONDS};
use crate::{EventId, Signature};
use nostr::event::{Kind, Tag, UnsignedEvent};
use serde_json::Value;

/// An event of this kind, dated [`NOW_SECONDS`] minus `age`. It has no valid signature, because the session checks
/// none.
fn unsigned(kind: u16, age: u64, content: &str) -> Event {
    let at = nostr::types::Timestamp::from_secs(NOW_SECONDS - age);
    let unsigned = UnsignedEvent::new(crate::testing::key(1), at, Kind::from_u16(kind), Vec::<Tag>::new(), content);
    let id = unsigned.compute_id();
    let (tags, signature) = (Vec::<Tag>::new(), Signature::from_byte_array([0; 64]));
    Event::new(id, unsigned.pubkey, at, unsigned.kind, tags, content.to_owned(), signature)
}

/// As many events of kind 1, one per second, the newest first.
fn row(count: u64) -> Vec<Event> {
    (0..count).map(|age| unsigned(1, age, "")).collect()
}

fn layer() -> Filter {
    Filter { kinds: Some([1].into()), ..Filter::default() }
}

fn session(capability: Capability) -> ClientSession {
    ClientSession::new(ClientLimits::default(), capability)
}

fn item(event: &Event) -> (u64, EventId) {
    (event.created_at.as_secs(), event.id)
}

/// The frames among the wishes, as JSON.
fn frames(wishes: &[Wish]) -> Vec<Value> {
    let text = |wish: &Wish| match wish {
        Wish::Send(text) => Some(serde_json::from_str(text).unwrap()),
        _ => None,
    };
    wishes.iter().filter_map(text).collect()
}

/// Frame of an event.
fn event_frame(subscription: &str, event: &Event) -> String {
    format!("[\"EVENT\",\"{subscription}\",{}]", crate::event::to_json(event))
}
