//! Decisions about the other events: PR events, threads, deletions and profiles.

use super::{Prefix, Refusal};
use crate::deletion::Deletion;
use crate::git::{PrEvent, PrKind};
use crate::kinds;

/// Rule that decides about a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// [`super::announcement::judge`].
    Announcement,
    /// [`super::state::judge`].
    State,
    /// [`PR event`]; a patch without a commit falls back to [`related`].
    PrEvent,
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
        kinds::PATCH | kinds::PULL_REQUEST | kinds::PULL_REQUEST_UPDATE => Rule::PrEvent,
        kinds::DELETION => Rule::Deletion,
        kinds::METADATA | kinds::RELAY_LIST | kinds::GRASP_LIST => Rule::Profile,
        _ => Rule::Related,
    }
}

/// Availability of the commit that a PR event names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    Absent,
    /// In a repository that the PR event names, at `refs/nostr/<id>` or otherwise reachable.
    Here,
    /// Pushed before the event and kept aside.
    Aside,
    /// Another commit was pushed before the event and is kept aside.
    OtherAside,
}

/// State of the repositories that a PR event is for. Of several repositories the one that is closest to taking
/// the commit counts ([`Ord`]): those that take no changes keep it from none of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Home {
    /// None is here.
    #[default]
    Missing,
    /// Some, and the accounts of all their owners are suspended.
    Suspended,
    /// Some, and all of those are archived, or their owners suspended.
    Archived,
    /// None that takes changes yet: the announcement of at least one waits for git data.
    Waiting,
    /// At least one is served and accepts changes.
    Open,
}

/// Decision about a PR event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrVerdict {
    /// Store and serve it.
    Serve,
    /// Take the objects kept aside, create the ref, store and serve the event: in one step.
    ServeFromAside,
    /// It waits for its commit.
    Wait {
        /// Drop the objects kept aside: the event decides which commit belongs to its ref, even if another was pushed
        /// first.
        drop_aside: bool,
    },
    /// It waits with the announcement of its repository.
    WaitForRepository,
    Refuse(Refusal),
}

/// Decides about a patch, a pull request or an update. A patch without a commit needs only a link to something here. A
/// commit needs a repository that accepts it.
pub fn pr_event(pr_event: &PrEvent, related: Relation, home: Home, commit: Commit) -> PrVerdict {
    let is_text = pr_event.commit.is_none() && pr_event.kind == PrKind::Patch;
    match related {
        Relation::None if home != Home::Waiting => return PrVerdict::Refuse(unrelated()),
        Relation::Tags | Relation::Tagged if is_text => return PrVerdict::Serve,
        Relation::None | Relation::Waiting if is_text => return PrVerdict::WaitForRepository,
        _ => {}
    }
    match home {
        Home::Open => {}
        Home::Waiting => return PrVerdict::WaitForRepository,
        Home::Missing => {
            let reason = "no repository here can store the commit; reference one with an \"a\" tag";
            return PrVerdict::Refuse(Refusal::new(Prefix::Restricted, reason));
        }
        Home::Suspended => {
            let reason = "the account of the repository's owner is suspended; ask the administrator of this site";
            return PrVerdict::Refuse(Refusal::new(Prefix::Blocked, reason));
        }
        Home::Archived => {
            let reason = "the repository is archived; new pull requests are disabled; ask its owner to unarchive it";
            return PrVerdict::Refuse(Refusal::new(Prefix::Restricted, reason));
        }
    }
    match commit {
        Commit::Here => PrVerdict::Serve,
        Commit::Aside => PrVerdict::ServeFromAside,
        Commit::Absent => PrVerdict::Wait { drop_aside: false },
        Commit::OtherAside => PrVerdict::Wait { drop_aside: true },
    }
}

/// Link between an event and accepted repositories or events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// No link.
    None,
    /// It tags an accepted repository, issue, patch or pull request.
    Tags,
    /// An accepted event tags it.
    Tagged,
    /// It tags a repository whose announcement is in purgatory, or an event that waits with one.
    Waiting,
}

fn unrelated() -> Refusal {
    let reason =
        "the event references no repository here; add an \"a\" tag of a repository, or reference one of its events";
    Refusal::new(Prefix::Restricted, reason)
}

/// Longest chain of links to a repository: an event that tags an issue is one step away, a reply to it two.
pub const MOST_STEPS: i64 = 10;

/// Most events of one author that are more than one step from a repository.
pub const FAR_PER_AUTHOR: i64 = 1_000;

/// Distance of an event linked to something at `steps`. Issues, patches and pull requests belong to the repository
/// itself.
pub fn steps_beyond(kind: u16, steps: i64, is_repo: bool) -> i64 {
    if is_repo && own_steps(kind) == 0 { 0 } else { steps.saturating_add(1) }
}

/// Default distance of a kind linked to a repository; events at this distance are stored without a note.
pub fn own_steps(kind: u16) -> i64 {
    let belongs = [kinds::ANNOUNCEMENT, kinds::ISSUE].contains(&kind) || rule(kind) == Rule::PrEvent;
    i64::from(!belongs)
}

/// Whether an event at this distance is accepted from an author with this many distant events.
pub fn distance(steps: i64, far_of_author: i64) -> Result<(), Refusal> {
    if steps > MOST_STEPS {
        let reason = format!(
            "the event is more than {MOST_STEPS} references away from a repository; reference the repository itself"
        );
        return Err(Refusal::new(Prefix::Restricted, reason));
    }
    if steps > 1 && far_of_author >= FAR_PER_AUTHOR {
        let reason = format!(
            "{FAR_PER_AUTHOR} events of this key reference repositories only through other events, the limit; reference the \
             repository, issue, patch or pull request itself"
        );
        return Err(Refusal::new(Prefix::RateLimited, reason));
    }
    Ok(())
}

/// Decision about an event that only needs a link to a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelatedVerdict {
    /// Store and serve it.
    Serve,
    /// It waits with the announcement that it belongs to.
    WaitForRepository,
}

/// Decides about issues, statuses, comments and every kind without its own rule.
pub fn related(relation: Relation) -> Result<RelatedVerdict, Refusal> {
    match relation {
        Relation::None => Err(unrelated()),
        Relation::Waiting => Ok(RelatedVerdict::WaitForRepository),
        Relation::Tags | Relation::Tagged => Ok(RelatedVerdict::Serve),
    }
}

/// Whether an author has events stored here, or an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    Known,
    Unknown,
}

/// Decides about profiles and relay lists.
pub fn profile(author: Author) -> Result<(), Refusal> {
    match author {
        Author::Known => Ok(()),
        Author::Unknown => {
            Err(Refusal::new(Prefix::Restricted, "the author has no repository and no contribution here"))
        }
    }
}

/// An event of the author that a deletion covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// An announcement in purgatory.
    WaitingAnnouncement,
    /// A state or PR event in purgatory.
    WaitingOther,
    /// A served announcement with its repository.
    ServedAnnouncement,
    /// A stored announcement without a repository here.
    AnnouncementBeside,
    StoredState,
    StoredOther,
}

/// Effect of a deletion on its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Removes the purgatory entry and its directory at once.
    RemoveEntryAndDirectory,
    /// Removes the purgatory entry at once.
    RemoveEntry,
    /// Soft-deletes the repository with the usual grace.
    SoftDelete,
    /// Removes the event; refs stay unchanged until the next state.
    RemoveEvent,
}

impl Target {
    /// Effect of a deletion on this target.
    pub fn effect(self) -> Effect {
        match self {
            Self::WaitingAnnouncement => Effect::RemoveEntryAndDirectory,
            Self::WaitingOther => Effect::RemoveEntry,
            Self::ServedAnnouncement => Effect::SoftDelete,
            Self::AnnouncementBeside | Self::StoredState | Self::StoredOther => Effect::RemoveEvent,
        }
    }
}

/// Decides about a deletion request. It is kept if it covers something here, or is linked to an accepted repository.
pub fn deletion(request: &Deletion, covered: usize, relation: Relation) -> Result<(), Refusal> {
    if request.is_empty() {
        let reason = "a deletion must reference events of its own author with \"e\" or \"a\" tags";
        return Err(Refusal::new(Prefix::Invalid, reason));
    }
    if covered > 0 || matches!(relation, Relation::Tags | Relation::Tagged) { Ok(()) } else { Err(unrelated()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Coordinate;
    use crate::testing::{event, key};

    fn parsed(kind: u16, c: bool) -> PrEvent {
        let (repo, commit, parent) = (Coordinate::repo(key(1), "x").to_string(), "c".repeat(40), "ab".repeat(32));
        let tags: &[&[&str]] = &[&["a", &repo], &["E", &parent], &["c", &commit]];
        PrEvent::parse(&event(2, kind, 0, if c { tags } else { &tags[..2] }, "")).unwrap()
    }

    #[test]
    fn pr_events_with_a_commit_wait_for_it() {
        for kind in [1617, 1618, 1619] {
            let judged = |commit| pr_event(&parsed(kind, true), Relation::Tags, Home::Open, commit);
            assert_eq!(judged(Commit::Absent), PrVerdict::Wait { drop_aside: false });
            assert_eq!(judged(Commit::Here), PrVerdict::Serve);
            assert_eq!(judged(Commit::Aside), PrVerdict::ServeFromAside);
            assert_eq!(judged(Commit::OtherAside), PrVerdict::Wait { drop_aside: true }, "the event wins");
        }
    }

    #[test]
    fn a_commit_needs_a_repository_that_takes_it() {
        for kind in [1617, 1618, 1619] {
            for commit in [Commit::Absent, Commit::Here, Commit::Aside, Commit::OtherAside] {
                let judged = |related, home| pr_event(&parsed(kind, true), related, home, commit);
                let refused = |related, home, why: &str| match judged(related, home) {
                    PrVerdict::Refuse(refusal) => refusal.to_string().contains(why),
                    _ => false,
                };
                assert!(refused(Relation::None, Home::Open, "no repository here"));
                for related in [Relation::Tags, Relation::Tagged] {
                    assert!(refused(related, Home::Missing, "with an \"a\" tag"));
                    assert!(refused(
                        related,
                        Home::Archived,
                        "the repository is archived; new pull requests are disabled"
                    ));
                    assert!(refused(related, Home::Suspended, "suspended"));
                }
            }
        }
    }

    #[test]
    fn a_patch_without_a_commit_is_served_at_once() {
        for home in [Home::Missing, Home::Suspended, Home::Archived, Home::Open] {
            let judged = |related| pr_event(&parsed(1617, false), related, home, Commit::Absent);
            assert_eq!(judged(Relation::Tagged), PrVerdict::Serve);
            assert!(matches!(judged(Relation::None), PrVerdict::Refuse(_)));
            assert_eq!(judged(Relation::Waiting), PrVerdict::WaitForRepository);
        }
    }

    #[test]
    fn a_pr_event_for_a_repository_that_waits_waits_with_it() {
        for (kind, c) in [(1617, true), (1617, false), (1618, true), (1619, true)] {
            for commit in [Commit::Absent, Commit::Aside, Commit::OtherAside] {
                for related in [Relation::None, Relation::Waiting] {
                    let judged = pr_event(&parsed(kind, c), related, Home::Waiting, commit);
                    assert_eq!(judged, PrVerdict::WaitForRepository, "{kind}");
                }
            }
        }
    }

    #[test]
    fn each_kind_has_its_rule() {
        let rules = [30_617, 30_618, 1617, 1618, 1619, 5, 0, 10_002, 10_317, 1621, 1630, 1633, 1111, 1, 1985].map(rule);
        use Rule as R;
        let expected = [
            R::Announcement,
            R::State,
            R::PrEvent,
            R::PrEvent,
            R::PrEvent,
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
    fn chains_of_events_are_bounded_in_length_and_per_author() {
        assert_eq!((distance(1, FAR_PER_AUTHOR), distance(MOST_STEPS, FAR_PER_AUTHOR - 1)), (Ok(()), Ok(())));
        assert_eq!(distance(MOST_STEPS + 1, 0).unwrap_err().prefix, Prefix::Restricted);
        assert_eq!(distance(2, FAR_PER_AUTHOR).unwrap_err().prefix, Prefix::RateLimited);
    }

    #[test]
    fn what_is_unrelated_is_refused_with_what_to_do() {
        assert!(related(Relation::None).unwrap_err().to_string().starts_with("restricted: "));
        for relation in [Relation::Tags, Relation::Tagged] {
            assert_eq!(related(relation), Ok(RelatedVerdict::Serve));
        }
        assert_eq!(related(Relation::Waiting), Ok(RelatedVerdict::WaitForRepository));
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
        assert!(deletion(&own, 0, Relation::Waiting).is_err(), "it deletes nothing that waits");
        assert_eq!(deletion(&foreign, 0, Relation::Tags).unwrap_err().prefix, Prefix::Invalid);
    }

    #[test]
    fn only_a_served_repository_has_a_grace() {
        assert_eq!(Target::WaitingAnnouncement.effect(), Effect::RemoveEntryAndDirectory);
        assert_eq!(Target::ServedAnnouncement.effect(), Effect::SoftDelete);
        assert_eq!(Target::StoredState.effect(), Effect::RemoveEvent);
        assert_eq!(Target::WaitingOther.effect(), Effect::RemoveEntry);
    }

    #[test]
    fn the_repository_that_is_closest_to_taking_a_commit_counts() {
        let order = [Home::Missing, Home::Suspended, Home::Archived, Home::Waiting, Home::Open];
        for (n, one) in order.iter().enumerate() {
            for (m, other) in order.iter().enumerate() {
                assert_eq!(one.max(other), &order[n.max(m)]);
            }
        }
        assert_eq!(Home::default(), Home::Missing);
    }
}
