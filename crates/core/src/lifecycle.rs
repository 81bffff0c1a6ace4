//! State transitions of a repository.
//!
//! Archived and deleted are independent marks, and visibility is independent of both: restoring an archived repository
//! leaves it archived. [`crate::policy`] decides permissions; this module decides whether the transition is valid.

use crate::Timestamp;
use crate::repo::{Governance, Visibility};
use crate::words::words;
use std::time::Duration;

/// Marks that a transition reads and changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub visibility: Visibility,
    /// Since when it is archived (read-only).
    pub archived_at: Option<Timestamp>,
    /// Since when it is soft-deleted.
    pub deleted_at: Option<Timestamp>,
    /// Source of authority. Read here, never changed.
    pub governance: Governance,
}

words! {
    /// Phase of a repository's life, for lists.
    Phase {
        Active = "active",
        Archived = "archived",
        Deleted = "deleted",
    }
}

impl State {
    /// Whether the marks are already as `action` would leave them.
    pub fn holds(&self, action: Action) -> bool {
        match action {
            Action::Archive => self.archived_at.is_some(),
            Action::Unarchive => self.archived_at.is_none(),
            Action::SetVisibility(wanted) => self.visibility == wanted,
            Action::SoftDelete => self.deleted_at.is_some(),
            Action::Restore { .. } => self.deleted_at.is_none(),
            Action::Transfer | Action::Rename | Action::Purge { .. } => false,
        }
    }

    pub fn phase(&self) -> Phase {
        match (self.deleted_at, self.archived_at) {
            (Some(_), _) => Phase::Deleted,
            (None, Some(_)) => Phase::Archived,
            (None, None) => Phase::Active,
        }
    }
}

/// Requested transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Archive,
    Unarchive,
    SetVisibility(Visibility),
    /// Hide it and free its name.
    SoftDelete,
    /// Undo the soft delete within the grace.
    Restore {
        /// Time after the soft delete in which a restore is possible.
        grace: Duration,
    },
    /// Offer or hand it over to another account.
    Transfer,
    Rename,
    /// Remove it permanently after the grace.
    Purge {
        /// Time after the soft delete in which a restore is possible.
        grace: Duration,
    },
}

/// Result of a valid transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The state is already as requested; a repeated request is harmless.
    Nothing,
    /// The marks stay; the caller writes the rest of the action.
    Go,
    /// The new marks.
    To(State),
}

/// Reason for refusing a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the repository is already archived")]
    AlreadyArchived,
    #[error("the repository is not archived")]
    NotArchived,
    /// Any action but restore or purge on a soft-deleted repository. A second delete does not restart the grace.
    #[error("the repository is already deleted")]
    AlreadyDeleted,
    /// Restoring or purging a live repository.
    #[error("the repository is not deleted")]
    NotDeleted,
    /// Restoring after the grace.
    #[error("the restore period of this repository has ended")]
    PastGrace,
    /// Purging within the grace.
    #[error("the repository is still in its restore period, so it is not deleted permanently yet")]
    InGrace,
    /// A signed announcement decides its location and makes it public.
    #[error(
        "this repository belongs to a nostr key: it cannot be transferred or made private, and its signed state sets the default branch"
    )]
    NostrGoverned,
}

/// Decides one transition.
pub fn transition(state: State, action: Action, now: Timestamp) -> Result<Change, Refusal> {
    match (state.deleted_at, action) {
        (Some(deleted_at), Action::Restore { grace }) if now < deleted_at.plus(grace) => {
            Ok(Change::To(State { deleted_at: None, ..state }))
        }
        (Some(_), Action::Restore { .. }) => Err(Refusal::PastGrace),
        (Some(deleted_at), Action::Purge { grace }) if now < deleted_at.plus(grace) => Err(Refusal::InGrace),
        (Some(_), Action::Purge { .. }) => Ok(Change::Go),
        (Some(_), _) => Err(Refusal::AlreadyDeleted),
        (None, Action::Restore { .. } | Action::Purge { .. }) => Err(Refusal::NotDeleted),
        (None, Action::Transfer | Action::SetVisibility(Visibility::Private))
            if state.governance == Governance::Nostr =>
        {
            Err(Refusal::NostrGoverned)
        }
        (None, Action::Transfer | Action::Rename) => Ok(Change::Go),
        (None, Action::SoftDelete) => Ok(Change::To(State { deleted_at: Some(now), ..state })),
        (None, Action::Archive) if state.archived_at.is_some() => Err(Refusal::AlreadyArchived),
        (None, Action::Archive) => Ok(Change::To(State { archived_at: Some(now), ..state })),
        (None, Action::Unarchive) if state.archived_at.is_none() => Err(Refusal::NotArchived),
        (None, Action::Unarchive) => Ok(Change::To(State { archived_at: None, ..state })),
        (None, Action::SetVisibility(wanted)) if wanted == state.visibility => Ok(Change::Nothing),
        (None, Action::SetVisibility(visibility)) => Ok(Change::To(State { visibility, ..state })),
    }
}

/// Time to wait before the next rename; `None` if it is allowed now. `renames` are the times of past renames, latest
/// first. Renames before the window do not count, and the first `limit` entries suffice.
pub fn rename_wait(renames: &[Timestamp], limit: usize, window: Duration, now: Timestamp) -> Option<Duration> {
    let decisive = match limit {
        0 => return Some(window),
        limit => renames.get(limit - 1)?,
    };
    let free = decisive.plus(window);
    (now < free).then(|| free.since(now))
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
                    for &governance in Governance::ALL {
                        all.push(State { visibility, archived_at, deleted_at, governance });
                    }
                }
            }
        }
        all
    }

    fn actions() -> Vec<Action> {
        let mut all = vec![
            Action::Archive,
            Action::Unarchive,
            Action::SoftDelete,
            Action::Restore { grace: GRACE },
            Action::Transfer,
            Action::Rename,
            Action::Purge { grace: GRACE },
        ];
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
                    Action::Transfer | Action::Rename | Action::Purge { .. } => panic!("{action:?} changes no mark"),
                };
                assert_eq!(after, expected, "{before:?} {action:?}");
                assert_ne!(after, before, "a change changes something");
            }
        }
    }

    #[test]
    fn a_transition_leaves_the_marks_as_its_action_holds_them() {
        for before in states() {
            for action in actions() {
                let answer = transition(before, action, NOW);
                match answer {
                    Ok(Change::To(after)) => {
                        assert!(!before.holds(action) && after.holds(action), "{before:?} {action:?}")
                    }
                    Ok(Change::Nothing) => assert!(before.holds(action), "{before:?} {action:?}"),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn a_deleted_repository_is_deleted_whether_or_not_it_is_archived() {
        for state in states() {
            let expected = match (state.deleted_at.is_some(), state.archived_at.is_some()) {
                (true, _) => "deleted",
                (false, true) => "archived",
                (false, false) => "active",
            };
            assert_eq!(state.phase().as_str(), expected);
        }
    }

    #[test]
    fn a_deleted_repository_is_restored_within_the_grace_and_removed_after_it_and_nothing_else() {
        for state in states().into_iter().filter(|state| state.deleted_at.is_some()) {
            for action in actions() {
                let answer = transition(state, action, NOW);
                match action {
                    Action::Restore { .. } if state.deleted_at == Some(NOW.minus(GRACE)) => {
                        assert_eq!(answer, Err(Refusal::PastGrace));
                    }
                    Action::Restore { .. } => assert!(matches!(answer, Ok(Change::To(_)))),
                    Action::Purge { .. } if state.deleted_at == Some(NOW.minus(GRACE)) => {
                        assert_eq!(answer, Ok(Change::Go));
                    }
                    Action::Purge { .. } => assert_eq!(answer, Err(Refusal::InGrace)),
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
            let same = transition(state, Action::SetVisibility(state.visibility), NOW);
            match (state.governance, state.visibility) {
                (Governance::Nostr, Visibility::Private) => assert_eq!(same, Err(Refusal::NostrGoverned)),
                _ => assert_eq!(same, Ok(Change::Nothing)),
            }
            assert_eq!(transition(state, Action::Restore { grace: GRACE }, NOW), Err(Refusal::NotDeleted));
            assert_eq!(transition(state, Action::Purge { grace: GRACE }, NOW), Err(Refusal::NotDeleted));
        }
    }

    #[test]
    fn a_repository_of_a_nostr_key_is_neither_handed_over_nor_hidden_but_may_be_renamed() {
        for state in states().into_iter().filter(|state| state.deleted_at.is_none()) {
            let ruled = state.governance == Governance::Nostr;
            let expected = if ruled { Err(Refusal::NostrGoverned) } else { Ok(Change::Go) };
            assert_eq!(transition(state, Action::Transfer, NOW), expected);
            assert_eq!(transition(state, Action::Rename, NOW), Ok(Change::Go), "archived or not");
            let hidden = transition(state, Action::SetVisibility(Visibility::Private), NOW);
            assert_eq!(hidden == Err(Refusal::NostrGoverned), ruled);
        }
    }

    #[test]
    fn the_sixth_rename_waits_until_the_first_of_five_is_old() {
        let window = Duration::from_secs(30);
        let ago = |seconds| NOW.minus(Duration::from_secs(seconds));
        let wait = |renames: &[Timestamp]| rename_wait(renames, 5, window, NOW);
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[ago(1), ago(2), ago(3), ago(4)]), None);
        assert_eq!(wait(&[ago(1), ago(2), ago(3), ago(4), ago(20)]), Some(Duration::from_secs(10)));
        assert_eq!(wait(&[ago(1), ago(2), ago(3), ago(4), ago(30)]), None, "it has just left the window");
        assert_eq!(rename_wait(&[], 0, window, NOW), Some(window), "no rename at all");
    }
}
