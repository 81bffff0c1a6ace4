//! An event parsed for the rules.

use super::event::{Rule, rule};
use super::{Prefix, Refusal};
use crate::deletion::Deletion;
use crate::event::tags;
use crate::git::{Announcement, PrEvent, RepoState};
use crate::{Event, RelayLimits};

/// An event by the rule that decides about it. Kinds that only need a link to a repository are not parsed further: a
/// malformed comment is still a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Decided by [`super::announcement::judge`].
    Announcement(Announcement),
    /// Decided by [`super::state::judge`].
    State(RepoState),
    /// Decided by [`super::event::PR event`].
    PrEvent(PrEvent),
    /// Decided by [`super::event::deletion`].
    Deletion(Deletion),
    /// Decided by [`super::event::profile`].
    Profile,
    /// Decided by [`super::event::related`].
    Related,
}

impl Parsed {
    /// Parses an event by its kind.
    pub fn of(event: &Event, limits: &RelayLimits) -> Result<Self, Refusal> {
        Ok(match rule(event.kind.as_u16()) {
            Rule::Announcement => Self::Announcement(Announcement::parse(event, limits)?),
            Rule::State => Self::State(RepoState::parse(event, limits)?),
            Rule::PrEvent => Self::PrEvent(pr_event(event, limits)?),
            Rule::Deletion => Self::Deletion(deletion(event, limits)?),
            Rule::Profile => Self::Profile,
            Rule::Related => Self::Related,
        })
    }
}

/// A PR event's commit goes to each of its target repositories, so their number is limited.
fn pr_event(event: &Event, limits: &RelayLimits) -> Result<PrEvent, Refusal> {
    let pr_event = PrEvent::parse(event)?;
    if pr_event.repos.len() > limits.pr_event_repos {
        let most = limits.pr_event_repos;
        return Err(Refusal::new(
            Prefix::Invalid,
            format!("a patch or pull request may reference at most {most} repositories"),
        ));
    }
    Ok(pr_event)
}

/// The targets of a deletion are looked up while other writers wait, so their number is limited before any lookup.
fn deletion(event: &Event, limits: &RelayLimits) -> Result<Deletion, Refusal> {
    let named = tags(event).filter(|(name, _)| matches!(*name, "e" | "a")).count();
    if named > limits.deletion_targets {
        let most = limits.deletion_targets;
        return Err(Refusal::new(
            Prefix::Invalid,
            format!("a deletion may reference at most {most} events; send several deletions"),
        ));
    }
    Deletion::parse(event).ok_or_else(|| Refusal::new(Prefix::Invalid, "not a deletion request"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Coordinate;
    use crate::testing::{event as signed, key, sample, samples};

    #[test]
    fn what_a_real_client_sent_is_read_by_its_kind() {
        let limits = RelayLimits::default();
        let parsed = |kind| Parsed::of(&sample(kind), &limits).unwrap();
        assert!(matches!(parsed(30_617), Parsed::Announcement(_)));
        assert!(matches!(parsed(30_618), Parsed::State(_)));
        assert!(matches!(parsed(1618), Parsed::PrEvent(_)));
        assert!(matches!(parsed(1619), Parsed::PrEvent(_)));
        assert_eq!((parsed(1621), parsed(1631)), (Parsed::Related, Parsed::Related));
        assert_eq!(samples().len(), 6, "none is left out here");
    }

    #[test]
    fn what_one_event_can_set_in_motion_is_bounded() {
        let limits = RelayLimits { deletion_targets: 2, pr_event_repos: 1, ..RelayLimits::default() };
        let of = |kind: u16, tags: &[&[&str]]| Parsed::of(&signed(1, kind, 0, tags, ""), &limits);
        let (id, coordinate) = ("ab".repeat(32), |owner: u8| Coordinate::repo(key(owner), "x").to_string());
        let (one, two) = (coordinate(1), coordinate(2));
        assert!(of(5, &[&["e", &id], &["a", &one], &["k", "1"]]).is_ok());
        let refused = of(5, &[&["e", &id], &["e", "no id"], &["a", &two]]).unwrap_err();
        assert_eq!(refused.to_string(), "invalid: a deletion may reference at most 2 events; send several deletions");
        assert!(of(1617, &[&["a", &one]]).is_ok());
        let refused = of(1617, &[&["a", &one], &["a", &two]]).unwrap_err();
        assert_eq!(refused.to_string(), "invalid: a patch or pull request may reference at most 1 repositories");
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_reason() {
        let refused =
            |kind: u16| Parsed::of(&signed(1, kind, 0, &[], ""), &RelayLimits::default()).unwrap_err().to_string();
        assert_eq!(refused(30_617), "invalid: the event needs a \"d\" tag with a value");
        assert_eq!(refused(30_618), "invalid: the event needs a \"d\" tag with a value");
        assert_eq!(refused(1618), "invalid: the event needs a \"c\" tag with a value");
        let parsed = |kind: u16| Parsed::of(&signed(1, kind, 0, &[], ""), &RelayLimits::default()).unwrap();
        assert_eq!((parsed(0), parsed(1111)), (Parsed::Profile, Parsed::Related));
        assert!(matches!(parsed(5), Parsed::Deletion(deletion) if deletion.is_empty()));
    }
}
