//! Events that feeds show, and the periods and weights of trending repositories.

use crate::CommentId;
use crate::event::{
    Archived, Commented, Follow, IssueOpened, IssueState, Kind, NameChange, NoDetails, NostrAddition, Origin, Payload,
    Push, RepoCreated, RepoForked, Transfer, VisibilityChanged,
};
use crate::words::words;
use std::time::Duration;

/// Defines [`FeedEvent`], the events that feeds show, from the kinds that they do not.
macro_rules! feed_events {
    (shown: $($shown:ident($details:ty)),+; hidden: $($hidden:ident),+ $(,)?) => {
        /// An event that feeds show. Readers of feeds match it without a wildcard.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum FeedEvent { $($shown($details)),+ }

        impl FeedEvent {
            /// `None` for events that no feed shows.
            pub fn of(payload: Payload) -> Option<Self> {
                match payload {
                    $(Payload::$shown(details) => Some(Self::$shown(details)),)+
                    $(Payload::$hidden(_))|+ => None,
                }
            }
        }

        /// Whether events of a kind are in feeds: everyone who may read the repository may see these. Other events
        /// concern only some of them (offers, roles), or are noise.
        pub fn is_in_feeds(kind: Kind) -> bool {
            match kind {
                $(Kind::$shown)|+ => true,
                $(Kind::$hidden)|+ => false,
            }
        }
    };
}

feed_events! {
    shown:
        RepoCreated(RepoCreated), RepoForked(RepoForked), Push(Push), Star(NoDetails), Follow(Follow),
        RepoRenamed(NameChange), RepoTransferAccepted(Transfer), RepoArchived(Archived), RepoUnarchived(Archived),
        RepoVisibilityChanged(VisibilityChanged), RepoRestored(NameChange), IssueCreated(Origin<IssueOpened>),
        IssueClosed(Origin<IssueState>), IssueReopened(Origin<IssueState>), IssueCommentCreated(Origin<Commented>),
        PrOpened(NostrAddition), PrCommentCreated(NostrAddition), PrSynchronized(NostrAddition),
        PrClosed(NostrAddition), PrMerged(NostrAddition), PrReopened(NostrAddition);
    hidden:
        RepoEdited, RepoTopicsChanged, RepoTransferRequested, RepoTransferDeclined, RepoTransferCanceled,
        RepoTransferExpired, RepoSoftDeleted, RepoHardDeleted, RepoRedirectReleased, AnnouncementPromoted,
        AnnouncementReplaced, Unstar, CollaboratorAdded, CollaboratorChanged, CollaboratorRemoved, IssueEdited,
        IssueAssigned, IssueUnassigned, IssueLabeled, IssueUnlabeled, IssueMilestoned, IssueDemilestoned,
        IssueCommentEdited, IssueCommentDeleted, ReviewRequested, LabelCreated, LabelEdited, LabelDeleted,
        MilestoneCreated, MilestoneEdited, MilestoneOpened, MilestoneClosed, MilestoneDeleted, WebhookCreated,
        WebhookEdited, WebhookDeleted, WebhookSuspended, WebhookResumed, UserCreated, UserRenamed, UserDeleted,
        KeyLinked, KeyUnlinked,
}

/// A comment that an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentRef {
    Local(CommentId),
    /// A comment that came by nostr, by its row number.
    Nostr(i64),
}

impl FeedEvent {
    /// The comment that it reports.
    pub fn comment(&self) -> Option<CommentRef> {
        match self {
            Self::IssueCommentCreated(Origin::Local(comment)) => Some(CommentRef::Local(comment.comment_id)),
            Self::IssueCommentCreated(Origin::Nostr(addition)) | Self::PrCommentCreated(addition) => {
                Some(CommentRef::Nostr(addition.said))
            }
            Self::RepoCreated(_)
            | Self::RepoForked(_)
            | Self::Push(_)
            | Self::Star(_)
            | Self::Follow(_)
            | Self::RepoRenamed(_)
            | Self::RepoTransferAccepted(_)
            | Self::RepoArchived(_)
            | Self::RepoUnarchived(_)
            | Self::RepoVisibilityChanged(_)
            | Self::RepoRestored(_)
            | Self::IssueCreated(_)
            | Self::IssueClosed(_)
            | Self::IssueReopened(_)
            | Self::PrOpened(_)
            | Self::PrSynchronized(_)
            | Self::PrClosed(_)
            | Self::PrMerged(_)
            | Self::PrReopened(_) => None,
        }
    }

    /// The nostr event behind it, if it came by nostr.
    pub fn nostr(&self) -> Option<&NostrAddition> {
        match self {
            Self::IssueCreated(origin) => origin.nostr(),
            Self::IssueClosed(origin) | Self::IssueReopened(origin) => origin.nostr(),
            Self::IssueCommentCreated(origin) => origin.nostr(),
            Self::PrOpened(addition)
            | Self::PrCommentCreated(addition)
            | Self::PrSynchronized(addition)
            | Self::PrClosed(addition)
            | Self::PrMerged(addition)
            | Self::PrReopened(addition) => Some(addition),
            Self::RepoCreated(_)
            | Self::RepoForked(_)
            | Self::Push(_)
            | Self::Star(_)
            | Self::Follow(_)
            | Self::RepoRenamed(_)
            | Self::RepoTransferAccepted(_)
            | Self::RepoArchived(_)
            | Self::RepoUnarchived(_)
            | Self::RepoVisibilityChanged(_)
            | Self::RepoRestored(_) => None,
        }
    }
}

words! {
    /// Period of the trending repositories.
    Period {
        Day = "day",
        Week = "week",
        /// Thirty days.
        Month = "month",
    }
}

const DAY: Duration = Duration::from_secs(86_400);

impl Period {
    pub fn length(self) -> Duration {
        match self {
            Self::Day => DAY,
            Self::Week => 7 * DAY,
            Self::Month => 30 * DAY,
        }
    }
}

/// How much one account's attention is worth by the age that it had then: a row of fresh accounts should not lift a
/// repository above one that people like who have been here for a while. From what age on, and how much.
pub const WEIGHTS: [(Duration, i64); 3] =
    [(Duration::ZERO, 1), (Duration::from_secs(86_400), 4), (Duration::from_secs(7 * 86_400), 10)];

/// Weight of an account's attention by the account's age.
pub fn weight(age: Duration) -> i64 {
    WEIGHTS.iter().rev().find(|(from, _)| age >= *from).map_or(0, |(_, weight)| *weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_worth_more_the_older_it_is() {
        let hours = |hours: u64| weight(Duration::from_secs(hours * 3600));
        assert_eq!([hours(0), hours(23), hours(24), hours(167), hours(168), hours(100_000)], [1, 1, 4, 4, 10, 10]);
        assert!(WEIGHTS.is_sorted());
    }

    #[test]
    fn what_concerns_only_some_is_in_no_feed() {
        use Kind::{CollaboratorAdded, RepoSoftDeleted, RepoTransferRequested, Unstar};
        for kind in [RepoTransferRequested, CollaboratorAdded, Unstar, RepoSoftDeleted] {
            assert!(!is_in_feeds(kind), "{kind}");
        }
        for kind in [Kind::Push, Kind::Star, Kind::Follow, Kind::PrMerged] {
            assert!(is_in_feeds(kind), "{kind}");
        }
    }
}
