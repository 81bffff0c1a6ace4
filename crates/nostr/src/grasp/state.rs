//! Decisions about arriving states.

use super::{Prefix, Refusal};
use crate::PublicKey;
use crate::event::Rank;

/// Refusal of a state whose repositories are all archived.
const ARCHIVED: &str = "the repository is archived; new states are disabled; ask its owner to unarchive it";

/// A local repository whose maintainer set includes the state's author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruled {
    pub owner: PublicKey,
    /// Whether its announcement is in purgatory.
    pub waiting: bool,
    /// Whether it has every object that the state names.
    pub complete: bool,
    /// Whether a stored state of one of its maintainers is newer.
    pub superseded: bool,
    pub archived: bool,
    /// Whether its owner's account is suspended.
    pub suspended: bool,
}

/// Input of the decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Rank of the state.
    pub rank: Rank,
    /// Whether it names any ref. A state without refs says that its author no longer tracks the repository, so no ref
    /// moves.
    pub tracks: bool,
    /// The author's newest **stored** state of this identifier. States in purgatory coexist and do not count.
    pub newest_of_author: Option<Rank>,
    /// Time in seconds of the author's last deletion of states of this identifier by coordinate.
    pub deleted_at: Option<u64>,
    /// Whether any repository of this identifier is announced here, served or in purgatory.
    pub announced: bool,
    /// Repositories that the author maintains, served or in purgatory.
    pub ruled: Vec<Ruled>,
}

/// Decision about a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Store and serve it at once, and align the refs of these owners' repositories.
    Serve {
        /// Owners of the repositories to align.
        align: Vec<PublicKey>,
    },
    /// It waits for git data. The expiry of these owners' waiting announcements is extended.
    Wait {
        /// Owners whose announcements are in purgatory.
        extend: Vec<PublicKey>,
    },
    Refuse(Refusal),
}

/// Decides about a state. Runs again for every waiting state of an identifier, newest first, when git data arrives: a
/// waiting state may be complete by then, or superseded by its author's newer one.
pub fn judge(facts: &Facts) -> Verdict {
    let refuse = |prefix, reason: &'static str| Verdict::Refuse(Refusal::new(prefix, reason));
    if !facts.announced {
        return refuse(Prefix::Restricted, "no repository with this identifier is announced here; announce it first");
    }
    if facts.ruled.is_empty() {
        return refuse(Prefix::Restricted, "the author is not a maintainer of a repository with this identifier");
    }
    if facts.deleted_at.is_some_and(|at| facts.rank.created_at <= at) {
        return refuse(Prefix::Invalid, "the author deleted this and all earlier states");
    }
    if facts.newest_of_author.is_some_and(|newest| facts.rank <= newest) {
        return refuse(Prefix::Invalid, "a newer state of this author is stored");
    }
    if facts.ruled.iter().all(|repo| repo.suspended) {
        let reason = "the account of the repository's owner is suspended; ask the administrator of this site";
        return refuse(Prefix::Blocked, reason);
    }
    if facts.ruled.iter().all(|repo| repo.archived || repo.suspended) {
        return refuse(Prefix::Restricted, ARCHIVED);
    }
    let mut ruled = facts.ruled.iter().filter(|repo| !repo.archived && !repo.suspended);
    if !facts.tracks {
        // There is no git data to wait for, but nothing of a repository in purgatory is served.
        return match ruled.any(|repo| !repo.waiting) {
            true => Verdict::Serve { align: Vec::new() },
            false => Verdict::Wait { extend: Vec::new() },
        };
    }
    if ruled.clone().any(|repo| repo.complete) {
        // The alignment copies missing objects to the other repositories.
        return Verdict::Serve { align: ruled.filter(|repo| !repo.superseded).map(|repo| repo.owner).collect() };
    }
    Verdict::Wait { extend: ruled.by_ref().filter(|repo| repo.waiting).map(|repo| repo.owner).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventId;

    fn rank(created_at: u64, id: u8) -> Rank {
        Rank { created_at, id: EventId::from_byte_array([id; 32]) }
    }

    fn repo(owner: u8) -> Ruled {
        let owner = PublicKey::from_byte_array([owner; 32]);
        Ruled { owner, waiting: false, complete: false, superseded: false, archived: false, suspended: false }
    }

    fn facts(ruled: Vec<Ruled>) -> Facts {
        Facts { rank: rank(100, 5), tracks: true, newest_of_author: None, deleted_at: None, announced: true, ruled }
    }

    fn refused(facts: &Facts) -> Option<String> {
        match judge(facts) {
            Verdict::Refuse(refusal) => Some(refusal.to_string()),
            _ => None,
        }
    }

    #[test]
    fn a_state_whose_objects_are_here_is_served_at_once() {
        let complete = Ruled { complete: true, ..repo(1) };
        assert_eq!(
            judge(&facts(vec![complete, repo(2)])),
            Verdict::Serve { align: vec![complete.owner, repo(2).owner] }
        );
    }

    #[test]
    fn a_superseded_repository_is_left_as_it_is() {
        let superseded = Ruled { complete: true, superseded: true, ..repo(1) };
        assert_eq!(judge(&facts(vec![superseded, repo(2)])), Verdict::Serve { align: vec![repo(2).owner] });
        assert_eq!(judge(&facts(vec![superseded])), Verdict::Serve { align: vec![] });
    }

    #[test]
    fn without_git_data_it_waits_and_raises_the_time_of_waiting_announcements() {
        let waiting = Ruled { waiting: true, ..repo(1) };
        assert_eq!(judge(&facts(vec![waiting, repo(2)])), Verdict::Wait { extend: vec![waiting.owner] });
    }

    #[test]
    fn a_state_without_refs_is_kept_and_moves_nothing() {
        let ends = |ruled| judge(&Facts { tracks: false, ..facts(ruled) });
        let complete = Ruled { complete: true, ..repo(1) };
        assert_eq!(ends(vec![complete]), Verdict::Serve { align: vec![] });
        assert_eq!(ends(vec![Ruled { waiting: true, ..repo(1) }]), Verdict::Wait { extend: vec![] });
        assert!(matches!(ends(vec![]), Verdict::Refuse(_)));
        assert!(matches!(ends(vec![Ruled { archived: true, ..complete }]), Verdict::Refuse(_)));
    }

    #[test]
    fn archived_repositories_take_no_state() {
        let archived = Ruled { archived: true, complete: true, waiting: true, ..repo(1) };
        assert_eq!(refused(&facts(vec![archived])).unwrap(), format!("restricted: {ARCHIVED}"));
        assert!(ARCHIVED.contains("new states are disabled") && ARCHIVED.contains("unarchive"));
        assert_eq!(judge(&facts(vec![archived, repo(2)])), Verdict::Wait { extend: vec![] });
    }

    #[test]
    fn repositories_of_suspended_owners_take_no_state() {
        let suspended = Ruled { suspended: true, complete: true, waiting: true, ..repo(1) };
        assert!(refused(&facts(vec![suspended])).unwrap().starts_with("blocked: "));
        assert_eq!(judge(&facts(vec![suspended, repo(2)])), Verdict::Wait { extend: vec![] });
        let archived = Ruled { archived: true, ..repo(2) };
        assert!(refused(&facts(vec![suspended, archived])).unwrap().starts_with("restricted: "));
    }

    #[test]
    fn strangers_and_older_states_are_refused() {
        assert!(refused(&facts(vec![])).unwrap().contains("not a maintainer"));
        assert!(refused(&Facts { announced: false, ..facts(vec![]) }).unwrap().contains("announce it first"));
        let after = |newest| refused(&Facts { newest_of_author: Some(newest), ..facts(vec![repo(1)]) });
        assert_eq!(after(rank(99, 0)), None);
        assert_eq!(after(rank(100, 6)), None, "the lower id of one second is the newer");
        assert!(after(rank(100, 4)).is_some());
        assert!(after(rank(101, 9)).is_some());
        assert!(after(rank(100, 5)).is_some(), "nor is it newer than itself");
        let deleted = |at| refused(&Facts { deleted_at: Some(at), ..facts(vec![repo(1)]) });
        assert!(deleted(100).is_some() && deleted(99).is_none());
    }
}
