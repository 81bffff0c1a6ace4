//! Proof of a key over HTTP (NIP-98): a signed event for one request, in its `Authorization` header.

use crate::event::{self, EventError};
use crate::{EventId, PublicKey, RelayLimits, hexadecimal, kinds, parse_event, verify_signature};
use abide_core::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::time::Duration;

/// Largest difference between a proof's time and our clock, in either direction.
pub const WINDOW: Duration = Duration::from_secs(60);

/// Request that a proof must match.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Method, such as `GET`.
    pub method: &'a str,
    /// Full URL with its query, as the client sees it.
    pub url: &'a str,
    pub body: Body,
}

/// Body of a request, as a proof must match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Not checked, because the body itself contains the signed event.
    Unread,
    /// No body. A proof may state the hash of an empty body.
    Empty,
    /// SHA-256 of the body. A proof must name it; otherwise an observer could send the proof with another body.
    Hash([u8; 32]),
}

impl Body {
    /// SHA-256 of an empty body.
    const NOTHING: [u8; 32] = [
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae,
        0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
    ];

    /// Whether a `payload` tag matches.
    fn fits(self, payload: Option<&str>) -> bool {
        let is = |hash: [u8; 32]| payload.map(|payload| hexadecimal::decode(payload) == Some(hash));
        match self {
            Self::Unread => true,
            Self::Empty => is(Self::NOTHING).unwrap_or(true),
            Self::Hash(hash) => is(hash).unwrap_or(false),
        }
    }
}

/// A verified proof. The caller must remember the event id for twice [`WINDOW`], so that a proof works only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    pub key: PublicKey,
    pub event: EventId,
}

/// Reason why a header proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpAuthError {
    /// Another scheme or none; not a NIP-98 header.
    #[error("the Authorization header does not start with \"Nostr \"")]
    OtherScheme,
    #[error("the event in the Authorization header is not base64")]
    NotBase64,
    #[error(transparent)]
    Event(#[from] EventError),
    #[error("the event must have kind 27235")]
    Kind,
    /// Too old, or too far ahead.
    #[error("created_at is not within one minute of now; check the clock")]
    Time,
    #[error("the u tag does not match the URL of this request")]
    Url,
    #[error("the method tag does not match the method of this request")]
    Method,
    /// The payload tag is missing or does not match the body.
    #[error("the payload tag must be the SHA-256 of the request body")]
    Payload,
    /// The challenge tag is missing or does not match.
    #[error("the challenge tag does not match the challenge")]
    Challenge,
    #[error("the signature is not valid")]
    Signature,
}

/// Verifies an `Authorization` header.
///
/// A request with a body needs a `payload` tag; without a body the tag is optional. The signature is checked last.
pub fn verify(
    header: &str,
    request: &Request<'_>,
    now: Timestamp,
    limits: &RelayLimits,
) -> Result<Proof, HttpAuthError> {
    judge(&decoded(header, limits)?, request, None, now, limits)
}

/// The key that a header names, without verification: for headers that were verified before.
pub fn named_key(header: &str, limits: &RelayLimits) -> Result<PublicKey, HttpAuthError> {
    Ok(parse_event(&decoded(header, limits)?, limits)?.pubkey)
}

fn decoded(header: &str, limits: &RelayLimits) -> Result<String, HttpAuthError> {
    use HttpAuthError as E;
    let (scheme, encoded) = header.split_once(' ').ok_or(E::OtherScheme)?;
    if !scheme.eq_ignore_ascii_case("nostr") {
        return Err(E::OtherScheme);
    }
    if encoded.len() > limits.event_bytes.saturating_mul(2) {
        return Err(EventError::TooLarge(limits.event_bytes).into());
    }
    let json = STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    json.ok_or(E::NotBase64)
}

/// Verifies an event from a browser form, which must answer our challenge.
pub fn verify_answer(
    json: &str,
    request: &Request<'_>,
    challenge: &str,
    now: Timestamp,
    limits: &RelayLimits,
) -> Result<Proof, HttpAuthError> {
    judge(json, request, Some(challenge), now, limits)
}

fn judge(
    json: &str,
    request: &Request<'_>,
    challenge: Option<&str>,
    now: Timestamp,
    limits: &RelayLimits,
) -> Result<Proof, HttpAuthError> {
    use HttpAuthError as E;
    let proof = parse_event(json, limits)?;
    if proof.kind.as_u16() != kinds::HTTP_AUTH {
        Err(E::Kind)
    } else if event::seconds(now).abs_diff(proof.created_at.as_secs()) > WINDOW.as_secs() {
        Err(E::Time)
    } else if event::first_value(&proof, "u") != Some(request.url) {
        Err(E::Url)
    } else if event::first_value(&proof, "method") != Some(request.method) {
        Err(E::Method)
    } else if !request.body.fits(event::first_value(&proof, "payload")) {
        Err(E::Payload)
    } else if challenge.is_some_and(|given| event::first_value(&proof, "challenge") != Some(given)) {
        Err(E::Challenge)
    } else if !verify_signature(&proof) {
        Err(E::Signature)
    } else {
        Ok(Proof { key: proof.pubkey, event: proof.id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NOW, event, json, key};
    use crate::{Event, Signature};

    const URL: &str = "https://git.example.org/api/v3/user?x=1";
    const POST: Request<'static> = Request { method: "POST", url: URL, body: Body::Hash([7; 32]) };

    fn header(event: &Event) -> String {
        format!("Nostr {}", STANDARD.encode(json(event)))
    }

    fn judged(kind: u16, at: i64, tags: &[&[&str]]) -> Result<PublicKey, HttpAuthError> {
        verify(&header(&event(1, kind, at, tags, "")), &POST, NOW, &RelayLimits::default()).map(|proof| proof.key)
    }

    #[test]
    fn a_proof_is_for_one_method_address_body_and_minute() {
        use HttpAuthError as E;
        let (u, method): (&[&str], &[&str]) = (&["u", URL], &["method", "POST"]);
        let body = "07".repeat(32);
        let payload: &[&str] = &["payload", &body];
        assert_eq!(judged(27_235, 60, &[u, method, payload]), Ok(key(1)));
        assert_eq!(judged(27_235, -60, &[u, method, payload]), Ok(key(1)));
        assert_eq!(judged(27_235, 0, &[u, method]), Err(E::Payload), "a body needs a payload");
        assert_eq!(judged(27_235, -61, &[u, method]), Err(E::Time));
        assert_eq!(judged(27_235, 61, &[u, method]), Err(E::Time));
        assert_eq!(judged(22_242, 0, &[u, method]), Err(E::Kind));
        assert_eq!(judged(27_235, 0, &[&["u", "https://git.example.org/api/v3/user"], method]), Err(E::Url));
        assert_eq!(judged(27_235, 0, &[method]), Err(E::Url));
        assert_eq!(judged(27_235, 0, &[u, &["method", "GET"]]), Err(E::Method));
        assert_eq!(judged(27_235, 0, &[u, method, &["payload", &"08".repeat(32)]]), Err(E::Payload));
        assert_eq!(judged(27_235, 0, &[u, method, &["payload", "x"]]), Err(E::Payload));
    }

    #[test]
    fn an_answer_is_to_the_challenge_that_was_given() {
        let (u, method): (&[&str], &[&str]) = (&["u", URL], &["method", "POST"]);
        let unread = Request { body: Body::Unread, ..POST };
        let judged = |tags: &[&[&str]]| {
            let event = json(&event(1, 27_235, 0, tags, ""));
            verify_answer(&event, &unread, "abc", NOW, &RelayLimits::default()).map(|proof| proof.key)
        };
        assert_eq!(judged(&[u, method, &["challenge", "abc"]]), Ok(key(1)));
        assert_eq!(judged(&[u, method, &["challenge", "abd"]]), Err(HttpAuthError::Challenge));
        assert_eq!(judged(&[u, method]), Err(HttpAuthError::Challenge));
        assert_eq!(judged(&[u, &["challenge", "abc"]]), Err(HttpAuthError::Method));
    }

    #[test]
    fn a_request_without_a_body_may_say_so_and_nothing_else() {
        let get = Request { method: "GET", url: URL, body: Body::Empty };
        let judged = |payload: Option<&str>| {
            let mut tags: Vec<Vec<&str>> = vec![vec!["u", URL], vec!["method", "GET"]];
            tags.extend(payload.map(|payload| vec!["payload", payload]));
            let tags: Vec<&[&str]> = tags.iter().map(Vec::as_slice).collect();
            verify(&header(&event(1, 27_235, 0, &tags, "")), &get, NOW, &RelayLimits::default()).map(|proof| proof.key)
        };
        assert_eq!(judged(None), Ok(key(1)));
        let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(judged(Some(nothing)), Ok(key(1)));
        assert_eq!(judged(Some(&"07".repeat(32))), Err(HttpAuthError::Payload));
        assert_eq!(judged(Some("")), Err(HttpAuthError::Payload));
    }

    #[test]
    fn a_wrong_signature_proves_nothing() {
        let body = "07".repeat(32);
        let mut proof = event(1, 27_235, 0, &[&["u", URL], &["method", "POST"], &["payload", &body]], "");
        proof.sig = Signature::from_byte_array([1; 64]);
        assert_eq!(verify(&header(&proof), &POST, NOW, &RelayLimits::default()), Err(HttpAuthError::Signature));
    }

    #[test]
    fn other_headers_are_told_apart_from_broken_ones() {
        let judge = |header: &str| verify(header, &POST, NOW, &RelayLimits::default()).unwrap_err();
        assert_eq!(judge("Bearer abc"), HttpAuthError::OtherScheme);
        assert_eq!(judge(""), HttpAuthError::OtherScheme);
        assert_eq!(judge("Nostr ***"), HttpAuthError::NotBase64);
        assert!(matches!(judge("Nostr e30="), HttpAuthError::Event(EventError::Shape(_))));
        assert!(matches!(
            judge(&format!("Nostr {}", "A".repeat(600_000))),
            HttpAuthError::Event(EventError::TooLarge(_))
        ));
    }
}
