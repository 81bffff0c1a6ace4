//! What becomes of the other events: proposals, conversations, deletions, profiles.

use super::{Prefix, Refusal};
use crate::deletion::Deletion;
use crate::git::{Proposal, ProposalKind};
use crate::kinds;

/// Which rule decides about a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// [`super::announcement::judge`].
    Announcement,
    /// [`super::state::judge`].
    State,
    /// [`proposal`]; a patch without a commit falls back to [`related`].
    Proposal,
    /// [`deletion`].
    Deletion,
    /// [`profile`].
    Profile,
    /// [`related`].
    Related,
}

/// The rule for a kind.
pub fn rule(kind: u16) -> Rule {
    match kind {
        kinds::ANNOUNCEMENT => Rule::Announcement,
        kinds::STATE => Rule::State,
        kinds::PATCH | kinds::PULL_REQUEST | kinds::PULL_REQUEST_UPDATE => Rule::Proposal,
        kinds::DELETION => Rule::Deletion,
        kinds::METADATA | kinds::RELAY_LIST | kinds::GRASP_LIST => Rule::Profile,
        _ => Rule::Related,
    }
}

/// What is here of the commit that a proposal names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Nothing.
    Absent,
    /// It is in a repository that the proposal names, under `refs/nostr/<id>` or otherwise reachable.
    Here,
    /// It was pushed before the event and is kept aside.
    Aside,
    /// Another commit was pushed before the event and is kept aside.
    OtherAside,
}

/// What is served of the repositories that a proposal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// None of them.
    Missing,
    /// Some, and all of those are archived.
    Archived,
    /// At least one that takes changes.
    Open,
}

/// What to do with a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposalVerdict {
    /// Store and serve it.
    Serve,
    /// Bring in the objects that were kept aside, make the ref, store and serve it: in one step.
    ServeFromAside,
    /// It waits for its commit.
    Wait {
        /// Drop what was kept aside: the event says what belongs there, whoever pushed first.
        drop_aside: bool,
    },
    /// It is not taken.
    Refuse(Refusal),
}

/// Decides about a patch, a pull request or an update. A patch without a commit only has to be linked to something here;
/// a commit needs a repository that can take it.
pub fn proposal(proposal: &Proposal, related: Relation, home: Home, commit: Commit) -> ProposalVerdict {
    if let Relation::None = related {
        return ProposalVerdict::Refuse(unrelated());
    }
    if proposal.commit.is_none() && proposal.kind == ProposalKind::Patch {
        return ProposalVerdict::Serve;
    }
    match home {
        Home::Open => {}
        Home::Missing => {
            let reason = "no repository here can take the commit; name one that is served here with an \"a\" tag";
            return ProposalVerdict::Refuse(Refusal::new(Prefix::Restricted, reason));
        }
        Home::Archived => {
            let reason = "the repository is archived and takes no changes; ask its owner to unarchive it";
            return ProposalVerdict::Refuse(Refusal::new(Prefix::Restricted, reason));
        }
    }
    match commit {
        Commit::Here => ProposalVerdict::Serve,
        Commit::Aside => ProposalVerdict::ServeFromAside,
        Commit::Absent => ProposalVerdict::Wait { drop_aside: false },
        Commit::OtherAside => ProposalVerdict::Wait { drop_aside: true },
    }
}

/// How an event is linked to what is accepted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Not at all.
    None,
    /// It tags an accepted repository, issue, patch or pull request.
    Tags,
    /// One of those tags it.
    Tagged,
}

fn unrelated() -> Refusal {
    let reason =
        "the event has to do with no repository here; tag one with an \"a\" tag, or an issue, patch or pull request";
    Refusal::new(Prefix::Restricted, reason)
}

/// Decides about issues, statuses, comments and every kind without a rule of its own.
pub fn related(relation: Relation) -> Result<(), Refusal> {
    match relation {
        Relation::None => Err(unrelated()),
        Relation::Tags | Relation::Tagged => Ok(()),
    }
}

/// Whether an author has published anything that is kept here, or has an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// Known.
    Known,
    /// Not known.
    Unknown,
}

/// Decides about profiles and lists of relays.
pub fn profile(author: Author) -> Result<(), Refusal> {
    match author {
        Author::Known => Ok(()),
        Author::Unknown => {
            Err(Refusal::new(Prefix::Restricted, "the author has no repository and no contribution here"))
        }
    }
}

/// Something of the author's that a deletion covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A waiting announcement.
    WaitingAnnouncement,
    /// A waiting state or proposal.
    WaitingOther,
    /// A served announcement with its repository.
    ServedAnnouncement,
    /// A stored announcement without a repository here.
    AnnouncementBeside,
    /// A stored state.
    StoredState,
    /// Any other stored event.
    StoredOther,
}

/// What a deletion does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The entry goes at once, and so does its directory.
    RemoveEntryAndDirectory,
    /// The entry goes at once.
    RemoveEntry,
    /// The repository is deleted with the usual grace.
    SoftDelete,
    /// The event goes; refs stay as they are until the next state.
    RemoveEvent,
}

impl Target {
    /// What a deletion does to this.
    pub fn effect(self) -> Effect {
        match self {
            Self::WaitingAnnouncement => Effect::RemoveEntryAndDirectory,
            Self::WaitingOther => Effect::RemoveEntry,
            Self::ServedAnnouncement => Effect::SoftDelete,
            Self::AnnouncementBeside | Self::StoredState | Self::StoredOther => Effect::RemoveEvent,
        }
    }
}

/// Decides about a deletion request: it is kept if it covers anything here, or has to do with an accepted repository.
pub fn deletion(request: &Deletion, covered: usize, relation: Relation) -> Result<(), Refusal> {
    if request.is_empty() {
        let reason = "a deletion names events of its own author by \"e\" or \"a\" tags";
        return Err(Refusal::new(Prefix::Invalid, reason));
    }
    if covered > 0 { Ok(()) } else { related(relation) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Coordinate;
    use crate::testing::{event, key};

    fn parsed(kind: u16, c: bool) -> Proposal {
        let (repo, commit, parent) = (Coordinate::repo(key(1), "x").to_string(), "c".repeat(40), "ab".repeat(32));
        let tags: &[&[&str]] = &[&["a", &repo], &["E", &parent], &["c", &commit]];
        Proposal::parse(&event(2, kind, 0, if c { tags } else { &tags[..2] }, "")).unwrap()
    }

    #[test]
    fn proposals_with_a_commit_wait_for_it() {
        for kind in [1617, 1618, 1619] {
            let judged = |commit| proposal(&parsed(kind, true), Relation::Tags, Home::Open, commit);
            assert_eq!(judged(Commit::Absent), ProposalVerdict::Wait { drop_aside: false });
            assert_eq!(judged(Commit::Here), ProposalVerdict::Serve);
            assert_eq!(judged(Commit::Aside), ProposalVerdict::ServeFromAside);
            assert_eq!(judged(Commit::OtherAside), ProposalVerdict::Wait { drop_aside: true }, "the event wins");
        }
    }

    #[test]
    fn a_commit_needs_a_repository_that_takes_it() {
        for kind in [1617, 1618, 1619] {
            for commit in [Commit::Absent, Commit::Here, Commit::Aside, Commit::OtherAside] {
                let judged = |related, home| proposal(&parsed(kind, true), related, home, commit);
                let refused = |related, home, why: &str| match judged(related, home) {
                    ProposalVerdict::Refuse(refusal) => refusal.to_string().contains(why),
                    _ => false,
                };
                assert!(refused(Relation::None, Home::Open, "no repository here"));
                for related in [Relation::Tags, Relation::Tagged] {
                    assert!(refused(related, Home::Missing, "with an \"a\" tag"));
                    assert!(refused(related, Home::Archived, "archived"));
                }
            }
        }
    }

    #[test]
    fn a_patch_without_a_commit_is_served_at_once() {
        for home in [Home::Missing, Home::Archived, Home::Open] {
            let judged = |related| proposal(&parsed(1617, false), related, home, Commit::Absent);
            assert_eq!(judged(Relation::Tagged), ProposalVerdict::Serve);
            assert!(matches!(judged(Relation::None), ProposalVerdict::Refuse(_)));
        }
    }

    #[test]
    fn each_kind_has_its_rule() {
        let rules = [30_617, 30_618, 1617, 1618, 1619, 5, 0, 10_002, 10_317, 1621, 1630, 1633, 1111, 1, 1985].map(rule);
        use Rule as R;
        let expected = [
            R::Announcement,
            R::State,
            R::Proposal,
            R::Proposal,
            R::Proposal,
            R::Deletion,
            R::Profile,
            R::Profile,
            R::Profile,
            R::Related,
            R::Related,
            R::Related,
            R::Related,
            R::Related,
            R::Related,
        ];
        assert_eq!(rules, expected);
    }

    #[test]
    fn what_is_unrelated_is_refused_with_what_to_do() {
        assert!(related(Relation::None).unwrap_err().to_string().starts_with("restricted: "));
        assert_eq!((related(Relation::Tags), related(Relation::Tagged)), (Ok(()), Ok(())));
        assert!(profile(Author::Unknown).is_err() && profile(Author::Known).is_ok());
    }

    #[test]
    fn a_deletion_is_kept_for_what_it_deletes() {
        let own = Deletion::parse(&event(1, 5, 0, &[&["e", &"ab".repeat(32)]], "")).unwrap();
        let foreign =
            Deletion::parse(&event(1, 5, 0, &[&["a", &Coordinate::repo(key(2), "x").to_string()]], "")).unwrap();
        assert_eq!(deletion(&own, 1, Relation::None), Ok(()));
        assert_eq!(deletion(&own, 0, Relation::None).unwrap_err().prefix, Prefix::Restricted);
        assert_eq!(deletion(&own, 0, Relation::Tags), Ok(()));
        assert_eq!(deletion(&foreign, 0, Relation::Tags).unwrap_err().prefix, Prefix::Invalid);
    }

    #[test]
    fn only_a_served_repository_has_a_grace() {
        assert_eq!(Target::WaitingAnnouncement.effect(), Effect::RemoveEntryAndDirectory);
        assert_eq!(Target::ServedAnnouncement.effect(), Effect::SoftDelete);
        assert_eq!(Target::StoredState.effect(), Effect::RemoveEvent);
        assert_eq!(Target::WaitingOther.effect(), Effect::RemoveEntry);
    }
}
