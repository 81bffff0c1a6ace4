//! PROTOCOL: nostr as Abide speaks it, without storage and without sockets.
//!
//! Everything here is pure: bytes and facts go in, values and decisions come out. Time is a value, randomness
//! (challenges) is an argument, and [`RelayLimits`] bounds every size.
//!
//! * [`event`]: event parsing, ids, signatures, order of versions, expiration. [`deletion`]: targets of a kind 5 event.
//! * [`filter`]: subscription filters, and an index over many of them for broadcasting.
//! * [`message`]: relay frames. [`session`]: one connection as a state machine without I/O.
//! * [`client`]: the other side, another relay that we read: its frames, its session, its budget.
//! * [`info`]: relay information (NIP-11), [`nip05`], [`nip19`], [`http_auth`] (NIP-98).
//! * [`git`]: NIP-34 events, parsed once at the edge into validated types.
//! * [`grasp`]: the rules of GRASP: maintainers, acceptance, purgatory and its expiry, and pushes that match a state.
//!
//! Storage is in `abide-store`, use cases in `abide-forge`, sockets in `abide-web`.

pub mod client;
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
pub use limits::RelayLimits;
pub use nostr::event::{Event, EventId, Signature};
pub use nostr::key::PublicKey;
pub use session::{Action, Session};

pub(crate) mod hexadecimal {
    //! Lower-case hexadecimal of a fixed length, as nostr writes ids and keys.

    /// Decodes exactly `2 * N` lower-case digits. Refuses upper case: each value has one spelling.
    pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
        if text.len() != 2 * N || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        let mut bytes = [0; N];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(bytes)
    }
}
