//! Keys, events and repositories in bech32: `npub1…`, `nevent1…`, `naddr1…` (NIP-19).

use crate::git::Coordinate;
use crate::{EventId, PublicKey, hexadecimal};
use nostr::event::Kind;
use nostr::nips::nip01;
use nostr::nips::nip19::{FromBech32, Nip19Coordinate, Nip19Event, ToBech32};
use nostr::types::RelayUrl;

/// Longest text parsed: room for an identifier of a thousand bytes and a few relays.
pub const MAX_LEN: usize = 5_000;

/// Malformed text. The message does not repeat it: it may be a secret key pasted by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {0}1… string")]
pub struct NotNip19(pub &'static str);

/// Encodes a key as `npub1…`.
pub fn npub(key: &PublicKey) -> String {
    match key.to_bech32() {
        Ok(text) => text,
        Err(never) => match never {},
    }
}

/// Parses `npub1…`, in lower case only: each key has one spelling.
pub fn parse_npub(text: &str) -> Result<PublicKey, NotNip19> {
    let error = NotNip19("npub");
    if text.len() != 63 || !text.starts_with("npub1") {
        return Err(error);
    }
    let key = PublicKey::from_bech32(text).map_err(|_| error)?;
    if npub(&key) == text { Ok(key) } else { Err(error) }
}

/// A reference to an event, with relay hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPointer {
    pub id: EventId,
    pub author: Option<PublicKey>,
    pub kind: Option<u16>,
    /// Relays that may have it.
    pub relays: Vec<String>,
}

impl EventPointer {
    /// Encodes the pointer as `nevent1…`; `None` if it does not fit.
    pub fn encode(&self) -> Option<String> {
        let mut pointer = Nip19Event::new(self.id).relays(relay_urls(&self.relays));
        pointer.author = self.author;
        pointer.kind = self.kind.map(Kind::from_u16);
        pointer.to_bech32().ok()
    }

    /// Parses `nevent1…`.
    pub fn decode(text: &str) -> Result<Self, NotNip19> {
        let error = NotNip19("nevent");
        let pointer = bounded(text).and_then(|text| Nip19Event::from_bech32(text).ok()).ok_or(error)?;
        Ok(Self {
            id: pointer.event_id,
            author: pointer.author,
            kind: pointer.kind.map(|kind| kind.as_u16()),
            relays: pointer.relays.iter().map(ToString::to_string).collect(),
        })
    }
}

/// Parses an event id: hexadecimal, `note1…` or `nevent1…`.
pub fn parse_event_id(text: &str) -> Result<EventId, NotNip19> {
    if let Some(id) = hexadecimal::decode(text) {
        return Ok(EventId::from_byte_array(id));
    }
    match text.starts_with("note1") {
        true => bounded(text).and_then(|text| EventId::from_bech32(text).ok()).ok_or(NotNip19("note")),
        false => EventPointer::decode(text).map(|pointer| pointer.id),
    }
}

/// A reference to a replaceable event, such as a repository, with relay hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPointer {
    pub coordinate: Coordinate,
    /// Relays that may have it.
    pub relays: Vec<String>,
}

impl AddressPointer {
    /// Encodes the pointer as `naddr1…`; `None` if it does not fit (identifiers are limited to 255 bytes).
    pub fn encode(&self) -> Option<String> {
        let Coordinate { kind, author, identifier } = self.coordinate.clone();
        let coordinate = nip01::Coordinate { kind: Kind::from_u16(kind), public_key: author, identifier };
        Nip19Coordinate::new(coordinate, relay_urls(&self.relays)).to_bech32().ok()
    }

    /// Parses `naddr1…`.
    pub fn decode(text: &str) -> Result<Self, NotNip19> {
        let error = NotNip19("naddr");
        let pointer = bounded(text).and_then(|text| Nip19Coordinate::from_bech32(text).ok()).ok_or(error)?;
        let nip01::Coordinate { kind, public_key, identifier } = pointer.coordinate;
        Ok(Self {
            coordinate: Coordinate { kind: kind.as_u16(), author: public_key, identifier },
            relays: pointer.relays.iter().map(ToString::to_string).collect(),
        })
    }
}

fn bounded(text: &str) -> Option<&str> {
    (text.len() <= MAX_LEN).then_some(text)
}

/// Parses relay hints; drops invalid ones.
fn relay_urls(relays: &[String]) -> Vec<RelayUrl> {
    relays.iter().filter_map(|url| RelayUrl::parse(url).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::key;
    use proptest::prelude::*;

    const NPUB: &str = "npub1hxm9euqdw389u6nxr28gm2lv6e78dxlc4ekvs2h09z8rv0elp3fs36y47h";
    const HEX: &str = "b9b65cf00d744e5e6a661a8e8dabecd67c769bf8ae6cc82aef288e363f3f0c53";

    #[test]
    fn an_npub_of_a_published_client_is_its_key() {
        assert_eq!(parse_npub(NPUB).unwrap().to_hex(), HEX);
        assert_eq!(npub(&PublicKey::from_hex(HEX).unwrap()), NPUB);
    }

    #[test]
    fn one_key_has_one_spelling() {
        let bad = [
            HEX.to_owned(),
            NPUB.to_uppercase(),
            format!("nostr:{NPUB}"),
            NPUB.replace("47h", "47g"),
            format!("{NPUB}q"),
            String::new(),
            "npub1".to_owned(),
        ];
        for text in bad {
            assert_eq!(parse_npub(&text), Err(NotNip19("npub")), "{text}");
        }
    }

    #[test]
    fn other_checksums_and_filled_padding_are_no_other_spellings() {
        for text in [
            "npub1hxm9euqdw389u6nxr28gm2lv6e78dxlc4ekvs2h09z8rv0elp3fsyx5em4",
            "npub1hxm9euqdw389u6nxr28gm2lv6e78dxlc4ekvs2h09z8rv0elp3f3vvsqr9",
        ] {
            assert_eq!(parse_npub(text), Err(NotNip19("npub")), "{text}");
        }
    }

    #[test]
    fn a_secret_key_is_never_taken_nor_repeated() {
        let secret = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
        let error = parse_npub(secret).unwrap_err();
        assert!(EventPointer::decode(secret).is_err() && AddressPointer::decode(secret).is_err());
        assert!(!error.to_string().contains("nsec"));
    }

    #[test]
    fn an_event_is_named_in_three_ways() {
        let id = EventId::from_byte_array([7; 32]);
        let pointer = EventPointer { id, author: None, kind: None, relays: Vec::new() };
        let names = [id.to_hex(), id.to_bech32().unwrap(), pointer.encode().unwrap()];
        assert_eq!(names.map(|text| parse_event_id(&text)), [Ok(id), Ok(id), Ok(id)]);
        for text in ["", "1", NPUB, &id.to_hex().to_uppercase(), "note1", "nevent1x"] {
            assert!(parse_event_id(text).is_err() || text.len() == 64 && text == id.to_hex(), "{text}");
        }
    }

    #[test]
    fn an_identifier_that_does_not_fit_has_no_naddr() {
        let pointer =
            |len| AddressPointer { coordinate: Coordinate::repo(key(1), &"x".repeat(len)), relays: Vec::new() };
        assert!(pointer(255).encode().is_some());
        assert_eq!(pointer(256).encode(), None);
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(bytes: [u8; 32], identifier in ".{0,30}", kind: u16, author: bool, relay: bool) {
            let key = PublicKey::from_byte_array(bytes);
            prop_assert_eq!(parse_npub(&npub(&key)), Ok(key));
            let relays = if relay { vec!["wss://a.example.org".to_owned()] } else { Vec::new() };
            let id = EventId::from_byte_array(bytes);
            let (author, kind_hint) = (author.then_some(key), author.then_some(kind));
            let event = EventPointer { id, author, kind: kind_hint, relays: relays.clone() };
            prop_assert_eq!(EventPointer::decode(&event.encode().unwrap()), Ok(event));
            let address = AddressPointer { coordinate: Coordinate { kind, author: key, identifier }, relays };
            prop_assert_eq!(AddressPointer::decode(&address.encode().unwrap()), Ok(address));
        }

        #[test]
        fn arbitrary_text_never_panics(text in "(npub1|nevent1|naddr1)?[a-z0-9]{0,80}|.{0,40}") {
            let _ = (parse_npub(&text), EventPointer::decode(&text), AddressPointer::decode(&text));
        }
    }
}
