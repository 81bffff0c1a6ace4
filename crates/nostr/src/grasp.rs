//! The rules of GRASP: decisions from facts that the caller looked up. Nothing here does I/O.
//!
//! * [`Parsed`]: an event, parsed for the rules. [`maintainers`]: keys whose signature counts for a repository.
//! * [`announcement`], [`state`], [`event`](mod@event): which events are accepted, wait or are refused, and why.
//! * [`signer`]: relation of an author's key to the accounts of this server.
//! * [`expiry`]: how long entries wait. [`caps`]: how many may wait. [`quota`]: storage limits of strangers.
//! * [`names`]: repository names in the forge.
//! * [`push`]: refs that a push may name. [`fit`]: the signed state that allows it. [`align`]: the resulting refs.

pub mod align;
pub mod announcement;
pub mod caps;
pub mod event;
pub mod expiry;
pub mod fit;
pub mod maintainers;
pub mod names;
mod parsed;
pub mod push;
pub mod quota;
pub mod signer;
pub mod state;

pub use parsed::Parsed;

use std::borrow::Cow;
use std::fmt;

/// Machine-readable start of a refusal (NIP-01).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// The event itself is invalid.
    Invalid,
    /// The event is valid, but not accepted here.
    Restricted,
    /// The author is blocked here.
    Blocked,
    /// A limit or quota is reached.
    RateLimited,
    /// An internal error.
    Error,
}

/// Refusal of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For programs.
    pub prefix: Prefix,
    /// For people: the problem and the next step.
    pub reason: Cow<'static, str>,
}

impl Refusal {
    /// Creates a refusal.
    pub fn new(prefix: Prefix, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { prefix, reason: reason.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.prefix {
            Prefix::Invalid => "invalid",
            Prefix::Restricted => "restricted",
            Prefix::Blocked => "blocked",
            Prefix::RateLimited => "rate-limited",
            Prefix::Error => "error",
        };
        write!(f, "{prefix}: {}", self.reason)
    }
}

impl From<crate::git::Invalid> for Refusal {
    fn from(invalid: crate::git::Invalid) -> Self {
        Self::new(Prefix::Invalid, invalid.to_string())
    }
}

/// Reply to a published event; its text is the text of the OK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Stored and served.
    Stored,
    /// Kept in purgatory, and served once the git data arrives.
    Waiting,
    /// It is already stored.
    DuplicateStored,
    /// It is already in purgatory.
    DuplicateWaiting,
    Refused(Refusal),
}

impl Answer {
    /// The boolean of the OK.
    pub fn accepted(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored => Ok(()),
            // Wording of GRASP-01, which clients match.
            Self::Waiting => f.write_str("purgatory: won't be served until git data arrives"),
            Self::DuplicateStored => f.write_str("duplicate: already have this event"),
            Self::DuplicateWaiting => f.write_str("duplicate: in purgatory"),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_the_texts_that_clients_look_for() {
        assert_eq!(Answer::Waiting.to_string(), "purgatory: won't be served until git data arrives");
        assert_eq!(Answer::DuplicateWaiting.to_string(), "duplicate: in purgatory");
        assert_eq!(Answer::Stored.to_string(), "");
        assert!(
            [Answer::Stored, Answer::Waiting, Answer::DuplicateStored, Answer::DuplicateWaiting]
                .iter()
                .all(Answer::accepted)
        );
    }

    #[test]
    fn every_refusal_has_a_prefix_of_nip_01() {
        let prefixes = [Prefix::Invalid, Prefix::Restricted, Prefix::Blocked, Prefix::RateLimited, Prefix::Error];
        let texts = prefixes.map(|prefix| Answer::Refused(Refusal::new(prefix, "why")).to_string());
        assert_eq!(texts, ["invalid: why", "restricted: why", "blocked: why", "rate-limited: why", "error: why"]);
        assert!(!Answer::Refused(Refusal::new(Prefix::Error, "why")).accepted());
    }
}
