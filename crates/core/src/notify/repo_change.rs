//! Events about a repository itself, of which its people are notified.

use crate::UserId;
use crate::event::{
    HookHealth, NameChange, Payload, RedirectReleased, RepoHardDeleted, RepoSoftDeleted, RoleChange, Transfer,
    VisibilityChanged,
};
use crate::repo::Role;

/// A change of a repository that concerns its owner and admins, or the two sides of a transfer offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepoChange<'a> {
    Renamed(&'a NameChange),
    Archived,
    Unarchived,
    VisibilityChanged(&'a VisibilityChanged),
    TransferRequested(&'a Transfer),
    TransferAccepted(&'a Transfer),
    TransferDeclined(&'a Transfer),
    TransferCanceled(&'a Transfer),
    TransferExpired(&'a Transfer),
    Restored,
    SoftDeleted(&'a RepoSoftDeleted),
    HardDeleted(&'a RepoHardDeleted),
    RedirectReleased(&'a RedirectReleased),
    CollaboratorAdded(&'a RoleChange),
    CollaboratorChanged(&'a RoleChange),
    CollaboratorRemoved(&'a RoleChange),
    WebhookSuspended(&'a HookHealth),
    WebhookResumed(&'a HookHealth),
}

impl<'a> RepoChange<'a> {
    /// `None` for events of which the people of a repository are not notified as such.
    pub fn of(payload: &'a Payload) -> Option<Self> {
        Some(match payload {
            Payload::RepoRenamed(names) => Self::Renamed(names),
            Payload::RepoArchived(_) => Self::Archived,
            Payload::RepoUnarchived(_) => Self::Unarchived,
            Payload::RepoVisibilityChanged(change) => Self::VisibilityChanged(change),
            Payload::RepoTransferRequested(transfer) => Self::TransferRequested(transfer),
            Payload::RepoTransferAccepted(transfer) => Self::TransferAccepted(transfer),
            Payload::RepoTransferDeclined(transfer) => Self::TransferDeclined(transfer),
            Payload::RepoTransferCanceled(transfer) => Self::TransferCanceled(transfer),
            Payload::RepoTransferExpired(transfer) => Self::TransferExpired(transfer),
            Payload::RepoRestored(_) => Self::Restored,
            Payload::RepoSoftDeleted(deleted) => Self::SoftDeleted(deleted),
            Payload::RepoHardDeleted(deleted) => Self::HardDeleted(deleted),
            Payload::RepoRedirectReleased(released) => Self::RedirectReleased(released),
            Payload::CollaboratorAdded(collaborator) => Self::CollaboratorAdded(collaborator),
            Payload::CollaboratorChanged(collaborator) => Self::CollaboratorChanged(collaborator),
            Payload::CollaboratorRemoved(collaborator) => Self::CollaboratorRemoved(collaborator),
            Payload::WebhookSuspended(hook) => Self::WebhookSuspended(hook),
            Payload::WebhookResumed(hook) => Self::WebhookResumed(hook),
            Payload::RepoCreated(_)
            | Payload::RepoForked(_)
            | Payload::RepoEdited(_)
            | Payload::RepoTopicsChanged(_)
            | Payload::AnnouncementPromoted(_)
            | Payload::AnnouncementReplaced(_)
            | Payload::Push(_)
            | Payload::Star(_)
            | Payload::Unstar(_)
            | Payload::Follow(_)
            | Payload::IssueCreated(_)
            | Payload::IssueEdited(_)
            | Payload::IssueClosed(_)
            | Payload::IssueReopened(_)
            | Payload::IssueAssigned(_)
            | Payload::IssueUnassigned(_)
            | Payload::IssueLabeled(_)
            | Payload::IssueUnlabeled(_)
            | Payload::IssueMilestoned(_)
            | Payload::IssueDemilestoned(_)
            | Payload::IssueCommentCreated(_)
            | Payload::IssueCommentEdited(_)
            | Payload::IssueCommentDeleted(_)
            | Payload::ReviewRequested(_)
            | Payload::PrOpened(_)
            | Payload::PrCommentCreated(_)
            | Payload::PrSynchronized(_)
            | Payload::PrClosed(_)
            | Payload::PrMerged(_)
            | Payload::PrReopened(_)
            | Payload::LabelCreated(_)
            | Payload::LabelEdited(_)
            | Payload::LabelDeleted(_)
            | Payload::MilestoneCreated(_)
            | Payload::MilestoneEdited(_)
            | Payload::MilestoneOpened(_)
            | Payload::MilestoneClosed(_)
            | Payload::MilestoneDeleted(_)
            | Payload::WebhookCreated(_)
            | Payload::WebhookEdited(_)
            | Payload::WebhookDeleted(_)
            | Payload::UserCreated(_)
            | Payload::UserRenamed(_)
            | Payload::UserDeleted(_)
            | Payload::KeyLinked(_)
            | Payload::KeyUnlinked(_) => return None,
        })
    }

    /// The offer of a transfer event.
    pub fn transfer(self) -> Option<&'a Transfer> {
        match self {
            Self::TransferRequested(transfer)
            | Self::TransferAccepted(transfer)
            | Self::TransferDeclined(transfer)
            | Self::TransferCanceled(transfer)
            | Self::TransferExpired(transfer) => Some(transfer),
            Self::Renamed(_)
            | Self::Archived
            | Self::Unarchived
            | Self::VisibilityChanged(_)
            | Self::Restored
            | Self::SoftDeleted(_)
            | Self::HardDeleted(_)
            | Self::RedirectReleased(_)
            | Self::CollaboratorAdded(_)
            | Self::CollaboratorChanged(_)
            | Self::CollaboratorRemoved(_)
            | Self::WebhookSuspended(_)
            | Self::WebhookResumed(_) => None,
        }
    }

    /// The collaborator whose role it gives, changes or takes away.
    pub fn collaborator(self) -> Option<&'a RoleChange> {
        match self {
            Self::CollaboratorAdded(collaborator)
            | Self::CollaboratorChanged(collaborator)
            | Self::CollaboratorRemoved(collaborator) => Some(collaborator),
            Self::Renamed(_)
            | Self::Archived
            | Self::Unarchived
            | Self::VisibilityChanged(_)
            | Self::TransferRequested(_)
            | Self::TransferAccepted(_)
            | Self::TransferDeclined(_)
            | Self::TransferCanceled(_)
            | Self::TransferExpired(_)
            | Self::Restored
            | Self::SoftDeleted(_)
            | Self::HardDeleted(_)
            | Self::RedirectReleased(_)
            | Self::WebhookSuspended(_)
            | Self::WebhookResumed(_) => None,
        }
    }

    /// Someone who is offered a repository, or whose role changes, and need not have asked for it.
    pub fn brought_in(self) -> Option<UserId> {
        let recipient = self.transfer().map(|transfer| transfer.to_id);
        recipient.or_else(|| self.collaborator().map(|collaborator| collaborator.user_id))
    }

    /// Whether the actor is mailed too: only about what cannot be undone or hands something away, so that nobody who
    /// takes over a session does it unnoticed.
    pub fn is_mailed_to_actor(self) -> bool {
        match self {
            Self::TransferRequested(_)
            | Self::TransferAccepted(_)
            | Self::SoftDeleted(_)
            | Self::HardDeleted(_)
            | Self::RedirectReleased(_)
            | Self::CollaboratorRemoved(_) => true,
            Self::CollaboratorAdded(collaborator) | Self::CollaboratorChanged(collaborator) => {
                collaborator.after == Some(Role::Admin)
            }
            Self::Renamed(_)
            | Self::Archived
            | Self::Unarchived
            | Self::VisibilityChanged(_)
            | Self::TransferDeclined(_)
            | Self::TransferCanceled(_)
            | Self::TransferExpired(_)
            | Self::Restored
            | Self::WebhookSuspended(_)
            | Self::WebhookResumed(_) => false,
        }
    }
}
