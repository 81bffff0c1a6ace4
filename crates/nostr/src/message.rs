//! Frames between client and relay: JSON arrays that begin with their name.

use crate::event::RawEvent;
use crate::{Event, EventId, Filter, RelayLimits, hexadecimal};
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// A client's id of a subscription, of bounded length and not empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId(Arc<str>);

impl SubscriptionId {
    /// Validates a subscription id.
    pub fn new(text: &str, limits: &RelayLimits) -> Option<Self> {
        let chars = text.chars().take(limits.subscription_id_chars + 1).count();
        (1..=limits.subscription_id_chars).contains(&chars).then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A message from a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientMessage {
    /// An event to publish.
    Event(Box<Event>),
    /// Opens a subscription.
    Req(SubscriptionId, Vec<Filter>),
    /// Closes a subscription.
    Close(SubscriptionId),
    /// Asks for a count (NIP-45).
    Count(SubscriptionId, Vec<Filter>),
    /// Proof of a key (NIP-42).
    Auth(Box<Event>),
    /// Starts a reconciliation (NIP-77).
    NegOpen(SubscriptionId, Filter, Vec<u8>),
    /// Continues a reconciliation.
    NegMsg(SubscriptionId, Vec<u8>),
    /// Ends a reconciliation.
    NegClose(SubscriptionId),
}

/// Error in a message, by the frame that reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// A NOTICE: the message has no id to answer to.
    Notice(String),
    /// An OK with `false`.
    Event(EventId, String),
    /// A CLOSED.
    Subscription(SubscriptionId, String),
    /// A NEG-ERR.
    Reconciliation(SubscriptionId, String),
}

/// A frame by its name; events are deserialized directly, the rest as JSON values.
enum Frame {
    Event(RawEvent),
    Auth(RawEvent),
    Other(String, Vec<Value>),
}

impl<'de> Deserialize<'de> for Frame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FrameVisitor)
    }
}

struct FrameVisitor;

impl<'de> Visitor<'de> for FrameVisitor {
    type Value = Frame;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON array that starts with a message name")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Frame, A::Error> {
        let name: String = seq.next_element()?.ok_or_else(|| A::Error::custom("an empty array"))?;
        if name == "EVENT" || name == "AUTH" {
            let event = seq.next_element()?.ok_or_else(|| A::Error::custom("an event is missing"))?;
            if seq.next_element::<Value>()?.is_some() {
                return Err(A::Error::custom("something follows the event"));
            }
            return Ok(if name == "EVENT" { Frame::Event(event) } else { Frame::Auth(event) });
        }
        let mut rest = Vec::new();
        while let Some(value) = seq.next_element()? {
            rest.push(value);
        }
        Ok(Frame::Other(name, rest))
    }
}

/// Room for `["EVENT",` and `]`, and a little white space.
const EVENT_FRAME: usize = 16;

impl ClientMessage {
    /// Parses one message.
    pub fn parse(text: &str, limits: &RelayLimits) -> Result<Self, MessageError> {
        if text.len() > limits.message_bytes {
            let rule = format!("invalid: a message may have at most {} bytes", limits.message_bytes);
            return Err(MessageError::Notice(rule));
        }
        match serde_json::from_str(text).map_err(|error| unreadable(text, &error))? {
            Frame::Event(event) => checked(event, text, limits).map(|event| Self::Event(Box::new(event))),
            Frame::Auth(event) => checked(event, text, limits).map(|event| Self::Auth(Box::new(event))),
            Frame::Other(name, rest) => Self::by_name(&name, &rest, limits),
        }
    }

    fn by_name(name: &str, rest: &[Value], limits: &RelayLimits) -> Result<Self, MessageError> {
        if !matches!(name, "REQ" | "CLOSE" | "COUNT" | "NEG-OPEN" | "NEG-MSG" | "NEG-CLOSE") {
            let name: String = name.chars().take(40).collect();
            return Err(MessageError::Notice(format!("unsupported: unknown message {name:?}")));
        }
        let id = rest.first().and_then(Value::as_str).and_then(|text| SubscriptionId::new(text, limits));
        let Some(id) = id else {
            let most = limits.subscription_id_chars;
            let rule = format!("invalid: {name} needs a subscription id of 1 to {most} characters");
            return Err(MessageError::Notice(rule));
        };
        let rest = rest.get(1..).unwrap_or_default();
        match name {
            "REQ" => Ok(Self::Req(id.clone(), filters(id, rest, limits)?)),
            "COUNT" => Ok(Self::Count(id.clone(), filters(id, rest, limits)?)),
            "CLOSE" => Ok(Self::Close(id)),
            "NEG-CLOSE" => Ok(Self::NegClose(id)),
            "NEG-MSG" => Ok(Self::NegMsg(id.clone(), reconciliation_bytes(&id, rest.first())?)),
            _ => {
                let filter = Filter::parse(rest.first().unwrap_or(&Value::Null), limits);
                let filter = filter.map_err(|error| MessageError::Reconciliation(id.clone(), error.to_string()))?;
                Ok(Self::NegOpen(id.clone(), filter, reconciliation_bytes(&id, rest.get(1))?))
            }
        }
    }
}

fn checked(raw: RawEvent, text: &str, limits: &RelayLimits) -> Result<Event, MessageError> {
    let id = raw.id();
    // Size without the frame around the event.
    let bytes = text.len().saturating_sub(EVENT_FRAME);
    raw.check(bytes, limits).map_err(|error| refused(id, format!("invalid: {error}")))
}

/// An OK if the event has an id, else a NOTICE.
fn refused(id: Option<EventId>, text: String) -> MessageError {
    match id {
        Some(id) => MessageError::Event(id, text),
        None => MessageError::Notice(text),
    }
}

/// Error for an unreadable frame. The sender of an event with an id waits for an OK, so it gets one.
fn unreadable(text: &str, error: &serde_json::Error) -> MessageError {
    let message: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    let id = match message[0].as_str() {
        Some("EVENT" | "AUTH") => message[1]["id"].as_str().and_then(hexadecimal::decode),
        _ => None,
    };
    refused(id.map(EventId::from_byte_array), format!("invalid: {error}"))
}

fn filters(id: SubscriptionId, rest: &[Value], limits: &RelayLimits) -> Result<Vec<Filter>, MessageError> {
    if rest.is_empty() || rest.len() > limits.filters {
        let rule = format!("invalid: a subscription must have 1 to {} filters", limits.filters);
        return Err(MessageError::Subscription(id, rule));
    }
    let filters = rest.iter().map(|value| Filter::parse(value, limits)).collect::<Result<_, _>>();
    filters.map_err(|error| MessageError::Subscription(id, error.to_string()))
}

fn reconciliation_bytes(id: &SubscriptionId, value: Option<&Value>) -> Result<Vec<u8>, MessageError> {
    let bytes = value.and_then(Value::as_str).and_then(|text| hex::decode(text).ok());
    bytes.ok_or_else(|| MessageError::Reconciliation(id.clone(), "invalid: the message must be hexadecimal".to_owned()))
}

/// Encodes `["OK", id, accepted, text]`.
pub fn ok(id: &EventId, accepted: bool, text: &str) -> String {
    json!(["OK", id, accepted, text]).to_string()
}

/// Encodes `["EVENT", subscription, event]`, with the event as stored.
pub fn event(id: &SubscriptionId, json: &str) -> String {
    format!("[\"EVENT\",{},{json}]", Value::from(id.as_str()))
}

/// Encodes `["EOSE", subscription]`.
pub fn eose(id: &SubscriptionId) -> String {
    json!(["EOSE", id.as_str()]).to_string()
}

/// Encodes `["CLOSED", subscription, text]`.
pub fn closed(id: &SubscriptionId, text: &str) -> String {
    json!(["CLOSED", id.as_str(), text]).to_string()
}

/// Encodes `["NOTICE", text]`.
pub fn notice(text: &str) -> String {
    json!(["NOTICE", text]).to_string()
}

/// Encodes `["AUTH", challenge]`.
pub fn auth(challenge: &str) -> String {
    json!(["AUTH", challenge]).to_string()
}

/// Number of matching events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Exactly(u64),
    /// Counting stopped early; there may be more.
    AtLeast(u64),
}

/// Encodes `["COUNT", subscription, {"count": n}]`, with `"approximate": true` if counting stopped early (NIP-45).
pub fn count(id: &SubscriptionId, count: Count) -> String {
    let result = match count {
        Count::Exactly(count) => json!({ "count": count }),
        Count::AtLeast(count) => json!({ "count": count, "approximate": true }),
    };
    json!(["COUNT", id.as_str(), result]).to_string()
}

/// Encodes `["NEG-MSG", subscription, bytes]`.
pub fn neg_msg(id: &SubscriptionId, bytes: &[u8]) -> String {
    json!(["NEG-MSG", id.as_str(), hex::encode(bytes)]).to_string()
}

/// Encodes `["NEG-ERR", subscription, text]`.
pub fn neg_err(id: &SubscriptionId, text: &str) -> String {
    json!(["NEG-ERR", id.as_str(), text]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{event as signed, json as written};
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<ClientMessage, MessageError> {
        ClientMessage::parse(text, &RelayLimits::default())
    }

    fn sub(text: &str) -> SubscriptionId {
        SubscriptionId::new(text, &RelayLimits::default()).unwrap()
    }

    #[test]
    fn each_message_is_read() {
        let event = signed(1, 1621, 0, &[], "x");
        let text = written(&event);
        assert_eq!(parse(&format!("[\"EVENT\",{text}]")), Ok(ClientMessage::Event(Box::new(event.clone()))));
        assert_eq!(parse(&format!(" [ \"AUTH\" , {text} ] ")), Ok(ClientMessage::Auth(Box::new(event))));
        let any = Filter { limit: 500, ..Filter::default() };
        assert_eq!(parse(r#"["REQ","s",{},{}]"#), Ok(ClientMessage::Req(sub("s"), vec![any.clone(), any.clone()])));
        assert_eq!(parse(r#"["COUNT","s",{}]"#), Ok(ClientMessage::Count(sub("s"), vec![any.clone()])));
        assert_eq!(parse(r#"["CLOSE","s"]"#), Ok(ClientMessage::Close(sub("s"))));
        assert_eq!(parse(r#"["NEG-OPEN","s",{},"61"]"#), Ok(ClientMessage::NegOpen(sub("s"), any, vec![0x61])));
        assert_eq!(parse(r#"["NEG-MSG","s","61ff"]"#), Ok(ClientMessage::NegMsg(sub("s"), vec![0x61, 0xff])));
        assert_eq!(parse(r#"["NEG-CLOSE","s"]"#), Ok(ClientMessage::NegClose(sub("s"))));
    }

    #[test]
    fn what_a_real_client_asks_for_is_understood() {
        // A recording; keys and ids are numbered, and overlong lines are truncated.
        let recording = include_str!("../tests/data/ngit-wire.txt");
        let asked = recording.lines().filter_map(|line| line.split_once(" REQ ")).map(|(_, filters)| filters);
        let mut read = 0;
        for filters in asked.filter(|filters| filters.ends_with("}]")) {
            let filters =
                (0..10).fold(filters.to_owned(), |text, n| text.replace(&format!("<{n}>"), &n.to_string().repeat(64)));
            let message = format!("[\"REQ\",\"s\",{}", &filters[1..]);
            assert!(matches!(parse(&message), Ok(ClientMessage::Req(_, filters)) if !filters.is_empty()), "{message}");
            read += 1;
        }
        assert!(read >= 10, "{read}");
    }

    #[test]
    fn what_cannot_be_named_gets_a_notice() {
        for text in [
            "",
            "null",
            "{}",
            "[]",
            "[1]",
            "\"EVENT\"",
            "[\"EVENT\"]",
            "[\"EVENT\",1]",
            "[\"EVENT\",{}]",
            "[\"REQ\"]",
            "[\"REQ\",1,{}]",
            "[\"REQ\",\"\",{}]",
            "[\"HELLO\"]",
            "[\"CLOSE\"]",
            "[\"NEG-MSG\"]",
            "[[[[",
            "\u{0}",
            "[\"REQ\",\"s\",{}",
        ] {
            assert!(matches!(parse(text), Err(MessageError::Notice(_))), "{text:?} {:?}", parse(text));
        }
        let long = format!("[\"CLOSE\",\"{}\"]", "ü".repeat(65));
        assert!(matches!(parse(&long), Err(MessageError::Notice(_))));
        assert!(parse(&long.replace("üü", "ü")).is_ok(), "characters are counted, not bytes");
    }

    #[test]
    fn deep_nesting_is_refused_and_does_not_overflow_the_stack() {
        assert!(matches!(parse(&"[".repeat(500_000)), Err(MessageError::Notice(_))));
        let deep = format!("[\"REQ\",\"s\",{}1{}]", "{\"#e\":".repeat(100_000), "}".repeat(100_000));
        assert!(parse(&deep).is_err());
    }

    #[test]
    fn what_has_a_name_is_answered_by_it() {
        let event = signed(1, 1, 0, &[], "x");
        let broken = written(&event).replace("\"content\":\"x\"", "\"content\":1");
        let refused = parse(&format!("[\"EVENT\",{broken}]"));
        assert!(matches!(refused, Err(MessageError::Event(id, why)) if id == event.id && why.starts_with("invalid: ")));
        let changed = written(&event).replace("\"content\":\"x\"", "\"content\":\"y\"");
        let refusal = MessageError::Event(event.id, "invalid: the id is not the hash of the event".to_owned());
        assert_eq!(parse(&format!("[\"EVENT\",{changed}]")), Err(refusal));
        assert!(matches!(parse(&format!("[\"EVENT\",{},1]", written(&event))), Err(MessageError::Event(..))));
        assert!(matches!(parse(r#"["REQ","s"]"#), Err(MessageError::Subscription(..))));
        let refused = parse(r#"["REQ","s",{"x":1}]"#);
        assert!(matches!(refused, Err(MessageError::Subscription(_, why)) if why.starts_with("unsupported: ")));
        assert!(matches!(parse(r#"["NEG-OPEN","s",{},"6"]"#), Err(MessageError::Reconciliation(..))));
        assert!(matches!(parse(r#"["NEG-OPEN","s"]"#), Err(MessageError::Reconciliation(..))));
    }

    #[test]
    fn limits_hold_on_both_sides() {
        let event = signed(1, 1, 0, &[], "x");
        let text = format!("[\"EVENT\",{}]", written(&event));
        let limits = |message_bytes, event_bytes| RelayLimits { message_bytes, event_bytes, ..RelayLimits::default() };
        assert!(ClientMessage::parse(&text, &limits(text.len(), text.len() - EVENT_FRAME)).is_ok());
        assert!(matches!(
            ClientMessage::parse(&text, &limits(text.len() - 1, text.len())),
            Err(MessageError::Notice(_))
        ));
        let small = ClientMessage::parse(&text, &limits(text.len(), text.len() - EVENT_FRAME - 1));
        assert!(matches!(small, Err(MessageError::Event(id, _)) if id == event.id));
        let filters = |count| parse(&format!("[\"REQ\",\"s\"{}]", ",{}".repeat(count)));
        assert!(filters(20).is_ok());
        assert!(matches!(filters(21), Err(MessageError::Subscription(..))));
    }

    #[test]
    fn answers_are_json_whatever_the_subscription_is_called() {
        let id = sub("a\"b\\\n");
        let event = signed(1, 1, 0, &[], "x");
        for text in [
            eose(&id),
            closed(&id, "error: \"x\""),
            count(&id, Count::AtLeast(3)),
            neg_msg(&id, &[1]),
            self::event(&id, &written(&event)),
        ] {
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value[1], "a\"b\\\n", "{text}");
        }
        assert_eq!(count(&sub("s"), Count::Exactly(3)), r#"["COUNT","s",{"count":3}]"#);
        let at_least: Value = serde_json::from_str(&count(&sub("s"), Count::AtLeast(3))).unwrap();
        assert_eq!(at_least, json!(["COUNT", "s", {"count": 3, "approximate": true}]));
        assert_eq!(ok(&event.id, true, ""), format!(r#"["OK","{}",true,""]"#, event.id));
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(
            text in any::<String>(),
            name in "(EVENT|REQ|COUNT|CLOSE|AUTH|NEG-OPEN|NEG-MSG)",
            rest in r#"[\[\]{}",:0-9a-z#]{0,30}"#,
        ) {
            let _ = parse(&text);
            let _ = parse(&format!("[\"{name}\",\"s\",{rest}]"));
            let _ = parse(&format!("[\"{name}\",{{{rest}}}]"));
        }
    }
}
