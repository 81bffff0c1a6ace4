//! Challenges for proving a key, bound to one browser and limited in time. A challenge is signed, so nothing is stored.

use crate::{Forge, sealed};
use abide_core::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// Lifetime of a challenge: how long a login page may stay open.
const TTL: Duration = Duration::from_secs(600);
const PURPOSE: &str = "nostr challenge";
const NONCE_LEN: usize = 16;
const TIME_LEN: usize = 8;

/// A challenge for the browser that sends `bound`.
pub fn issue(forge: &Forge, bound: &str) -> String {
    let mut nonce = [0; NONCE_LEN];
    forge.random().fill(&mut nonce);
    let head = [&nonce[..], &forge.clock().now().plus(TTL).micros().to_be_bytes()].concat();
    let signature = sealed::sign(forge, PURPOSE, &message(&head, bound));
    URL_SAFE_NO_PAD.encode([&head[..], &signature].concat())
}

fn message(head: &[u8], bound: &str) -> Vec<u8> {
    [head, bound.as_bytes()].concat()
}

/// Expiry of a challenge; `None` if it was not issued to this browser, or has expired.
pub(super) fn ends(forge: &Forge, bound: &str, text: &str) -> Option<Timestamp> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (head, signature) = bytes.split_at_checked(NONCE_LEN + TIME_LEN)?;
    let (_, time) = head.split_at_checked(NONCE_LEN)?;
    let until = Timestamp::from_micros(i64::from_be_bytes(time.try_into().ok()?));
    let genuine = sealed::is_signed(forge, PURPOSE, &message(head, bound), signature);
    (genuine && forge.clock().now() < until).then_some(until)
}

/// Id under which a used challenge is stored.
pub(super) fn id(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}
