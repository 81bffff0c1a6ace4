//! The rules of GRASP: decisions over facts that the caller looked up. Nothing here reads or writes anything.
//!
//! * [`Parsed`]: an event as the rules see it. [`maintainers`]: whose signature counts for a repository.
//! * [`announcement`], [`state`], [`event`](mod@event): what is accepted, what waits, what is refused, and why.
//! * [`signer`]: what the key of an author is to this server.
//! * [`expiry`]: how long something waits, [`caps`]: how much may. [`quota`]: how much strangers store.
//! * [`names`]: what a repository is called in the forge.
//! * [`push`]: which refs a push may name, [`fit`]: which signed state allows it, [`align`]: what the refs become.

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

/// How a refusal begins, so that programs can read it (NIP-01).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// The event itself is wrong.
    Invalid,
    /// The event is right, but not for this server.
    Restricted,
    /// The author is not wanted here.
    Blocked,
    /// Too much at once.
    RateLimited,
    /// Our fault.
    Error,
}

/// Why an event is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For programs.
    pub prefix: Prefix,
    /// For people: what is wrong and what to do.
    pub reason: Cow<'static, str>,
}

impl Refusal {
    /// A refusal.
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

/// The answer to a published event; its text is the text of the OK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Stored and served.
    Stored,
    /// Kept, and served once the git data is here.
    Waiting,
    /// It was here already.
    DuplicateStored,
    /// It was waiting already.
    DuplicateWaiting,
    /// Not taken.
    Refused(Refusal),
}

impl Answer {
    /// What the OK says.
    pub fn accepted(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored => Ok(()),
            // The text of GRASP-01, which clients look for.
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
