//! Topics: subject and audience of each kind of event.

use super::{Reason, Subject};
use crate::UserId;
use crate::event::{Kind, Origin, Payload};
use crate::repo::Role;

/// Possible recipients of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// People it names, subscribers of the thread, and watchers of the repository.
    Everyone,
    /// People it concerns, and watchers of the repository.
    ConcernedAndWatchers,
    /// People it concerns: owner and admins, or the two sides of an offer.
    Concerned,
    /// People it names.
    Named,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    pub subject: Subject,
    pub audience: Audience,
    /// Reason for notifying the people that the event names.
    pub naming: Reason,
}

/// Topic of an event; `None` if nobody is notified of the kind, such as pushes and stars. `role` is the new role of a
/// collaborator: promoting one to admin later notifies like adding an admin.
pub fn topic(kind: Kind, role: Option<Role>) -> Option<Topic> {
    use Audience::{Concerned, ConcernedAndWatchers, Everyone, Named};
    let issue = |audience, naming| Some(Topic { subject: Subject::Issue, audience, naming });
    let repo = |audience| Some(Topic { subject: Subject::Repo, audience, naming: Reason::Lifecycle });
    match kind {
        Kind::IssueCreated
        | Kind::IssueCommentCreated
        | Kind::IssueClosed
        | Kind::IssueReopened
        | Kind::PrOpened
        | Kind::PrCommentCreated
        | Kind::PrSynchronized
        | Kind::PrClosed
        | Kind::PrMerged
        | Kind::PrReopened => issue(Everyone, Reason::Mention),
        Kind::IssueEdited | Kind::IssueCommentEdited => issue(Named, Reason::Mention),
        Kind::IssueAssigned => issue(Named, Reason::Assign),
        Kind::ReviewRequested => issue(Named, Reason::ReviewRequested),
        Kind::RepoRenamed
        | Kind::RepoArchived
        | Kind::RepoUnarchived
        | Kind::RepoVisibilityChanged
        | Kind::RepoTransferAccepted
        | Kind::RepoRestored => repo(ConcernedAndWatchers),
        Kind::RepoTransferRequested
        | Kind::RepoTransferDeclined
        | Kind::RepoTransferCanceled
        | Kind::RepoTransferExpired
        | Kind::RepoSoftDeleted
        | Kind::RepoHardDeleted
        | Kind::RepoRedirectReleased
        | Kind::WebhookSuspended
        | Kind::WebhookResumed
        | Kind::CollaboratorAdded
        | Kind::CollaboratorRemoved => repo(Concerned),
        Kind::CollaboratorChanged => repo(Concerned).filter(|_| role == Some(Role::Admin)),
        Kind::RepoCreated
        | Kind::RepoForked
        | Kind::RepoEdited
        | Kind::RepoTopicsChanged
        | Kind::AnnouncementPromoted
        | Kind::AnnouncementReplaced
        | Kind::Push
        | Kind::Star
        | Kind::Unstar
        | Kind::Follow
        | Kind::IssueUnassigned
        | Kind::IssueLabeled
        | Kind::IssueUnlabeled
        | Kind::IssueMilestoned
        | Kind::IssueDemilestoned
        | Kind::IssueCommentDeleted
        | Kind::LabelCreated
        | Kind::LabelEdited
        | Kind::LabelDeleted
        | Kind::MilestoneCreated
        | Kind::MilestoneEdited
        | Kind::MilestoneOpened
        | Kind::MilestoneClosed
        | Kind::MilestoneDeleted
        | Kind::WebhookCreated
        | Kind::WebhookEdited
        | Kind::WebhookDeleted
        | Kind::UserCreated
        | Kind::UserRenamed
        | Kind::UserDeleted
        | Kind::KeyLinked
        | Kind::KeyUnlinked => None,
    }
}

/// Accounts that an event names: mentioned in its text, assigned, or asked for a review.
pub fn named(payload: &Payload) -> Vec<UserId> {
    match payload {
        Payload::IssueCreated(Origin::Local(opened)) => opened.mentions.clone(),
        Payload::IssueCommentCreated(Origin::Local(comment)) | Payload::IssueCommentEdited(comment) => {
            comment.mentions.clone()
        }
        Payload::IssueEdited(edited) => edited.mentions.clone(),
        Payload::IssueCreated(Origin::Nostr(addition))
        | Payload::IssueCommentCreated(Origin::Nostr(addition))
        | Payload::IssueClosed(Origin::Nostr(addition))
        | Payload::IssueReopened(Origin::Nostr(addition))
        | Payload::PrOpened(addition)
        | Payload::PrCommentCreated(addition)
        | Payload::PrSynchronized(addition)
        | Payload::PrClosed(addition)
        | Payload::PrMerged(addition)
        | Payload::PrReopened(addition) => addition.mentions.clone(),
        Payload::IssueAssigned(assigned) => vec![assigned.assignee_id],
        Payload::ReviewRequested(request) => vec![request.reviewer_id],
        Payload::IssueClosed(Origin::Local(_))
        | Payload::IssueReopened(Origin::Local(_))
        | Payload::IssueUnassigned(_)
        | Payload::IssueLabeled(_)
        | Payload::IssueUnlabeled(_)
        | Payload::IssueMilestoned(_)
        | Payload::IssueDemilestoned(_)
        | Payload::IssueCommentDeleted(_)
        | Payload::RepoCreated(_)
        | Payload::RepoForked(_)
        | Payload::RepoEdited(_)
        | Payload::RepoTopicsChanged(_)
        | Payload::RepoRenamed(_)
        | Payload::RepoArchived(_)
        | Payload::RepoUnarchived(_)
        | Payload::RepoVisibilityChanged(_)
        | Payload::RepoTransferRequested(_)
        | Payload::RepoTransferAccepted(_)
        | Payload::RepoTransferDeclined(_)
        | Payload::RepoTransferCanceled(_)
        | Payload::RepoTransferExpired(_)
        | Payload::RepoSoftDeleted(_)
        | Payload::RepoRestored(_)
        | Payload::RepoHardDeleted(_)
        | Payload::RepoRedirectReleased(_)
        | Payload::AnnouncementPromoted(_)
        | Payload::AnnouncementReplaced(_)
        | Payload::Push(_)
        | Payload::Star(_)
        | Payload::Unstar(_)
        | Payload::Follow(_)
        | Payload::CollaboratorAdded(_)
        | Payload::CollaboratorChanged(_)
        | Payload::CollaboratorRemoved(_)
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
        | Payload::WebhookSuspended(_)
        | Payload::WebhookResumed(_)
        | Payload::UserCreated(_)
        | Payload::UserRenamed(_)
        | Payload::UserDeleted(_)
        | Payload::KeyLinked(_)
        | Payload::KeyUnlinked(_) => Vec::new(),
    }
}
