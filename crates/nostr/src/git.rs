//! NIP-34: git over nostr. Each event is parsed once at the edge into a validated type.

mod announcement;
pub mod news;
mod object_id;
mod pr_event;
mod reference;
mod service;
mod standing;
mod state;
mod thread;

pub use announcement::Announcement;
pub use object_id::ObjectId;
pub use pr_event::{PrEvent, PrKind};
pub use reference::{Coordinate, InvalidCoordinate, References};
pub use service::{InvalidService, Service};
pub use standing::{Tip, may_say, standing, tip, title};
pub use state::RepoState;
pub(crate) use state::is_state_ref;
pub use thread::{Comment, Issue, Root, Status, StatusEvent};

use crate::{Event, RelayLimits, event};
use std::fmt;

/// The owner's identifier of a repository: any non-empty text. Never used as a path.
///
/// NUL is refused, because no URL can carry it and PostgreSQL cannot store it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identifier(String);

impl Identifier {
    /// Validates an identifier.
    pub fn new(text: &str, limits: &RelayLimits) -> Result<Self, Invalid> {
        match text {
            "" => Err(Invalid::Missing("d")),
            _ if text.len() > limits.identifier_bytes => Err(Invalid::LongIdentifier(limits.identifier_bytes)),
            _ if text.contains('\0') => Err(Invalid::NulIdentifier),
            _ => Ok(Self(text.to_owned())),
        }
    }

    fn of(event: &Event, limits: &RelayLimits) -> Result<Self, Invalid> {
        Self::new(event::first_value(event, "d").unwrap_or_default(), limits)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reason why an event does not match its kind. Worded for its author; sent after `invalid: `.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Not the kind that the type is parsed from.
    #[error("the event has the wrong kind")]
    Kind,
    /// A required tag is missing or empty.
    #[error("the event needs a {0:?} tag with a value")]
    Missing(&'static str),
    /// A tag that may occur once occurs again.
    #[error("the event has more than one {0:?} tag; put all values into one tag")]
    Repeated(&'static str),
    #[error("the d tag is longer than {0} bytes, the limit")]
    LongIdentifier(usize),
    #[error("the d tag contains a NUL character")]
    NulIdentifier,
    /// The `maintainers` tag contains an invalid key.
    #[error("the maintainers tag must contain only public keys in lowercase hexadecimal")]
    Maintainer,
    /// A tag value is not an object id.
    #[error("the {0:?} tag is not an object id (40 or 64 lowercase hexadecimal digits)")]
    ObjectId(String),
    /// git would refuse this ref name.
    #[error("{0:?} is not a ref name: {1}")]
    RefName(String, abide_core::refs::InvalidRefName),
    /// One ref with two values.
    #[error("{0} is listed twice with different values")]
    Contradiction(String),
    /// `a` and `a/b` cannot both be refs.
    #[error("{0} and {1} cannot both be refs: one is a prefix of the other")]
    NameInTheWay(String, String),
    /// HEAD does not name a branch.
    #[error("HEAD must be \"ref: \" followed by a branch in refs/heads/")]
    Head,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_any_text_within_the_limit() {
        let limits = RelayLimits { identifier_bytes: 10, ..RelayLimits::default() };
        for text in ["..", "a/../b", "%2F", "🦀", "a b", "-x", ".git", "0123456789"] {
            assert_eq!(Identifier::new(text, &limits).unwrap().as_str(), text);
        }
        assert_eq!(Identifier::new("", &limits), Err(Invalid::Missing("d")));
        assert_eq!(Identifier::new("0123456789a", &limits), Err(Invalid::LongIdentifier(10)));
        assert_eq!(Identifier::new("a\0b", &limits), Err(Invalid::NulIdentifier));
    }
}
