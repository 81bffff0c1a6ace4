//! Proof of a key to the HTTP side (NIP-98): an event for one request, in its `Authorization` header.

use crate::event::{self, EventError};
use crate::{EventId, Limits, PublicKey, hexadecimal, kinds, parse_event, verify_signature};
use abide_core::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::time::Duration;

/// How long a proof is good for, to either side of our clock.
pub const WINDOW: Duration = Duration::from_secs(60);

/// The request that a proof must be for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `GET`, `POST`, …
    pub method: &'a str,
    /// The whole address with its query, as the client sees it.
    pub url: &'a str,
    /// The body's SHA-256, if it was read.
    pub body: Option<[u8; 32]>,
}

/// Who proved what. The event's id must be remembered for [`WINDOW`] twice over, so that a proof serves once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The key.
    pub key: PublicKey,
    /// The event.
    pub event: EventId,
}

/// Why a header proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpAuthError {
    /// Another scheme, or none: not for us to judge.
    #[error("the Authorization header does not begin with \"Nostr \"")]
    OtherScheme,
    /// Not base64.
    #[error("the event in the Authorization header is not base64")]
    NotBase64,
    /// Not an event.
    #[error(transparent)]
    Event(#[from] EventError),
    /// Not of kind 27235.
    #[error("the event is not of kind 27235")]
    Kind,
    /// Too old, or too far ahead.
    #[error("the event is not from this minute; check the clock")]
    Time,
    /// For another address.
    #[error("the u tag is not the address of this request")]
    Url,
    /// For another method.
    #[error("the method tag is not the method of this request")]
    Method,
    /// For another body.
    #[error("the payload tag is not the hash of this request's body")]
    Payload,
    /// For another challenge, or for none.
    #[error("the challenge tag is not the challenge that was given out")]
    Challenge,
    /// The signature is wrong.
    #[error("the signature is wrong")]
    Signature,
}

/// Judges an `Authorization` header.
///
/// A `payload` tag is checked whenever there is one and the body is known. The signature is checked last.
pub fn verify(header: &str, request: &Request<'_>, now: Timestamp, limits: &Limits) -> Result<Proof, HttpAuthError> {
    use HttpAuthError as E;
    let (scheme, encoded) = header.split_once(' ').ok_or(E::OtherScheme)?;
    if !scheme.eq_ignore_ascii_case("nostr") {
        return Err(E::OtherScheme);
    }
    if encoded.len() > limits.event_bytes.saturating_mul(2) {
        return Err(EventError::TooLarge(limits.event_bytes).into());
    }
    let json = STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    judge(&json.ok_or(E::NotBase64)?, request, None, now, limits)
}

/// Judges the event that a browser sends in a form, which must answer our challenge.
pub fn verify_answer(
    json: &str,
    request: &Request<'_>,
    challenge: &str,
    now: Timestamp,
    limits: &Limits,
) -> Result<Proof, HttpAuthError> {
    judge(json, request, Some(challenge), now, limits)
}

fn judge(
    json: &str,
    request: &Request<'_>,
    challenge: Option<&str>,
    now: Timestamp,
    limits: &Limits,
) -> Result<Proof, HttpAuthError> {
    use HttpAuthError as E;
    let proof = parse_event(json, limits)?;
    let payload = event::first_value(&proof, "payload");
    let same_body = |body: [u8; 32]| payload.is_none_or(|payload| hexadecimal::decode(payload) == Some(body));
    if proof.kind.as_u16() != kinds::HTTP_AUTH {
        Err(E::Kind)
    } else if event::seconds(now).abs_diff(proof.created_at.as_secs()) > WINDOW.as_secs() {
        Err(E::Time)
    } else if event::first_value(&proof, "u") != Some(request.url) {
        Err(E::Url)
    } else if event::first_value(&proof, "method") != Some(request.method) {
        Err(E::Method)
    } else if !request.body.is_none_or(same_body) {
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
    const POST: Request<'static> = Request { method: "POST", url: URL, body: Some([7; 32]) };

    fn header(event: &Event) -> String {
        format!("Nostr {}", STANDARD.encode(json(event)))
    }

    fn judged(kind: u16, at: i64, tags: &[&[&str]]) -> Result<PublicKey, HttpAuthError> {
        verify(&header(&event(1, kind, at, tags, "")), &POST, NOW, &Limits::default()).map(|proof| proof.key)
    }

    #[test]
    fn a_proof_is_for_one_method_address_body_and_minute() {
        use HttpAuthError as E;
        let (u, method): (&[&str], &[&str]) = (&["u", URL], &["method", "POST"]);
        let body = "07".repeat(32);
        assert_eq!(judged(27_235, 0, &[u, method]), Ok(key(1)));
        assert_eq!(judged(27_235, 60, &[u, method, &["payload", &body]]), Ok(key(1)));
        assert_eq!(judged(27_235, -60, &[u, method]), Ok(key(1)));
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
        let judged = |tags: &[&[&str]]| {
            let event = json(&event(1, 27_235, 0, tags, ""));
            verify_answer(&event, &POST, "abc", NOW, &Limits::default()).map(|proof| proof.key)
        };
        assert_eq!(judged(&[u, method, &["challenge", "abc"]]), Ok(key(1)));
        assert_eq!(judged(&[u, method, &["challenge", "abd"]]), Err(HttpAuthError::Challenge));
        assert_eq!(judged(&[u, method]), Err(HttpAuthError::Challenge));
        assert_eq!(judged(&[u, &["challenge", "abc"]]), Err(HttpAuthError::Method));
    }

    #[test]
    fn a_wrong_signature_proves_nothing() {
        let mut proof = event(1, 27_235, 0, &[&["u", URL], &["method", "POST"]], "");
        proof.sig = Signature::from_byte_array([1; 64]);
        assert_eq!(verify(&header(&proof), &POST, NOW, &Limits::default()), Err(HttpAuthError::Signature));
    }

    #[test]
    fn other_headers_are_told_apart_from_broken_ones() {
        let judge = |header: &str| verify(header, &POST, NOW, &Limits::default()).unwrap_err();
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
