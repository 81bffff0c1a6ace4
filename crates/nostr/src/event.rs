//! Events: parsing within limits, id, signature, order of versions and expiration.

use crate::hexadecimal;
use crate::kinds::{self, Class};
use crate::{Event, EventId, PublicKey, RelayLimits, Signature};
use abide_core::Timestamp;
use nostr::event::{Kind, Tag};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::cmp::{Ordering, Reverse};

/// An event as sent, before any check. Unknown fields are dropped.
#[derive(Deserialize)]
pub(crate) struct RawEvent {
    id: String,
    pubkey: String,
    created_at: u64,
    kind: u16,
    tags: Vec<Vec<String>>,
    content: String,
    sig: String,
}

/// Reason why text is not an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// Not JSON with the fields of an event.
    #[error("not an event: {0}")]
    Shape(String),
    #[error("the event is larger than {0} bytes, the limit")]
    TooLarge(usize),
    #[error("the event has more than {0} tags, the limit")]
    TooManyTags(usize),
    #[error("a tag is empty; every tag needs a name")]
    EmptyTag,
    /// `id`, `pubkey` or `sig` is not hexadecimal of the right length.
    #[error("{0} must be lowercase hexadecimal of the right length")]
    NotHex(&'static str),
    /// A time beyond the range of both databases.
    #[error("created_at is out of range")]
    CreatedAt,
    /// The id is not the hash of the content.
    #[error("the id is not the hash of the event")]
    WrongId,
}

/// Parses one event and checks its shape and id. [`verify_signature`] checks the signature, after the caller has
/// dropped duplicates.
pub fn parse_event(json: &str, limits: &RelayLimits) -> Result<Event, EventError> {
    let most = limits.event_bytes.max(limits.state_bytes);
    if json.len() > most {
        return Err(EventError::TooLarge(most));
    }
    let raw: RawEvent = serde_json::from_str(json).map_err(|error| EventError::Shape(error.to_string()))?;
    raw.check(json.len(), limits)
}

impl RawEvent {
    /// The id, if well-formed, for the reply to a refused event.
    pub(crate) fn id(&self) -> Option<EventId> {
        hexadecimal::decode(&self.id).map(EventId::from_byte_array)
    }

    /// Checks everything that the JSON shape does not imply. `bytes` is the sent size.
    pub(crate) fn check(self, bytes: usize, limits: &RelayLimits) -> Result<Event, EventError> {
        let most = limits.bytes_of(self.kind);
        if bytes > most {
            return Err(EventError::TooLarge(most));
        }
        if self.tags.len() > limits.event_tags {
            return Err(EventError::TooManyTags(limits.event_tags));
        }
        // Range that both databases can store.
        if i64::try_from(self.created_at).is_err() {
            return Err(EventError::CreatedAt);
        }
        let id = self.id().ok_or(EventError::NotHex("id"))?;
        let pubkey = hexadecimal::decode(&self.pubkey).ok_or(EventError::NotHex("pubkey"))?;
        let sig = hexadecimal::decode(&self.sig).ok_or(EventError::NotHex("sig"))?;
        if hash(&self.pubkey, self.created_at, self.kind, &self.tags, &self.content) != *id.as_bytes() {
            return Err(EventError::WrongId);
        }
        let tags = self.tags.into_iter().map(Tag::parse).collect::<Result<Vec<_>, _>>();
        Ok(Event::new(
            id,
            PublicKey::from_byte_array(pubkey),
            nostr::types::Timestamp::from_secs(self.created_at),
            Kind::from_u16(self.kind),
            tags.map_err(|_| EventError::EmptyTag)?,
            self.content,
            Signature::from_byte_array(sig),
        ))
    }
}

/// Event id: SHA-256 over the compact JSON of NIP-01.
fn hash(pubkey: &str, created_at: u64, kind: u16, tags: &[Vec<String>], content: &str) -> [u8; 32] {
    let canonical = serde_json::to_vec(&(0, pubkey, created_at, kind, tags, content));
    Sha256::digest(canonical.expect("numbers and strings are always JSON")).into()
}

/// The event as compact JSON, as stored and sent.
pub fn to_json(event: &Event) -> String {
    serde_json::to_string(event).expect("numbers and strings are always JSON")
}

/// Whether the author signed this id. Takes about 50 µs of CPU time: callers drop duplicates first and run it outside
/// the connection's task.
pub fn verify_signature(event: &Event) -> bool {
    event.verify_signature()
}

/// Order of two versions of a replaceable event; the greater wins. The later `created_at` is greater, and within one
/// second the **lowest** id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rank {
    /// Unix time in seconds, as dated by the author.
    pub created_at: u64,
    pub id: EventId,
}

impl Rank {
    pub fn of(event: &Event) -> Self {
        Self { created_at: event.created_at.as_secs(), id: event.id }
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.created_at, Reverse(self.id)).cmp(&(other.created_at, Reverse(other.id)))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Key of a replaceable event; only the winning version per slot is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    pub kind: u16,
    pub author: PublicKey,
    /// First `d` tag; empty for replaceable kinds.
    pub identifier: String,
}

/// Slot of a replaceable or addressable event; `None` for the other classes.
pub fn slot(event: &Event) -> Option<Slot> {
    let kind = event.kind.as_u16();
    let identifier = match kinds::class(kind) {
        Class::Replaceable => String::new(),
        Class::Addressable => first_value(event, "d").unwrap_or_default().to_owned(),
        Class::Regular | Class::Ephemeral => return None,
    };
    Some(Slot { kind, author: event.pubkey, identifier })
}

/// Expiration time in seconds (NIP-40); a value that is no number is ignored.
pub fn expiration(event: &Event) -> Option<u64> {
    first_value(event, "expiration")?.parse().ok()
}

/// Whether the event has expired.
pub fn is_expired(event: &Event, now: Timestamp) -> bool {
    expiration(event).is_some_and(|at| at <= seconds(now))
}

/// Whether `created_at` is further ahead than the limit.
pub fn is_ahead(event: &Event, now: Timestamp, limits: &RelayLimits) -> bool {
    event.created_at.as_secs() > seconds(now).saturating_add(limits.ahead.as_secs())
}

/// Unix time in whole seconds, as nostr counts it.
pub fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.micros().div_euclid(1_000_000)).unwrap_or(0)
}

/// Name and values of every tag.
pub(crate) fn tags(event: &Event) -> impl Iterator<Item = (&str, &[String])> {
    event.tags.iter().filter_map(|tag| tag.as_slice().split_first()).map(|(name, values)| (name.as_str(), values))
}

/// First value of every tag with this name.
pub(crate) fn values<'a>(event: &'a Event, name: &'a str) -> impl Iterator<Item = &'a str> {
    tags(event).filter(move |(tag, _)| *tag == name).filter_map(|(_, values)| values.first()).map(String::as_str)
}

/// First value of the first tag with this name.
pub(crate) fn first_value<'a>(event: &'a Event, name: &'a str) -> Option<&'a str> {
    values(event, name).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NOW, NOW_SECONDS, event, json, samples};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn parse(json: &str) -> Result<Event, EventError> {
        parse_event(json, &RelayLimits::default())
    }

    fn with(field: &str, value: Value) -> Result<Event, EventError> {
        let mut object: Value = serde_json::from_str(&json(&event(0, 1, 0, &[&["t", "x"]], "hello"))).unwrap();
        object[field] = value;
        parse(&object.to_string())
    }

    #[test]
    fn what_a_real_client_sent_is_read_and_verified() {
        let samples = samples();
        assert_eq!(samples.len(), 6);
        assert!(samples.iter().all(verify_signature));
    }

    #[test]
    fn a_changed_event_has_the_wrong_id_and_a_changed_signature_does_not_verify() {
        for (field, value) in [
            ("content", json!("hellO")),
            ("created_at", json!(NOW_SECONDS + 1)),
            ("kind", json!(2)),
            ("tags", json!([["t", "y"]])),
            ("pubkey", json!("0".repeat(64))),
            ("id", json!("0".repeat(64))),
        ] {
            assert_eq!(with(field, value), Err(EventError::WrongId), "{field}");
        }
        assert!(!verify_signature(&with("sig", json!("0".repeat(128))).unwrap()));
    }

    #[test]
    fn bad_shapes_say_what_is_wrong() {
        for (field, value, error) in [
            ("id", json!("A".repeat(64)), EventError::NotHex("id")),
            ("id", json!("a".repeat(63)), EventError::NotHex("id")),
            (
                "pubkey",
                json!("npub1hxm9euqdw389u6nxr28gm2lv6e78dxlc4ekvs2h09z8rv0elp3fs36y47h"),
                EventError::NotHex("pubkey"),
            ),
            ("sig", json!("ab"), EventError::NotHex("sig")),
            ("created_at", json!(u64::MAX), EventError::CreatedAt),
        ] {
            assert_eq!(with(field, value), Err(error), "{field}");
        }
        for (field, value) in [
            ("created_at", json!(-1)),
            ("created_at", json!(1.5)),
            ("kind", json!(65_536)),
            ("kind", json!("1")),
            ("tags", json!([["a", null]])),
            ("tags", json!([[1]])),
            ("tags", json!({})),
            ("content", Value::Null),
        ] {
            assert!(matches!(with(field, value.clone()), Err(EventError::Shape(_))), "{field} {value}");
        }
    }

    #[test]
    fn an_empty_tag_is_refused_even_with_its_right_id() {
        let id = hex::encode(hash(&"0".repeat(64), 1, 1, &[vec![]], ""));
        let text = json!({"id": id, "pubkey": "0".repeat(64), "created_at": 1, "kind": 1, "tags": [[]], "content": "",
            "sig": "0".repeat(128)});
        assert_eq!(parse(&text.to_string()), Err(EventError::EmptyTag));
    }

    #[test]
    fn limits_hold_on_both_sides() {
        let text = json(&event(0, 1, 0, &[&["t", "x"], &["t", "y"]], "hello"));
        let limits = |bytes, tags| RelayLimits { event_bytes: bytes, event_tags: tags, ..RelayLimits::default() };
        assert!(parse_event(&text, &limits(text.len(), 2)).is_ok());
        assert_eq!(parse_event(&text, &limits(text.len() - 1, 2)), Err(EventError::TooLarge(text.len() - 1)));
        let state = json(&event(0, 30_618, 0, &[], ""));
        let states = |bytes| RelayLimits { event_bytes: 1, state_bytes: bytes, ..RelayLimits::default() };
        assert!(parse_event(&state, &states(state.len())).is_ok(), "a state has a bound of its own");
        assert_eq!(parse_event(&state, &states(state.len() - 1)), Err(EventError::TooLarge(state.len() - 1)));
        assert_eq!(parse_event(&text, &limits(text.len(), 1)), Err(EventError::TooManyTags(1)));
    }

    #[test]
    fn the_later_wins_and_in_one_second_the_lowest_id() {
        let rank = |created_at, id: u8| Rank { created_at, id: EventId::from_byte_array([id; 32]) };
        assert!(rank(2, 9) > rank(1, 0));
        assert!(rank(1, 3) > rank(1, 4));
        assert_eq!([rank(1, 1), rank(2, 9), rank(2, 8)].into_iter().max(), Some(rank(2, 8)));
    }

    #[test]
    fn slots_are_by_author_kind_and_first_d_tag() {
        let addressable = event(1, 30_617, 0, &[&["d", "x"], &["d", "y"]], "");
        assert_eq!(slot(&addressable).unwrap().identifier, "x");
        assert_eq!(slot(&event(1, 30_617, 0, &[&["d"]], "")).unwrap().identifier, "");
        assert_eq!(slot(&event(1, 10_002, 0, &[&["d", "x"]], "")).unwrap().identifier, "");
        assert_eq!(slot(&event(1, 1, 0, &[&["d", "x"]], "")), None);
        assert_eq!(slot(&event(1, 22_242, 0, &[&["d", "x"]], "")), None);
    }

    #[test]
    fn an_event_expires_at_the_second_it_names() {
        let expiring = |text: &str| event(0, 1, 0, &[&["expiration", text]], "");
        assert!(is_expired(&expiring(&NOW_SECONDS.to_string()), NOW));
        assert!(!is_expired(&expiring(&(NOW_SECONDS + 1).to_string()), NOW));
        assert!(!is_expired(&expiring("soon"), NOW));
        assert!(!is_expired(&event(0, 1, 0, &[], ""), NOW));
    }

    #[test]
    fn fifteen_minutes_ahead_is_the_most() {
        assert!(!is_ahead(&event(0, 1, 900, &[], ""), NOW, &RelayLimits::default()));
        assert!(is_ahead(&event(0, 1, 901, &[], ""), NOW, &RelayLimits::default()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Our hash equals the protocol library's for any text.
        #[test]
        fn every_signed_event_reads_back(content in any::<String>(), value in any::<String>(), kind: u16) {
            let signed = event(3, kind, 0, &[&["x", &value]], &content);
            let read = parse(&json(&signed));
            prop_assert_eq!(read.as_ref(), Ok(&signed));
        }

        #[test]
        fn arbitrary_text_never_panics(text in any::<String>()) {
            prop_assert!(parse(&text).is_err());
        }
    }
}
