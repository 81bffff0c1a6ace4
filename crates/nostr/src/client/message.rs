//! Frames of a relay, and the frames that a client sends to it.

use crate::event::RawEvent;
use crate::message::SubscriptionId;
use crate::{Event, EventId, Filter, RelayLimits, hexadecimal};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::{Value, json};
use std::fmt;

/// A frame that an honest relay does not send. Each one counts against the relay's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lie {
    /// A frame above the size limit of messages, or a binary frame.
    Oversized,
    /// Not a JSON array with the fields that its name demands.
    Unreadable,
    /// An event whose size, shape or id is wrong.
    BadEvent,
    /// An event that matches no filter of its subscription.
    Unasked,
    /// More stored events than the request allows.
    Excess,
    /// A reconciliation message that the protocol does not allow, or one too many.
    BadReconciliation,
    /// Nothing of a whole request for ids that the relay itself listed.
    Withheld,
    /// An event that admission found to be forged, as its signature shows.
    Forged,
}

/// Characters kept of a relay's text. Texts are shown to operators and never parsed.
const TEXT_CHARS: usize = 200;

/// Room for the frame around the largest event: `["EVENT","s…",` and `]`, with any of our subscription names.
const EVENT_FRAME: usize = 40;

/// A message from a relay.
#[derive(Clone, Debug, PartialEq)]
pub enum RelayMessage {
    /// An event of a subscription. Its signature is not verified.
    Event(SubscriptionId, Box<Event>),
    /// All stored events of a subscription were sent.
    Eose(SubscriptionId),
    /// Answer to a published event: accepted or not.
    Ok(EventId, bool),
    /// A text for people.
    Notice(String),
    /// The relay ended or refused a subscription, with its reason.
    Closed(SubscriptionId, String),
    /// The next message of a reconciliation (NIP-77).
    NegMsg(SubscriptionId, Vec<u8>),
    /// The relay ended or refused a reconciliation, with its reason.
    NegErr(SubscriptionId, String),
    /// A challenge (NIP-42).
    Auth,
    /// Answer to a COUNT (NIP-45).
    Count(SubscriptionId),
    /// A message of another name.
    Unknown,
}

/// The fields of a frame, before validation. Everything else of the frame is skipped without being stored.
enum Frame {
    Event(String, RawEvent),
    Named(Name, String, Option<String>),
    Ok(String, bool),
    Notice(String),
    Auth,
    Unknown,
}

/// Messages whose second field is a subscription.
#[derive(Clone, Copy)]
enum Name {
    Eose,
    Closed,
    NegMsg,
    NegErr,
    Count,
}

impl<'de> Deserialize<'de> for Frame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FrameVisitor)
    }
}

struct FrameVisitor;

/// The next element, which the message must have.
fn field<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(seq: &mut A) -> Result<T, A::Error> {
    seq.next_element()?.ok_or_else(|| A::Error::custom("a field is missing"))
}

impl<'de> Visitor<'de> for FrameVisitor {
    type Value = Frame;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON array that starts with a message name")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Frame, A::Error> {
        let name: String = field(&mut seq)?;
        let frame = match name.as_str() {
            "EVENT" => Frame::Event(field(&mut seq)?, field(&mut seq)?),
            "EOSE" => Frame::Named(Name::Eose, field(&mut seq)?, None),
            "COUNT" => Frame::Named(Name::Count, field(&mut seq)?, None),
            // The text is optional: old relays leave it out.
            "CLOSED" => Frame::Named(Name::Closed, field(&mut seq)?, seq.next_element()?),
            "NEG-ERR" => Frame::Named(Name::NegErr, field(&mut seq)?, seq.next_element()?),
            "NEG-MSG" => Frame::Named(Name::NegMsg, field(&mut seq)?, Some(field(&mut seq)?)),
            "OK" => Frame::Ok(field(&mut seq)?, field(&mut seq)?),
            "NOTICE" => Frame::Notice(field(&mut seq)?),
            "AUTH" => Frame::Auth,
            _ => Frame::Unknown,
        };
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(frame)
    }
}

impl RelayMessage {
    /// Parses one text frame. Names that this client does not know are [`RelayMessage::Unknown`].
    pub fn parse(text: &str, limits: &RelayLimits) -> Result<Self, Lie> {
        // An event of the largest size must fit into the frame that brings it.
        if text.len() > limits.message_bytes.saturating_add(EVENT_FRAME) {
            return Err(Lie::Oversized);
        }
        let subscription = |text: &str| SubscriptionId::new(text, limits).ok_or(Lie::Unreadable);
        let frame = serde_json::from_str(text).map_err(|_| Lie::Unreadable)?;
        Ok(match frame {
            Frame::Event(id, raw) => {
                let bytes = text.len().saturating_sub(EVENT_FRAME);
                let event = raw.check(bytes, limits).map_err(|_| Lie::BadEvent)?;
                Self::Event(subscription(&id)?, Box::new(event))
            }
            Frame::Named(name, id, text) => {
                let (id, text) = (subscription(&id)?, text.unwrap_or_default());
                match name {
                    Name::Eose => Self::Eose(id),
                    Name::Count => Self::Count(id),
                    Name::Closed => Self::Closed(id, shortened(&text)),
                    Name::NegErr => Self::NegErr(id, shortened(&text)),
                    Name::NegMsg => Self::NegMsg(id, hex::decode(text).map_err(|_| Lie::BadReconciliation)?),
                }
            }
            Frame::Ok(id, accepted) => {
                let id = hexadecimal::decode(&id).ok_or(Lie::Unreadable)?;
                Self::Ok(EventId::from_byte_array(id), accepted)
            }
            Frame::Notice(text) => Self::Notice(shortened(&text)),
            Frame::Auth => Self::Auth,
            Frame::Unknown => Self::Unknown,
        })
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(TEXT_CHARS).collect()
}

/// Encodes `["REQ", subscription, filter…]`.
pub(super) fn req(id: &str, filters: &[Filter]) -> String {
    let head = [json!("REQ"), json!(id)];
    Value::from_iter(head.into_iter().chain(filters.iter().map(Filter::to_json))).to_string()
}

/// Encodes `["CLOSE", subscription]`.
pub(super) fn close(id: &str) -> String {
    json!(["CLOSE", id]).to_string()
}

/// Encodes `["NEG-OPEN", subscription, filter, bytes]`. The filter has no `limit`: some relays would compare only that
/// many events.
pub(super) fn neg_open(id: &str, filter: &Filter, bytes: &[u8]) -> String {
    let mut filter = filter.to_json();
    if let Some(fields) = filter.as_object_mut() {
        fields.remove("limit");
    }
    json!(["NEG-OPEN", id, filter, hex::encode(bytes)]).to_string()
}

/// Encodes `["NEG-MSG", subscription, bytes]`.
pub(super) fn neg_msg(id: &str, bytes: &[u8]) -> String {
    json!(["NEG-MSG", id, hex::encode(bytes)]).to_string()
}

/// Encodes `["NEG-CLOSE", subscription]`.
pub(super) fn neg_close(id: &str) -> String {
    json!(["NEG-CLOSE", id]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{self, ClientMessage, Count};
    use crate::testing::{event as signed, json as written};
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<RelayMessage, Lie> {
        RelayMessage::parse(text, &RelayLimits::default())
    }

    fn sub(text: &str) -> SubscriptionId {
        SubscriptionId::new(text, &RelayLimits::default()).unwrap()
    }

    #[test]
    fn each_frame_of_the_servers_session_is_read() {
        let event = signed(1, 1621, 0, &[], "x");
        let id = sub("s1");
        for (text, read) in [
            (message::event(&id, &written(&event)), RelayMessage::Event(id.clone(), Box::new(event.clone()))),
            (message::eose(&id), RelayMessage::Eose(id.clone())),
            (message::ok(&event.id, false, "blocked: x"), RelayMessage::Ok(event.id, false)),
            (message::notice("hello"), RelayMessage::Notice("hello".to_owned())),
            (message::closed(&id, "error: x"), RelayMessage::Closed(id.clone(), "error: x".to_owned())),
            (message::neg_msg(&id, &[0x61, 0xff]), RelayMessage::NegMsg(id.clone(), vec![0x61, 0xff])),
            (message::neg_err(&id, "blocked: x"), RelayMessage::NegErr(id.clone(), "blocked: x".to_owned())),
            (message::auth("chance"), RelayMessage::Auth),
            (message::count(&id, Count::AtLeast(3)), RelayMessage::Count(id.clone())),
        ] {
            assert_eq!(parse(&text), Ok(read), "{text}");
        }
    }

    #[test]
    fn fields_that_other_relays_add_or_leave_out_are_tolerated() {
        assert_eq!(parse(r#"["CLOSED","s"]"#), Ok(RelayMessage::Closed(sub("s"), String::new())));
        assert_eq!(parse(r#" [ "EOSE" , "s" , {"x":[1]} ] "#), Ok(RelayMessage::Eose(sub("s"))));
        assert_eq!(parse(r#"["AUTH",{"x":1}]"#), Ok(RelayMessage::Auth));
        assert_eq!(parse(r#"["METRICS",{"x":1},null]"#), Ok(RelayMessage::Unknown));
    }

    #[test]
    fn frames_without_their_fields_are_lies() {
        for text in [
            "",
            "null",
            "{}",
            "[]",
            "[1]",
            "[\"EVENT\"]",
            "[\"EVENT\",\"s\"]",
            "[\"EVENT\",\"s\",{}]",
            "[\"EOSE\"]",
            "[\"EOSE\",1]",
            "[\"EOSE\",\"\"]",
            "[\"OK\",\"ab\",true]",
            "[\"CLOSED\",\"s\",1]",
            "[\"NEG-MSG\",\"s\"]",
            "[\"EOSE\",\"s\"",
            "[[[[",
        ] {
            assert_eq!(parse(text), Err(Lie::Unreadable), "{text:?}");
        }
        assert_eq!(parse("[\"NEG-MSG\",\"s\",\"6\"]"), Err(Lie::BadReconciliation));
        let changed = written(&signed(1, 1, 0, &[], "x")).replace("\"content\":\"x\"", "\"content\":\"y\"");
        assert_eq!(parse(&format!("[\"EVENT\",\"s\",{changed}]")), Err(Lie::BadEvent));
        assert_eq!(parse(&"[".repeat(500_000)), Err(Lie::Unreadable), "deep nesting does not overflow the stack");
        assert_eq!(parse(&" ".repeat((1 << 20) + EVENT_FRAME + 1)), Err(Lie::Oversized));
    }

    #[test]
    fn the_largest_event_fits_and_texts_are_shortened() {
        let event = signed(1, 1, 0, &[], "x");
        let text = written(&event);
        let limits = RelayLimits { message_bytes: text.len(), event_bytes: text.len(), ..RelayLimits::default() };
        let frame = format!("[\"EVENT\",\"s{}\",{text}]", u64::MAX);
        assert!(RelayMessage::parse(&frame, &limits).is_ok());
        let RelayMessage::Notice(text) = parse(&message::notice(&"ü".repeat(5_000))).unwrap() else { panic!() };
        assert_eq!(text.chars().count(), TEXT_CHARS);
    }

    #[test]
    fn the_server_reads_each_frame_of_the_client() {
        let read = |text: &str| ClientMessage::parse(text, &RelayLimits::default()).unwrap();
        let filter = Filter { kinds: Some([1].into()), since: Some(3), limit: 7, ..Filter::default() };
        let sent = req("s1", &[filter.clone(), filter.clone()]);
        assert_eq!(read(&sent), ClientMessage::Req(sub("s1"), vec![filter.clone(), filter.clone()]));
        assert_eq!(read(&close("s1")), ClientMessage::Close(sub("s1")));
        let open = ClientMessage::NegOpen(sub("s1"), Filter { limit: 500, ..filter.clone() }, vec![0x61]);
        assert_eq!(read(&neg_open("s1", &filter, &[0x61])), open);
        assert_eq!(read(&neg_msg("s1", &[0x61])), ClientMessage::NegMsg(sub("s1"), vec![0x61]));
        assert_eq!(read(&neg_close("s1")), ClientMessage::NegClose(sub("s1")));
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(
            text in any::<String>(),
            name in "(EVENT|EOSE|OK|NOTICE|CLOSED|NEG-MSG|NEG-ERR|AUTH|COUNT)",
            rest in r#"[\[\]{}",:0-9a-z#]{0,30}"#,
        ) {
            let _ = parse(&text);
            let _ = parse(&format!("[\"{name}\",\"s\",{rest}]"));
            let _ = parse(&format!("[\"{name}\",{rest}]"));
        }
    }
}
