//! PROTOCOL: nostr as Abide speaks it, without storage and without sockets.
//!
//! Everything here is pure: bytes and facts come in, values and decisions go out. Time is a value, randomness
//! (challenges) is handed in, and every size is bounded by [`Limits`].
//!
//! * [`event`]: events read from JSON, their id and signature, which of two wins, when one expires. [`deletion`]: what
//!   a kind 5 may delete.
//! * [`filter`]: what a subscription asks for, and an index over many of them for broadcasting.
//! * [`message`]: the frames of a relay. [`session`]: one connection as a state machine without I/O.
//! * [`info`]: the relay's own description (NIP-11), [`nip05`], [`nip19`], [`http_auth`] (NIP-98).
//! * [`git`]: NIP-34, parsed once at the edge into types that cannot be wrong.
//! * [`grasp`]: the rules of GRASP: who maintains, what is accepted, what waits and for how long, which push fits.
//!
//! What is stored lives in `abide-store`, the use cases in `abide-forge`, the sockets in `abide-web`.

pub mod deletion;
pub mod event;
pub mod filter;
pub mod git;
pub mod grasp;
pub mod http_auth;
pub mod info;
pub mod kinds;
pub mod limits;
pub mod message;
pub mod nip05;
pub mod nip19;
pub mod session;

#[cfg(test)]
pub(crate) mod testing;

pub use event::{Rank, parse_event, verify_signature};
pub use filter::{Filter, SubscriptionIndex};
pub use limits::Limits;
pub use nostr::event::{Event, EventId, Signature};
pub use nostr::key::PublicKey;
pub use session::{Action, Session};

pub(crate) mod hexadecimal {
    //! Lower-case hexadecimal of a fixed length, as nostr writes ids and keys.

    /// Reads exactly `2 * N` lower-case digits. Upper case is refused: one value has one spelling.
    pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
        if text.len() != 2 * N || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        let mut bytes = [0; N];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(bytes)
    }
}
