//! An event as the rules see it.

use super::event::{Rule, rule};
use super::{Prefix, Refusal};
use crate::deletion::Deletion;
use crate::git::{Announcement, Proposal, RepoState};
use crate::{Event, Limits};

/// What an event is to us, read once. What only has to be linked to a repository is not read further: a comment of an
/// odd shape is still a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Decided by [`super::announcement::judge`].
    Announcement(Announcement),
    /// Decided by [`super::state::judge`].
    State(RepoState),
    /// Decided by [`super::event::proposal`].
    Proposal(Proposal),
    /// Decided by [`super::event::deletion`].
    Deletion(Deletion),
    /// Decided by [`super::event::profile`].
    Profile,
    /// Decided by [`super::event::related`].
    Related,
}

impl Parsed {
    /// Reads an event by its kind.
    pub fn of(event: &Event, limits: &Limits) -> Result<Self, Refusal> {
        Ok(match rule(event.kind.as_u16()) {
            Rule::Announcement => Self::Announcement(Announcement::parse(event, limits)?),
            Rule::State => Self::State(RepoState::parse(event, limits)?),
            Rule::Proposal => Self::Proposal(Proposal::parse(event)?),
            Rule::Deletion => {
                let deletion = Deletion::parse(event);
                Self::Deletion(deletion.ok_or_else(|| Refusal::new(Prefix::Invalid, "no deletion request"))?)
            }
            Rule::Profile => Self::Profile,
            Rule::Related => Self::Related,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{event as signed, sample, samples};

    #[test]
    fn what_a_real_client_sent_is_read_by_its_kind() {
        let limits = Limits::default();
        let parsed = |kind| Parsed::of(&sample(kind), &limits).unwrap();
        assert!(matches!(parsed(30_617), Parsed::Announcement(_)));
        assert!(matches!(parsed(30_618), Parsed::State(_)));
        assert!(matches!(parsed(1618), Parsed::Proposal(_)));
        assert!(matches!(parsed(1619), Parsed::Proposal(_)));
        assert_eq!((parsed(1621), parsed(1631)), (Parsed::Related, Parsed::Related));
        assert_eq!(samples().len(), 6, "none is left out here");
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_reason() {
        let refused = |kind: u16| Parsed::of(&signed(1, kind, 0, &[], ""), &Limits::default()).unwrap_err().to_string();
        assert_eq!(refused(30_617), "invalid: the event needs a \"d\" tag with a value");
        assert_eq!(refused(30_618), "invalid: the state names no branch and no tag");
        assert_eq!(refused(1618), "invalid: the event needs a \"c\" tag with a value");
        let parsed = |kind: u16| Parsed::of(&signed(1, kind, 0, &[], ""), &Limits::default()).unwrap();
        assert_eq!((parsed(0), parsed(1111)), (Parsed::Profile, Parsed::Related));
        assert!(matches!(parsed(5), Parsed::Deletion(deletion) if deletion.is_empty()));
    }
}
