//! The parts of a payload that depend on the kind of event.

use super::draft::{CommentDraft, IssueDraft, Row, TitleChange};
use super::sender::account;
use super::{issue, nostr};
use crate::Forge;
use crate::github::{SimpleUser, time};
use abide_core::Handle;
use abide_core::event::{Origin, Payload, RoleChange, Transfer};
use abide_core::repo::Role;
use abide_core::webhooks::Kind;
use abide_store::events::Numbered;
use abide_store::repos::Repo;
use abide_store::{StoreError, Tx};
use serde::Serialize;

/// Parts of a payload besides action, repository and sender. Parts that an event does not have are left out.
#[derive(Debug, Default, Serialize)]
pub(super) struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue: Option<IssueDraft>,
    /// `null` beside a pull request: one that came by nostr has no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<Option<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<nostr::PullRequest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<CommentDraft>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milestone: Option<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<SimpleUser>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<SimpleUser>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// `null` when a star was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starred_at: Option<Option<String>>,
}

/// Values before a change.
#[derive(Debug, Default, Serialize)]
pub(super) struct Changes {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<TitleChange>,
    /// Without the text before: it may have been edited because it must not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Empty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<RepositoryChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<OwnerChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<PermissionChange>,
}

/// `{}`
#[derive(Debug, Serialize)]
pub(super) struct Empty {}

#[derive(Debug, Serialize)]
struct RepositoryChange {
    name: NameChange,
}

#[derive(Debug, Serialize)]
struct NameChange {
    from: String,
}

#[derive(Debug, Serialize)]
struct OwnerChange {
    from: PreviousOwner,
}

#[derive(Debug, Serialize)]
struct PreviousOwner {
    user: SimpleUser,
}

#[derive(Debug, Serialize)]
struct PermissionChange {
    from: Option<Role>,
    to: Option<Role>,
}

/// The details of an event; `None` if the issue or thread that it is about is gone, or if it has no webhook event.
pub(super) async fn of(
    tx: &mut Tx,
    forge: &Forge,
    event: &Numbered,
    payload: &Payload,
    repo: &Repo,
    kind: Kind,
) -> Result<Option<Details>, StoreError> {
    match payload {
        Payload::IssueCreated(Origin::Nostr(addition))
        | Payload::IssueClosed(Origin::Nostr(addition))
        | Payload::IssueReopened(Origin::Nostr(addition))
        | Payload::PrOpened(addition)
        | Payload::PrSynchronized(addition)
        | Payload::PrClosed(addition)
        | Payload::PrReopened(addition) => nostr::thread(tx, forge, repo, addition, false).await,
        Payload::PrMerged(addition) => nostr::thread(tx, forge, repo, addition, true).await,
        Payload::IssueCommentCreated(Origin::Nostr(addition)) | Payload::PrCommentCreated(addition) => {
            nostr::commented(tx, forge, repo, addition).await
        }
        Payload::IssueCreated(Origin::Local(opened)) => issue::of(tx, forge, repo, opened.issue).await,
        Payload::IssueClosed(Origin::Local(state)) | Payload::IssueReopened(Origin::Local(state)) => {
            issue::of(tx, forge, repo, state.issue).await
        }
        Payload::IssueEdited(edited) => {
            let changes = Some(issue::changes(edited, event.created_at));
            Ok(issue::of(tx, forge, repo, edited.issue).await?.map(|details| Details { changes, ..details }))
        }
        Payload::IssueAssigned(assigned) | Payload::IssueUnassigned(assigned) => {
            let Some(details) = issue::of(tx, forge, repo, assigned.issue).await? else { return Ok(None) };
            let assignee = account(tx, forge, assigned.assignee_id).await?;
            Ok(Some(Details { assignee: Some(assignee), ..details }))
        }
        Payload::IssueLabeled(changed) | Payload::IssueUnlabeled(changed) => {
            let label = Some(issue::label(changed));
            Ok(issue::of(tx, forge, repo, changed.issue).await?.map(|details| Details { label, ..details }))
        }
        Payload::IssueMilestoned(changed) | Payload::IssueDemilestoned(changed) => {
            let milestone = Some(issue::milestone(changed));
            Ok(issue::of(tx, forge, repo, changed.issue).await?.map(|details| Details { milestone, ..details }))
        }
        Payload::IssueCommentCreated(Origin::Local(comment)) => {
            issue::commented(tx, forge, repo, comment.issue, comment.comment_id, None).await
        }
        Payload::IssueCommentEdited(comment) => {
            let commented = issue::commented(tx, forge, repo, comment.issue, comment.comment_id, None).await?;
            Ok(commented.map(|details| Details { changes: Some(Changes::default()), ..details }))
        }
        Payload::IssueCommentDeleted(deleted) => {
            let author = deleted.comment_author_id;
            issue::commented(tx, forge, repo, deleted.issue, deleted.comment_id, author).await
        }
        Payload::CollaboratorAdded(collaborator)
        | Payload::CollaboratorChanged(collaborator)
        | Payload::CollaboratorRemoved(collaborator) => member(tx, forge, collaborator).await.map(Some),
        // GitHub sends a star as `watch` too, without the time.
        Payload::Star(_) | Payload::Unstar(_) if kind != Kind::Star => Ok(Some(Details::default())),
        Payload::Star(_) => Ok(Some(Details { starred_at: Some(Some(time(event.created_at))), ..Details::default() })),
        Payload::Unstar(_) => Ok(Some(Details { starred_at: Some(None), ..Details::default() })),
        Payload::RepoRenamed(names) => {
            let repository = Some(RepositoryChange { name: NameChange { from: names.old_name.clone() } });
            Ok(Some(changed(Changes { repository, ..Changes::default() })))
        }
        Payload::RepoTransferAccepted(transfer) => {
            let owner = Some(OwnerChange { from: PreviousOwner { user: previous_owner(forge, transfer) } });
            Ok(Some(changed(Changes { owner, ..Changes::default() })))
        }
        // Their action and repository say everything.
        Payload::RepoCreated(_)
        | Payload::RepoEdited(_)
        | Payload::RepoTopicsChanged(_)
        | Payload::RepoArchived(_)
        | Payload::RepoUnarchived(_)
        | Payload::RepoVisibilityChanged(_)
        | Payload::RepoSoftDeleted(_)
        | Payload::RepoRestored(_)
        | Payload::RepoHardDeleted(_) => Ok(Some(Details::default())),
        // Pushes have messages of their own; the others have no webhook event (`abide_core::webhooks::hook_events`).
        Payload::Push(_)
        | Payload::RepoForked(_)
        | Payload::RepoTransferRequested(_)
        | Payload::RepoTransferDeclined(_)
        | Payload::RepoTransferCanceled(_)
        | Payload::RepoTransferExpired(_)
        | Payload::RepoRedirectReleased(_)
        | Payload::AnnouncementPromoted(_)
        | Payload::AnnouncementReplaced(_)
        | Payload::Follow(_)
        | Payload::ReviewRequested(_)
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
        | Payload::KeyUnlinked(_) => Ok(None),
    }
}

fn changed(changes: Changes) -> Details {
    Details { changes: Some(changes), ..Details::default() }
}

async fn member(tx: &mut Tx, forge: &Forge, collaborator: &RoleChange) -> Result<Details, StoreError> {
    let permission = Some(PermissionChange { from: collaborator.before, to: collaborator.after });
    let member = Some(account(tx, forge, collaborator.user_id).await?);
    Ok(Details { member, ..changed(Changes { permission, ..Changes::default() }) })
}

/// The owner before a transfer, under the name at the time of the offer.
fn previous_owner(forge: &Forge, transfer: &Transfer) -> SimpleUser {
    let name = transfer.from.clone().map(Handle::from_stored);
    SimpleUser::new(forge, transfer.from_id, name.as_ref().map(Handle::as_str), false)
}
