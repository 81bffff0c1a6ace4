//! The only module with rules of issues: texts, references and list filters.
//!
//! [`text`]: titles, bodies, labels, milestones. [`references`]: mentions and references in a text, and closing
//! keywords. [`filter`]: the filter box of a list; [`search`]: the same across repositories. Permissions are in
//! [`crate::policy`].

pub mod filter;
pub mod references;
pub mod search;
pub mod text;
pub mod timeline;

use crate::UserId;
use crate::repo::Role;
use crate::words::words;

words! {
    /// State of an issue.
    State {
        Open = "open",
        Closed = "closed",
    }
}

words! {
    /// Reason of an issue's state.
    Reason {
        /// Closed as completed.
        Completed = "completed",
        /// Closed as not planned.
        NotPlanned = "not_planned",
        /// Reopened.
        Reopened = "reopened",
    }
}

impl Reason {
    /// Whether it can be the reason of that state.
    pub fn fits(self, state: State) -> bool {
        match self {
            Self::Completed | Self::NotPlanned => state == State::Closed,
            Self::Reopened => state == State::Open,
        }
    }
}

/// New state and reason after a state change; `None` if nothing changes.
pub fn moved(from: State, was: Option<Reason>, to: State, why: Option<Reason>) -> Option<(State, Option<Reason>)> {
    match (from, to) {
        (State::Open, State::Open) => None,
        (State::Open, State::Closed) => Some((State::Closed, Some(why.unwrap_or(Reason::Completed)))),
        (State::Closed, State::Open) => Some((State::Open, Some(Reason::Reopened))),
        // A closed issue can be closed again for another reason.
        (State::Closed, State::Closed) => why.filter(|why| was != Some(*why)).map(|why| (State::Closed, Some(why))),
    }
}

/// Whether a user can be assigned: the owner or a collaborator who is not suspended.
pub fn assignable(user: UserId, owner: UserId, role: Option<Role>, suspended: bool) -> bool {
    !suspended && (user == owner || role.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_move_between_states_is_known() {
        use Reason::{Completed, NotPlanned, Reopened};
        let reasons = [None, Some(Completed), Some(NotPlanned), Some(Reopened)];
        for &from in State::ALL {
            for was in reasons.into_iter().filter(|was| was.is_none_or(|was| was.fits(from))) {
                for &to in State::ALL {
                    for why in reasons.into_iter().filter(|why| why.is_none_or(|why| why.fits(to))) {
                        let moved = moved(from, was, to, why);
                        let expected = match (from, to) {
                            (State::Open, State::Open) => None,
                            (State::Closed, State::Open) => Some((State::Open, Some(Reopened))),
                            (State::Closed, State::Closed) if why.is_none() || why == was => None,
                            (_, State::Closed) => Some((State::Closed, why.or(Some(Completed)))),
                        };
                        assert_eq!(moved, expected, "{from} ({was:?}) to {to} ({why:?})");
                        if let Some((state, reason)) = moved {
                            assert!(reason.is_none_or(|reason| reason.fits(state)));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn only_those_with_a_part_in_the_repository_are_made_responsible() {
        let (owner, other) = (UserId::new(1), UserId::new(2));
        assert!(assignable(owner, owner, None, false));
        assert!(!assignable(owner, owner, None, true));
        assert!(!assignable(other, owner, None, false));
        for &role in Role::ALL {
            assert!(assignable(other, owner, Some(role), false));
            assert!(!assignable(other, owner, Some(role), true));
        }
    }
}
