//! Signed events for tests: fixed keys, fixed time, no randomness.

use crate::{Event, PublicKey, RelayLimits, parse_event};
use abide_core::Timestamp;
use nostr::event::{Kind, Tag, UnsignedEvent};
use nostr::key::Keys;
use serde_json::Value;

/// Fixed test time in seconds.
pub const NOW_SECONDS: u64 = 1_800_000_000;
/// Fixed test time as a timestamp.
pub const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// Key pair number `n`.
pub fn keys(n: u8) -> Keys {
    Keys::parse(&format!("{:064x}", u32::from(n) + 1)).unwrap()
}

/// Public key number `n`.
pub fn key(n: u8) -> PublicKey {
    keys(n).public_key()
}

/// A signed event of author `n`, dated [`NOW_SECONDS`] plus `at`.
pub fn event(n: u8, kind: u16, at: i64, tags: &[&[&str]], content: &str) -> Event {
    let keys = keys(n);
    let tags = tags.iter().map(|tag| Tag::parse(tag.iter().copied()).unwrap());
    let created_at = nostr::types::Timestamp::from_secs(NOW_SECONDS.saturating_add_signed(at));
    let unsigned = UnsignedEvent::new(keys.public_key(), created_at, Kind::from_u16(kind), tags, content);
    let id = unsigned.compute_id();
    let sig = keys.sign_schnorr_with_aux_rand(&secp256k1::Secp256k1::new(), id.as_bytes(), &[7; 32]);
    unsigned.add_signature(sig).unwrap()
}

/// The event as JSON.
pub fn json(event: &Event) -> String {
    serde_json::to_string(event).unwrap()
}

/// Events recorded from a published client: one of each kind it uses.
pub fn samples() -> Vec<Event> {
    let all: serde_json::Map<String, Value> =
        serde_json::from_str(include_str!("../tests/data/ngit-events.json")).unwrap();
    all.values().map(|event| parse_event(&event.to_string(), &RelayLimits::default()).unwrap()).collect()
}

/// The recorded event of one kind.
pub fn sample(kind: u16) -> Event {
    samples().into_iter().find(|event| event.kind.as_u16() == kind).unwrap()
}
