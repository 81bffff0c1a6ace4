//! Which state a repository may move to.
//!
//! Archived and deleted are independent marks, and visibility is orthogonal to both: restoring an archived repository
//! leaves it archived. Who may do it is [`crate::policy`]'s question; this module answers whether it makes sense.

use crate::Timestamp;
use crate::repo::Visibility;
use std::time::Duration;

/// The marks that a transition reads and changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Who may read it.
    pub visibility: Visibility,
    /// Since when it is read-only.
    pub archived_at: Option<Timestamp>,
    /// Since when it is soft-deleted.
    pub deleted_at: Option<Timestamp>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make it read-only.
    Archive,
    /// Make it writable again.
    Unarchive,
    /// Change who may read it.
    SetVisibility(Visibility),
    /// Hide it and free its name.
    SoftDelete,
    /// Bring it back within the grace.
    Restore {
        /// How long after the soft delete it can be brought back.
        grace: Duration,
    },
}

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is so already, and asking again is harmless.
    Nothing,
    /// The new marks.
    To(State),
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Archiving twice.
    #[error("the repository is already archived")]
    AlreadyArchived,
    /// Unarchiving what is not archived.
    #[error("the repository is not archived")]
    NotArchived,
    /// Anything but restoring a soft-deleted repository; a second delete does not restart the clock.
    #[error("the repository is already deleted")]
    AlreadyDeleted,
    /// Restoring a live one.
    #[error("the repository is not deleted")]
    NotDeleted,
    /// Restoring too late.
    #[error("the time in which the repository could be restored has passed")]
    PastGrace,
}

/// Decides one transition.
pub fn transition(state: State, action: Action, now: Timestamp) -> Result<Change, Refusal> {
    match (state.deleted_at, action) {
        (Some(deleted_at), Action::Restore { grace }) if now < deleted_at.plus(grace) => {
            Ok(Change::To(State { deleted_at: None, ..state }))
        }
        (Some(_), Action::Restore { .. }) => Err(Refusal::PastGrace),
        (Some(_), _) => Err(Refusal::AlreadyDeleted),
        (None, Action::Restore { .. }) => Err(Refusal::NotDeleted),
        (None, Action::SoftDelete) => Ok(Change::To(State { deleted_at: Some(now), ..state })),
        (None, Action::Archive) if state.archived_at.is_some() => Err(Refusal::AlreadyArchived),
        (None, Action::Archive) => Ok(Change::To(State { archived_at: Some(now), ..state })),
        (None, Action::Unarchive) if state.archived_at.is_none() => Err(Refusal::NotArchived),
        (None, Action::Unarchive) => Ok(Change::To(State { archived_at: None, ..state })),
        (None, Action::SetVisibility(wanted)) if wanted == state.visibility => Ok(Change::Nothing),
        (None, Action::SetVisibility(visibility)) => Ok(Change::To(State { visibility, ..state })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000_000);
    const GRACE: Duration = Duration::from_secs(7 * 86_400);

    fn states() -> Vec<State> {
        let mut all = Vec::new();
        for &visibility in Visibility::ALL {
            for archived_at in [None, Some(NOW.minus(Duration::from_secs(9)))] {
                for deleted_at in [None, Some(NOW.minus(GRACE)), Some(NOW.minus(GRACE - Duration::from_micros(1)))] {
                    all.push(State { visibility, archived_at, deleted_at });
                }
            }
        }
        all
    }

    fn actions() -> Vec<Action> {
        let mut all = vec![Action::Archive, Action::Unarchive, Action::SoftDelete, Action::Restore { grace: GRACE }];
        all.extend(Visibility::ALL.iter().map(|&v| Action::SetVisibility(v)));
        all
    }

    #[test]
    fn every_transition_changes_exactly_its_own_mark() {
        for before in states() {
            for action in actions() {
                let Ok(Change::To(after)) = transition(before, action, NOW) else { continue };
                let expected = match action {
                    Action::Archive => State { archived_at: Some(NOW), ..before },
                    Action::Unarchive => State { archived_at: None, ..before },
                    Action::SetVisibility(visibility) => State { visibility, ..before },
                    Action::SoftDelete => State { deleted_at: Some(NOW), ..before },
                    Action::Restore { .. } => State { deleted_at: None, ..before },
                };
                assert_eq!(after, expected, "{before:?} {action:?}");
                assert_ne!(after, before, "a change changes something");
            }
        }
    }

    #[test]
    fn a_deleted_repository_can_only_be_restored_and_only_within_the_grace() {
        for state in states().into_iter().filter(|state| state.deleted_at.is_some()) {
            for action in actions() {
                let answer = transition(state, action, NOW);
                match action {
                    Action::Restore { .. } if state.deleted_at == Some(NOW.minus(GRACE)) => {
                        assert_eq!(answer, Err(Refusal::PastGrace));
                    }
                    Action::Restore { .. } => assert!(matches!(answer, Ok(Change::To(_)))),
                    _ => assert_eq!(answer, Err(Refusal::AlreadyDeleted)),
                }
            }
        }
    }

    #[test]
    fn asking_for_what_already_holds_is_refused_except_for_visibility() {
        for state in states().into_iter().filter(|state| state.deleted_at.is_none()) {
            let archive = transition(state, Action::Archive, NOW);
            let unarchive = transition(state, Action::Unarchive, NOW);
            if state.archived_at.is_some() {
                assert_eq!(archive, Err(Refusal::AlreadyArchived));
            } else {
                assert_eq!(unarchive, Err(Refusal::NotArchived));
            }
            assert_eq!(transition(state, Action::SetVisibility(state.visibility), NOW), Ok(Change::Nothing));
            assert_eq!(transition(state, Action::Restore { grace: GRACE }, NOW), Err(Refusal::NotDeleted));
        }
    }
}
