//! The kinds of events and the payload of each.

use super::{
    AnnouncementPromoted, AnnouncementReplaced, Archived, CommentDeleted, Commented, Follow, HookCreated, HookDeleted,
    HookEdited, HookHealth, IssueAssignee, IssueEdited, IssueLabel, IssueMilestone, IssueOpened, IssueState, Label,
    LinkedKey, Milestone, NameChange, NostrAddition, Origin, Push, RedirectReleased, RepoCreated, RepoForked,
    RepoHardDeleted, RepoSoftDeleted, ReviewRequested, RoleChange, TopicsChanged, Transfer, UserCreated, UserDeleted,
    UserRenamed, VisibilityChanged,
};
use crate::words::words;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Defines [`Kind`] and [`Payload`] together: one variant each per kind, with its stored word and its details.
macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident($details:ty) = $word:literal),+ $(,)?) => {
        words! {
            /// Kind of an event, as the log stores it.
            Kind { $($(#[$doc])* $variant = $word),+ }
        }

        /// Details of an event, one variant per [`Kind`].
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Payload { $($(#[$doc])* $variant($details)),+ }

        impl Payload {
            pub fn kind(&self) -> Kind {
                match self { $(Self::$variant(_) => Kind::$variant),+ }
            }

            /// The details as JSON, without the keys that all events of a repository have.
            pub fn details(&self) -> Json {
                let details = match self { $(Self::$variant(details) => serde_json::to_value(details)),+ };
                details.expect("details have text keys and no maps of other keys")
            }

            pub(super) fn parse(kind: Kind, json: &str) -> Result<Self, serde_json::Error> {
                match kind { $(Kind::$variant => serde_json::from_str(json).map(Self::$variant)),+ }
            }
        }
    };
}

/// Of a kind that needs no details.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoDetails {}

events! {
    RepoCreated(RepoCreated) = "repo_created",
    RepoForked(RepoForked) = "repo_forked",
    RepoEdited(NoDetails) = "repo_edited",
    RepoTopicsChanged(TopicsChanged) = "repo_topics_changed",
    RepoRenamed(NameChange) = "repo_renamed",
    RepoArchived(Archived) = "repo_archived",
    RepoUnarchived(Archived) = "repo_unarchived",
    RepoVisibilityChanged(VisibilityChanged) = "repo_visibility_changed",
    RepoTransferRequested(Transfer) = "repo_transfer_requested",
    RepoTransferAccepted(Transfer) = "repo_transfer_accepted",
    RepoTransferDeclined(Transfer) = "repo_transfer_declined",
    RepoTransferCanceled(Transfer) = "repo_transfer_canceled",
    RepoTransferExpired(Transfer) = "repo_transfer_expired",
    RepoSoftDeleted(RepoSoftDeleted) = "repo_soft_deleted",
    RepoRestored(NameChange) = "repo_restored",
    RepoHardDeleted(RepoHardDeleted) = "repo_hard_deleted",
    RepoRedirectReleased(RedirectReleased) = "repo_redirect_released",
    /// A repository that a nostr announcement names got its git data and is served.
    AnnouncementPromoted(AnnouncementPromoted) = "announcement_promoted",
    AnnouncementReplaced(AnnouncementReplaced) = "announcement_replaced",
    Push(Push) = "push",
    Star(NoDetails) = "star",
    Unstar(NoDetails) = "unstar",
    Follow(Follow) = "follow",
    CollaboratorAdded(RoleChange) = "collaborator_added",
    CollaboratorChanged(RoleChange) = "collaborator_changed",
    CollaboratorRemoved(RoleChange) = "collaborator_removed",
    IssueCreated(Origin<IssueOpened>) = "issue_created",
    IssueEdited(IssueEdited) = "issue_edited",
    IssueClosed(Origin<IssueState>) = "issue_closed",
    IssueReopened(Origin<IssueState>) = "issue_reopened",
    IssueAssigned(IssueAssignee) = "issue_assigned",
    IssueUnassigned(IssueAssignee) = "issue_unassigned",
    IssueLabeled(IssueLabel) = "issue_labeled",
    IssueUnlabeled(IssueLabel) = "issue_unlabeled",
    IssueMilestoned(IssueMilestone) = "issue_milestoned",
    IssueDemilestoned(IssueMilestone) = "issue_demilestoned",
    IssueCommentCreated(Origin<Commented>) = "issue_comment_created",
    IssueCommentEdited(Commented) = "issue_comment_edited",
    IssueCommentDeleted(CommentDeleted) = "issue_comment_deleted",
    ReviewRequested(ReviewRequested) = "review_requested",
    PrOpened(NostrAddition) = "pr_opened",
    PrCommentCreated(NostrAddition) = "pr_comment_created",
    /// A pull request has another commit, or a patch series another patch.
    PrSynchronized(NostrAddition) = "pr_synchronized",
    PrClosed(NostrAddition) = "pr_closed",
    PrMerged(NostrAddition) = "pr_merged",
    PrReopened(NostrAddition) = "pr_reopened",
    LabelCreated(Label) = "label_created",
    LabelEdited(Label) = "label_edited",
    LabelDeleted(Label) = "label_deleted",
    MilestoneCreated(Milestone) = "milestone_created",
    MilestoneEdited(Milestone) = "milestone_edited",
    MilestoneOpened(Milestone) = "milestone_opened",
    MilestoneClosed(Milestone) = "milestone_closed",
    MilestoneDeleted(Milestone) = "milestone_deleted",
    WebhookCreated(HookCreated) = "webhook_created",
    WebhookEdited(HookEdited) = "webhook_edited",
    WebhookDeleted(HookDeleted) = "webhook_deleted",
    /// Too many deliveries failed in a row; deliveries wait until the receiver responds.
    WebhookSuspended(HookHealth) = "webhook_suspended",
    WebhookResumed(HookHealth) = "webhook_resumed",
    UserCreated(UserCreated) = "user_created",
    UserRenamed(UserRenamed) = "user_renamed",
    UserDeleted(UserDeleted) = "user_deleted",
    KeyLinked(LinkedKey) = "key_linked",
    KeyUnlinked(LinkedKey) = "key_unlinked",
}

impl Payload {
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
            | Self::RepoEdited(_)
            | Self::RepoTopicsChanged(_)
            | Self::RepoRenamed(_)
            | Self::RepoArchived(_)
            | Self::RepoUnarchived(_)
            | Self::RepoVisibilityChanged(_)
            | Self::RepoTransferRequested(_)
            | Self::RepoTransferAccepted(_)
            | Self::RepoTransferDeclined(_)
            | Self::RepoTransferCanceled(_)
            | Self::RepoTransferExpired(_)
            | Self::RepoSoftDeleted(_)
            | Self::RepoRestored(_)
            | Self::RepoHardDeleted(_)
            | Self::RepoRedirectReleased(_)
            | Self::AnnouncementPromoted(_)
            | Self::AnnouncementReplaced(_)
            | Self::Push(_)
            | Self::Star(_)
            | Self::Unstar(_)
            | Self::Follow(_)
            | Self::CollaboratorAdded(_)
            | Self::CollaboratorChanged(_)
            | Self::CollaboratorRemoved(_)
            | Self::IssueEdited(_)
            | Self::IssueAssigned(_)
            | Self::IssueUnassigned(_)
            | Self::IssueLabeled(_)
            | Self::IssueUnlabeled(_)
            | Self::IssueMilestoned(_)
            | Self::IssueDemilestoned(_)
            | Self::IssueCommentEdited(_)
            | Self::IssueCommentDeleted(_)
            | Self::ReviewRequested(_)
            | Self::LabelCreated(_)
            | Self::LabelEdited(_)
            | Self::LabelDeleted(_)
            | Self::MilestoneCreated(_)
            | Self::MilestoneEdited(_)
            | Self::MilestoneOpened(_)
            | Self::MilestoneClosed(_)
            | Self::MilestoneDeleted(_)
            | Self::WebhookCreated(_)
            | Self::WebhookEdited(_)
            | Self::WebhookDeleted(_)
            | Self::WebhookSuspended(_)
            | Self::WebhookResumed(_)
            | Self::UserCreated(_)
            | Self::UserRenamed(_)
            | Self::UserDeleted(_)
            | Self::KeyLinked(_)
            | Self::KeyUnlinked(_) => None,
        }
    }
}
