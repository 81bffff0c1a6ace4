//! Decisions about announcements.

use super::signer::Signer;
use super::{Prefix, Refusal};
use crate::event::Rank;
pub use abide_core::account::Announce;
use abide_core::account::SignUpMode;

/// Entry of a key in the operator's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// On the allow list.
    Allowed,
    /// On the deny list.
    Denied,
    /// On neither list.
    Unlisted,
}

/// Permission of an author to announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anything.
    Open,
    /// Nothing: the author is on the deny list, or the author's account is suspended.
    Blocked,
    /// No new repositories: only keys linked to an account may announce, and this one is not. Carries the sign-up mode.
    Unlinked(SignUpMode),
    /// No new repositories: the key's account has no username.
    Nameless,
    /// No new repositories: only listed keys may announce.
    Unlisted,
}

/// Decides what an author may announce.
pub fn access(announce: Announce, signup: SignUpMode, listing: Listing, signer: Signer) -> Access {
    match (listing, announce, signer) {
        (Listing::Denied, _, _) | (_, _, Signer::Suspended) => Access::Blocked,
        (Listing::Allowed, _, _) | (_, Announce::Open, _) | (_, Announce::Linked, Signer::Account) => Access::Open,
        (_, Announce::Linked, Signer::Stranger) => Access::Unlinked(signup),
        (_, Announce::Linked, Signer::Nameless) => Access::Nameless,
        (_, Announce::Off, _) => Access::Unlisted,
    }
}

impl Access {
    /// Refusal of a new repository, with the next step; `None` if it is allowed.
    fn refusal(self) -> Option<Refusal> {
        let restricted = |reason: &'static str| Some(Refusal::new(Prefix::Restricted, reason));
        match self {
            Self::Open => None,
            Self::Blocked => Some(Refusal::new(Prefix::Blocked, "this key may not announce repositories here")),
            Self::Unlinked(SignUpMode::Open) => restricted(
                "this server accepts new repositories only from keys linked to an account; sign in on its site with \
                 this key, choose a user name, then announce again",
            ),
            Self::Unlinked(SignUpMode::Invite) => restricted(
                "this server accepts new repositories only from keys linked to an account; ask its operator for an \
                 invitation, sign up on its site, link this key in your settings, then announce again",
            ),
            Self::Unlinked(SignUpMode::Closed) => restricted(
                "this server accepts new repositories only from keys linked to an account; ask its operator for an \
                 account, link this key in your settings, then announce again",
            ),
            Self::Nameless => restricted(
                "this server accepts new repositories only from accounts with a user name; sign in on its site with this \
                 key, choose a user name, then announce again",
            ),
            Self::Unlisted => restricted(
                "this server accepts new repositories only from keys that its operator has allowed; ask the operator",
            ),
        }
    }
}

/// The author's own repository with this identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// No announcement.
    Nothing,
    /// An announcement without a repository here, kept beside another maintainer's.
    Beside(Rank),
    /// In purgatory, waiting for git data.
    Waiting(Rank),
    Served(Rank),
}

impl Known {
    fn rank(self) -> Option<Rank> {
        match self {
            Self::Nothing => None,
            Self::Beside(rank) | Self::Waiting(rank) | Self::Served(rank) => Some(rank),
        }
    }
}

/// Another author's announcement of the same identifier whose maintainer set includes this author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maintains {
    /// There is none.
    Nothing,
    /// There is one, in purgatory.
    Waiting,
    /// There is one, served.
    Served,
}

/// Last deletion of the author's repository: by a kind 5 event, on the web, or by an announcement that left this server
/// out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Unix time in seconds; announcements up to then are void.
    pub at: u64,
    /// Whether the repository can still be restored.
    pub restorable: bool,
}

/// Input of the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Rank of the new announcement.
    pub rank: Rank,
    /// Whether its `clone` and `relays` tags both name this server.
    pub lists_us: bool,
    pub access: Access,
    pub known: Known,
    /// Whether the author maintains another owner's repository.
    pub maintains: Maintains,
    pub deleted: Option<Deleted>,
}

/// Removal because a newer announcement leaves this server out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawn {
    /// The purgatory entry and its directory, at once.
    Entry,
    /// The served repository: soft-deleted with the usual grace.
    Repo,
}

/// Decision about an announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A new purgatory entry waits for git data.
    Wait,
    /// Replaces the purgatory entry and restarts its expiry.
    ReplaceWaiting,
    /// Replaces the served announcement at once.
    Replace,
    /// Restores the deleted repository.
    Restore,
    /// Kept without a repository here, and served while the other maintainer's repository is.
    Beside {
        /// Whether that repository is served now.
        served: bool,
        /// The entry or repository that is removed.
        withdrawn: Option<Withdrawn>,
    },
    /// Refused, and the existing entry or repository is removed.
    Withdraw(Withdrawn, Refusal),
    Refuse(Refusal),
}

/// Decides about an announcement.
pub fn judge(facts: &Facts) -> Verdict {
    let refuse = |prefix, reason: &'static str| Verdict::Refuse(Refusal::new(prefix, reason));
    if let (Access::Blocked, Some(refusal)) = (facts.access, facts.access.refusal()) {
        return Verdict::Refuse(refusal);
    }
    if facts.deleted.is_some_and(|deleted| facts.rank.created_at <= deleted.at) {
        return refuse(Prefix::Invalid, "this repository was deleted after this announcement; publish a new one");
    }
    if facts.known.rank().is_some_and(|known| facts.rank <= known) {
        return refuse(Prefix::Invalid, "a newer announcement of this repository is stored");
    }
    if facts.lists_us {
        return match facts.known {
            Known::Served(_) => Verdict::Replace,
            Known::Waiting(_) => Verdict::ReplaceWaiting,
            Known::Beside(_) | Known::Nothing if facts.deleted.is_some_and(|deleted| deleted.restorable) => {
                Verdict::Restore
            }
            // Announce permission applies only to repositories that are new here; existing ones continue.
            Known::Beside(_) | Known::Nothing => facts.access.refusal().map_or(Verdict::Wait, Verdict::Refuse),
        };
    }
    let withdrawn = match facts.known {
        Known::Served(_) => Some(Withdrawn::Repo),
        Known::Waiting(_) => Some(Withdrawn::Entry),
        Known::Beside(_) | Known::Nothing => None,
    };
    let refusal =
        Refusal::new(Prefix::Restricted, "the announcement must list this server in its clone and relays tags");
    match (facts.maintains, withdrawn) {
        (Maintains::Nothing, None) => Verdict::Refuse(refusal),
        (Maintains::Nothing, Some(withdrawn)) => {
            let reason = "this announcement no longer lists this server; the repository is removed here";
            Verdict::Withdraw(withdrawn, Refusal::new(Prefix::Restricted, reason))
        }
        (maintains, withdrawn) => Verdict::Beside { served: maintains == Maintains::Served, withdrawn },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventId;

    fn rank(created_at: u64, id: u8) -> Rank {
        Rank { created_at, id: EventId::from_byte_array([id; 32]) }
    }

    const NEW: u64 = 100;

    fn facts() -> Facts {
        Facts {
            rank: rank(NEW, 5),
            lists_us: true,
            access: Access::Open,
            known: Known::Nothing,
            maintains: Maintains::Nothing,
            deleted: None,
        }
    }

    #[test]
    fn a_first_announcement_waits_and_a_served_one_is_replaced_at_once() {
        assert_eq!(judge(&facts()), Verdict::Wait);
        assert_eq!(judge(&Facts { known: Known::Served(rank(99, 0)), ..facts() }), Verdict::Replace);
        assert_eq!(judge(&Facts { known: Known::Waiting(rank(99, 0)), ..facts() }), Verdict::ReplaceWaiting);
        assert_eq!(judge(&Facts { known: Known::Beside(rank(99, 0)), ..facts() }), Verdict::Wait);
    }

    #[test]
    fn an_older_one_never_replaces_a_newer_one_and_the_lowest_id_wins_a_second() {
        for known in [Known::Beside, Known::Waiting, Known::Served] {
            let judged = |other| judge(&Facts { known: known(other), ..facts() });
            assert!(matches!(judged(rank(101, 9)), Verdict::Refuse(_)));
            assert!(matches!(judged(rank(NEW, 4)), Verdict::Refuse(_)));
            assert!(!matches!(judged(rank(NEW, 6)), Verdict::Refuse(_)));
            // An older announcement that leaves us out removes nothing either.
            assert!(matches!(
                judge(&Facts { known: known(rank(101, 9)), lists_us: false, ..facts() }),
                Verdict::Refuse(_)
            ));
        }
    }

    #[test]
    fn only_one_newer_than_the_deletion_brings_a_repository_back() {
        let deleted = |at, restorable| judge(&Facts { deleted: Some(Deleted { at, restorable }), ..facts() });
        assert!(matches!(deleted(NEW, true), Verdict::Refuse(_)));
        assert_eq!(deleted(NEW - 1, true), Verdict::Restore);
        assert_eq!(deleted(NEW - 1, false), Verdict::Wait, "after the grace it begins anew");
    }

    #[test]
    fn leaving_us_out_withdraws_what_was_here() {
        let left = |known, maintains| judge(&Facts { lists_us: false, known, maintains, ..facts() });
        assert!(matches!(left(Known::Nothing, Maintains::Nothing), Verdict::Refuse(_)));
        assert!(matches!(left(Known::Waiting(rank(1, 1)), Maintains::Nothing), Verdict::Withdraw(Withdrawn::Entry, _)));
        assert!(matches!(left(Known::Served(rank(1, 1)), Maintains::Nothing), Verdict::Withdraw(Withdrawn::Repo, _)));
        let beside = |served, withdrawn| Verdict::Beside { served, withdrawn };
        assert_eq!(left(Known::Nothing, Maintains::Served), beside(true, None));
        assert_eq!(left(Known::Served(rank(1, 1)), Maintains::Waiting), beside(false, Some(Withdrawn::Repo)));
    }

    #[test]
    fn only_open_servers_take_new_repositories_of_strangers() {
        let signers = [Signer::Stranger, Signer::Nameless, Signer::Account, Signer::Suspended];
        for announce in [Announce::Open, Announce::Linked, Announce::Off] {
            for signup in [SignUpMode::Open, SignUpMode::Invite, SignUpMode::Closed] {
                for signer in signers {
                    let judged = |listing| access(announce, signup, listing, signer);
                    assert_eq!(judged(Listing::Denied), Access::Blocked);
                    let suspended = signer == Signer::Suspended;
                    assert_eq!(judged(Listing::Allowed) == Access::Open, !suspended);
                    let may = match announce {
                        Announce::Open => !suspended,
                        Announce::Linked => signer == Signer::Account,
                        Announce::Off => false,
                    };
                    let found = judged(Listing::Unlisted);
                    assert_eq!(found == Access::Open, may, "{announce:?} {signer:?}");
                    assert_eq!(found.refusal().is_none(), may);
                }
            }
        }
    }

    #[test]
    fn a_refusal_says_how_to_get_in() {
        let said = |access: Access| access.refusal().unwrap().to_string();
        assert!(said(Access::Unlinked(SignUpMode::Open)).contains("sign in on its site with this key"));
        assert!(said(Access::Unlinked(SignUpMode::Invite)).contains("ask its operator for an invitation"));
        assert!(said(Access::Unlinked(SignUpMode::Closed)).contains("ask its operator for an account"));
        assert!(said(Access::Nameless).contains("choose a user name"));
        assert!(said(Access::Unlisted).starts_with("restricted: "));
    }

    /// Every combination of facts, against the rules.
    #[test]
    fn every_combination_keeps_the_rules() {
        let others = [rank(99, 5), rank(NEW, 4), rank(NEW, 6), rank(101, 5)];
        let mut knowns = vec![Known::Nothing];
        for other in others {
            knowns.extend([Known::Beside(other), Known::Waiting(other), Known::Served(other)]);
        }
        let mut deletions = vec![None];
        for at in [99, 100, 101] {
            deletions.extend([true, false].map(|restorable| Some(Deleted { at, restorable })));
        }
        let mut seen = 0;
        for lists_us in [false, true] {
            for access in [Access::Open, Access::Blocked, Access::Nameless] {
                for maintains in [Maintains::Nothing, Maintains::Waiting, Maintains::Served] {
                    for &known in &knowns {
                        for &deleted in &deletions {
                            let facts = Facts { lists_us, access, maintains, known, deleted, ..facts() };
                            let verdict = judge(&facts);
                            let taken = !matches!(verdict, Verdict::Refuse(_) | Verdict::Withdraw(..));
                            let newest = known.rank().is_none_or(|known| known < facts.rank);
                            let alive = deleted.is_none_or(|deleted| deleted.at < NEW);
                            let wanted = lists_us || maintains != Maintains::Nothing;
                            let restorable = deleted.is_some_and(|deleted| deleted.restorable);
                            let new = lists_us && !matches!(known, Known::Waiting(_) | Known::Served(_)) && !restorable;
                            let may = access == Access::Open || (access == Access::Nameless && !new);
                            assert_eq!(taken, may && newest && alive && wanted, "{facts:?}");
                            let gets_repo =
                                !matches!(verdict, Verdict::Refuse(_) | Verdict::Withdraw(..) | Verdict::Beside { .. });
                            assert!(!gets_repo || lists_us, "{facts:?}");
                            let goes =
                                matches!(verdict, Verdict::Withdraw(..) | Verdict::Beside { withdrawn: Some(_), .. });
                            let had = matches!(known, Known::Waiting(_) | Known::Served(_));
                            assert_eq!(
                                goes,
                                access != Access::Blocked && newest && alive && !lists_us && had,
                                "{facts:?}"
                            );
                            assert!(verdict != Verdict::Replace || matches!(known, Known::Served(_)), "{facts:?}");
                            seen += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(seen, 2 * 3 * 3 * 13 * 7);
    }
}
