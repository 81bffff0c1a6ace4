//! Who is told of what happened, and why: the one rule that the inbox and the mails follow.
//!
//! [`topic`] says what an event is about and whom it can concern; [`told`] decides about one person. Whether someone
//! may see an event is the policy's to say and comes in as [`Sight`].

use crate::repo::Role;
use crate::words::words;
use crate::{Timestamp, WatchLevel};

words! {
    /// Why someone is told. Where several reasons hold, the one that stands first counts. The words are GitHub's where
    /// it has one: what it calls `subscribed` is watching the repository.
    Reason {
        /// They are asked to review.
        ReviewRequested = "review_requested",
        /// Someone wrote their name.
        Mention = "mention",
        /// They are responsible for it.
        Assign = "assign",
        /// Something happened to a repository that they own, administer, give or are offered.
        Lifecycle = "lifecycle",
        /// They began the thread.
        Author = "author",
        /// They said something in it.
        Comment = "comment",
        /// They asked to hear of it.
        Manual = "manual",
        /// They watch the repository.
        Watching = "subscribed",
    }
}

impl Reason {
    /// Whether they take part, rather than only watch.
    pub fn takes_part(self) -> bool {
        self != Self::Watching
    }

    /// Whether it is mailed as a notification, which everyone can turn off. What happens to one's own repositories is
    /// mailed by itself, always.
    pub fn is_mailed(self) -> bool {
        self != Self::Lifecycle
    }

    /// Of an earlier reason that has not been read and another one, what stands in the inbox.
    pub fn over(self, unread: Option<Self>) -> Self {
        unread.map_or(self, |earlier| earlier.min(self))
    }
}

words! {
    /// What a thread is about.
    Subject {
        /// An issue.
        Issue = "issue",
        /// An issue or a proposal that came by nostr.
        NostrThread = "nostr_thread",
        /// The repository itself: its name, its owner, who may read it.
        Repo = "repo",
    }
}

words! {
    /// Where something stands in the inbox of someone who was told of it.
    State {
        /// They have not seen it.
        Unread = "unread",
        /// They have.
        Read = "read",
        /// They have put it away.
        Done = "done",
    }
}

/// Whom an event can concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Those it names, those who hear of the thread, and those who watch the repository.
    Everyone,
    /// Those whom it concerns, and those who watch the repository.
    ConcernedAndWatchers,
    /// Those whom it concerns: owner and admins, or the two sides of an offer.
    Concerned,
    /// Those it names.
    Named,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Which thread it belongs to.
    pub subject: Subject,
    /// Whom it can concern.
    pub audience: Audience,
    /// Why those whom it names are told.
    pub naming: Reason,
}

/// What an event of a kind is about; `None` if nobody is told of it, such as pushes and stars. `role` is what a
/// collaborator may from then on: making one an admin in two steps is told like making them one at once.
pub fn topic(kind: &str, role: Option<Role>) -> Option<Topic> {
    use Audience::{Concerned, ConcernedAndWatchers, Everyone, Named};
    let issue = |audience, naming| Some(Topic { subject: Subject::Issue, audience, naming });
    let repo = |audience| Some(Topic { subject: Subject::Repo, audience, naming: Reason::Lifecycle });
    match kind {
        "issue_created"
        | "issue_comment_created"
        | "issue_closed"
        | "issue_reopened"
        | "pr_opened"
        | "pr_comment_created"
        | "pr_synchronized"
        | "pr_closed"
        | "pr_merged"
        | "pr_reopened" => issue(Everyone, Reason::Mention),
        "issue_edited" | "issue_comment_edited" => issue(Named, Reason::Mention),
        "issue_assigned" => issue(Named, Reason::Assign),
        "review_requested" => issue(Named, Reason::ReviewRequested),
        "repo_renamed"
        | "repo_archived"
        | "repo_unarchived"
        | "repo_visibility_changed"
        | "repo_transfer_accepted"
        | "repo_restored" => repo(ConcernedAndWatchers),
        "repo_transfer_requested"
        | "repo_transfer_declined"
        | "repo_transfer_canceled"
        | "repo_transfer_expired"
        | "repo_soft_deleted"
        | "repo_hard_deleted"
        | "repo_redirect_released"
        | "webhook_suspended"
        | "webhook_resumed"
        | "collaborator_added"
        | "collaborator_removed" => repo(Concerned),
        "collaborator_changed" if role == Some(Role::Admin) => repo(Concerned),
        _ => None,
    }
}

/// Whether someone is mailed about what they did to a repository themselves: only about what cannot be undone or hands
/// something away, so that whoever takes over a session does not do it unnoticed. `role` is what a collaborator may from
/// then on.
pub fn mailed_to_actor(kind: &str, role: Option<Role>) -> bool {
    match kind {
        "repo_transfer_requested"
        | "repo_transfer_accepted"
        | "repo_soft_deleted"
        | "repo_hard_deleted"
        | "repo_redirect_released"
        | "collaborator_removed" => true,
        "collaborator_added" | "collaborator_changed" => role == Some(Role::Admin),
        _ => false,
    }
}

words! {
    /// What someone may see of an event.
    Sight {
        /// Nothing: they may not read the repository.
        Nothing = "nothing",
        /// The repository, but not this event, which happened while it was private.
        Repo = "repo",
        /// The event.
        Event = "event",
    }
}

/// What someone said about a thread, or what followed from what they did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// Nothing.
    Unsaid,
    /// They hear of it.
    Subscribed(Reason),
    /// They do not want to hear of it.
    Muted,
}

/// What the decision needs to know of someone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Person {
    /// They made it happen.
    pub actor: bool,
    /// Their account is suspended.
    pub suspended: bool,
    /// What they may see now.
    pub sight: Sight,
    /// How much they want to be told about the repository.
    pub level: WatchLevel,
    /// What holds between them and the thread.
    pub hearing: Hearing,
    /// The event names them.
    pub named: bool,
    /// It happened to what is theirs.
    pub concerned: bool,
}

/// Decides whether someone is told of an event, and why.
///
/// Whom a text names directly, and who is asked to review, hears of it although they ignore the repository or muted the
/// thread: someone speaks to them.
pub fn told(topic: Topic, person: &Person) -> Option<Reason> {
    if person.actor || person.suspended {
        return None;
    }
    let concerned = topic.subject == Subject::Repo && person.concerned;
    let enough = if concerned { Sight::Repo } else { Sight::Event };
    if person.sight < enough {
        return None;
    }
    let named = person.named.then_some(topic.naming);
    if let Some(reason @ (Reason::Mention | Reason::ReviewRequested)) = named {
        return Some(reason);
    }
    if person.level == WatchLevel::Ignore || person.hearing == Hearing::Muted {
        return None;
    }
    let hears = match (topic.audience, person.hearing) {
        (Audience::Everyone, Hearing::Subscribed(why)) => Some(why),
        _ => None,
    };
    let open = matches!(topic.audience, Audience::Everyone | Audience::ConcernedAndWatchers);
    let watches = (open && person.level == WatchLevel::All).then_some(Reason::Watching);
    [named, concerned.then_some(Reason::Lifecycle), hears, watches].into_iter().flatten().min()
}

/// Whether a mail about something that someone was told still goes out: they may see it, and have neither muted the
/// thread nor ignored the repository since. What they had said before was weighed when they were told.
pub fn still_mailed(told: Timestamp, sight: Sight, muted: Option<Timestamp>, ignored: Option<Timestamp>) -> bool {
    let since = |said: Option<Timestamp>| said.is_some_and(|at| at > told);
    sight == Sight::Event && !since(muted) && !since(ignored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WatchLevel::{All, Ignore};

    const KINDS: &[&str] = &[
        "issue_created",
        "issue_comment_created",
        "issue_closed",
        "issue_reopened",
        "pr_opened",
        "pr_comment_created",
        "pr_synchronized",
        "pr_closed",
        "pr_merged",
        "pr_reopened",
        "issue_edited",
        "issue_comment_edited",
        "issue_assigned",
        "review_requested",
        "repo_renamed",
        "repo_archived",
        "repo_unarchived",
        "repo_visibility_changed",
        "repo_transfer_accepted",
        "repo_restored",
        "repo_transfer_requested",
        "repo_transfer_declined",
        "repo_transfer_canceled",
        "repo_transfer_expired",
        "repo_soft_deleted",
        "repo_hard_deleted",
        "repo_redirect_released",
        "webhook_suspended",
        "webhook_resumed",
        "collaborator_added",
        "collaborator_removed",
    ];

    /// Everyone there can be.
    fn people() -> Vec<Person> {
        let mut all = Vec::new();
        let hearings = [Hearing::Unsaid, Hearing::Muted].into_iter();
        let hearings: Vec<_> = hearings.chain(Reason::ALL.iter().map(|&why| Hearing::Subscribed(why))).collect();
        for &sight in Sight::ALL {
            for &level in WatchLevel::ALL {
                for &hearing in &hearings {
                    for bits in 0..16_u8 {
                        let bit = |n: u8| bits & (1 << n) != 0;
                        let (actor, suspended, named, concerned) = (bit(0), bit(1), bit(2), bit(3));
                        all.push(Person { actor, suspended, sight, level, hearing, named, concerned });
                    }
                }
            }
        }
        all
    }

    /// Every event and everyone, against the sentences of the specification, one by one.
    #[test]
    fn people_are_mailed_about_their_own_doing_only_where_it_cannot_be_undone_or_hands_something_away() {
        let mailed = [
            "repo_transfer_requested",
            "repo_transfer_accepted",
            "repo_soft_deleted",
            "repo_hard_deleted",
            "repo_redirect_released",
            "collaborator_removed",
        ];
        let not = [
            "repo_renamed",
            "repo_archived",
            "repo_unarchived",
            "repo_visibility_changed",
            "repo_restored",
            "repo_transfer_declined",
            "repo_transfer_canceled",
            "webhook_suspended",
        ];
        let roles = || std::iter::once(None).chain(Role::ALL.iter().copied().map(Some));
        for role in roles() {
            assert!(mailed.iter().all(|kind| mailed_to_actor(kind, role)));
            assert!(not.iter().all(|kind| !mailed_to_actor(kind, role)));
            for kind in ["collaborator_added", "collaborator_changed"] {
                assert_eq!(mailed_to_actor(kind, role), role == Some(Role::Admin));
            }
        }
    }

    #[test]
    fn raising_a_collaborator_to_admin_is_told_like_adding_one() {
        for role in std::iter::once(None).chain(Role::ALL.iter().copied().map(Some)) {
            let added = topic("collaborator_added", role);
            assert!(added.is_some_and(|topic| topic.audience == Audience::Concerned));
            let raised = topic("collaborator_changed", role);
            assert_eq!(raised, added.filter(|_| role == Some(Role::Admin)), "{role:?}");
            assert_eq!(topic("collaborator_removed", role), added, "and so is removing one");
        }
    }

    #[test]
    fn who_is_told_and_why() {
        for kind in KINDS {
            let topic = topic(kind, None).expect("a topic");
            for person in people() {
                let reason = told(topic, &person);
                let say = format!("{kind} {person:?} -> {reason:?}");
                let Person { named, concerned, level, hearing, sight, .. } = person;
                let concerned = concerned && topic.subject == Subject::Repo;
                let spoken_to = named && matches!(topic.naming, Reason::Mention | Reason::ReviewRequested);
                let sees = sight == Sight::Event || (sight == Sight::Repo && concerned);

                // Those who are left out, whatever else holds.
                if person.actor || person.suspended || !sees {
                    assert_eq!(reason, None, "{say}");
                    continue;
                }
                if spoken_to {
                    assert_eq!(reason, Some(topic.naming), "{say}");
                    continue;
                }
                if level == Ignore || hearing == Hearing::Muted {
                    assert_eq!(reason, None, "{say}");
                    continue;
                }
                // Those who are told, by the strongest of their reasons.
                let mut reasons = Vec::new();
                if named {
                    reasons.push(topic.naming);
                }
                if concerned {
                    reasons.push(Reason::Lifecycle);
                }
                if let (Audience::Everyone, Hearing::Subscribed(why)) = (topic.audience, hearing) {
                    reasons.push(why);
                }
                if level == All && !matches!(topic.audience, Audience::Concerned | Audience::Named) {
                    reasons.push(Reason::Watching);
                }
                assert_eq!(reason, reasons.iter().copied().min(), "{say}");
            }
        }
    }

    #[test]
    fn nobody_is_told_of_pushes_stars_and_what_is_not_known() {
        for kind in ["push", "star", "unstar", "follow", "repo_created", "issue_labeled", "issue_unassigned", "", "x"] {
            assert_eq!(topic(kind, None), None, "{kind}");
        }
    }

    #[test]
    fn offers_are_told_to_their_two_sides_alone() {
        for kind in KINDS.iter().filter(|kind| kind.starts_with("repo_transfer_")) {
            let alone = *kind != "repo_transfer_accepted";
            assert_eq!(topic(kind, None).expect("a topic").audience == Audience::Concerned, alone, "{kind}");
        }
    }

    #[test]
    fn a_stronger_reason_stays_until_it_is_read() {
        assert_eq!(Reason::Watching.over(Some(Reason::Mention)), Reason::Mention);
        assert_eq!(Reason::Mention.over(Some(Reason::Watching)), Reason::Mention);
        assert_eq!(Reason::Watching.over(None), Reason::Watching);
        for &one in Reason::ALL {
            for &other in Reason::ALL {
                assert_eq!(one.over(Some(other)), other.over(Some(one)));
            }
        }
    }

    #[test]
    fn a_mail_stays_unsent_to_whom_it_is_hidden_from_and_to_who_said_no_since() {
        let at = Timestamp::from_micros;
        for &sight in Sight::ALL {
            for muted in [None, Some(at(9)), Some(at(10)), Some(at(11))] {
                for ignored in [None, Some(at(9)), Some(at(10)), Some(at(11))] {
                    let no = sight != Sight::Event || [muted, ignored].contains(&Some(at(11)));
                    assert_eq!(still_mailed(at(10), sight, muted, ignored), !no, "{sight} {muted:?} {ignored:?}");
                }
            }
        }
    }
}
