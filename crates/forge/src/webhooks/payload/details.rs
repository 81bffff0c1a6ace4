//! The parts of a message that depend on the kind of event.

use super::{issue, nostr, repository, someone};
use crate::Forge;
use abide_core::event::{Origin, Payload, RoleChange};
use abide_core::webhooks::Kind;
use abide_store::events::Numbered;
use abide_store::repos::Repo;
use abide_store::{StoreError, Tx};
use serde_json::{Map, Value as Json, json};

type Said = Map<String, Json>;

/// Puts the details of an event into a message. `false` if the issue or thread that it is about is gone.
pub(super) async fn put(
    tx: &mut Tx,
    forge: &Forge,
    event: &Numbered,
    payload: &Payload,
    repo: &Repo,
    kind: Kind,
    said: &mut Said,
) -> Result<bool, StoreError> {
    match payload {
        Payload::IssueCreated(Origin::Nostr(addition))
        | Payload::IssueClosed(Origin::Nostr(addition))
        | Payload::IssueReopened(Origin::Nostr(addition))
        | Payload::PrOpened(addition)
        | Payload::PrSynchronized(addition)
        | Payload::PrClosed(addition)
        | Payload::PrReopened(addition) => nostr::thread(tx, forge, repo, addition, false, said).await,
        Payload::PrMerged(addition) => nostr::thread(tx, forge, repo, addition, true, said).await,
        Payload::IssueCommentCreated(Origin::Nostr(addition)) | Payload::PrCommentCreated(addition) => {
            nostr::commented(tx, forge, repo, addition, said).await
        }
        Payload::IssueCreated(Origin::Local(opened)) => issue::put(tx, forge, repo, opened.issue, said).await,
        Payload::IssueClosed(Origin::Local(state)) | Payload::IssueReopened(Origin::Local(state)) => {
            issue::put(tx, forge, repo, state.issue, said).await
        }
        Payload::IssueEdited(edited) => issue::edited(tx, forge, repo, edited, event.created_at, said).await,
        Payload::IssueAssigned(assigned) | Payload::IssueUnassigned(assigned) => {
            let found = issue::put(tx, forge, repo, assigned.issue, said).await?;
            said.insert("assignee".into(), someone(tx, forge, Some(assigned.assignee_id)).await?);
            Ok(found)
        }
        Payload::IssueLabeled(changed) | Payload::IssueUnlabeled(changed) => {
            issue::labeled(tx, forge, repo, changed, said).await
        }
        Payload::IssueMilestoned(changed) | Payload::IssueDemilestoned(changed) => {
            issue::milestoned(tx, forge, repo, changed, said).await
        }
        Payload::IssueCommentCreated(Origin::Local(comment)) => {
            issue::comment_of(tx, forge, repo, comment.issue, comment.comment_id, None, said).await
        }
        Payload::IssueCommentEdited(comment) => {
            said.insert("changes".into(), json!({}));
            issue::comment_of(tx, forge, repo, comment.issue, comment.comment_id, None, said).await
        }
        Payload::IssueCommentDeleted(deleted) => {
            let author = deleted.comment_author_id;
            issue::comment_of(tx, forge, repo, deleted.issue, deleted.comment_id, author, said).await
        }
        Payload::CollaboratorAdded(collaborator)
        | Payload::CollaboratorChanged(collaborator)
        | Payload::CollaboratorRemoved(collaborator) => member(tx, forge, collaborator, said).await,
        // GitHub sends a star as `watch` too, without the time.
        Payload::Star(_) | Payload::Unstar(_) if kind != Kind::Star => Ok(true),
        Payload::Star(_) => {
            said.insert("starred_at".into(), event.created_at.to_string().into());
            Ok(true)
        }
        Payload::Unstar(_) => {
            said.insert("starred_at".into(), Json::Null);
            Ok(true)
        }
        Payload::RepoRenamed(names) => {
            said.insert("changes".into(), json!({ "repository": { "name": { "from": names.old_name } } }));
            Ok(true)
        }
        Payload::RepoTransferAccepted(transfer) => {
            said.insert("changes".into(), repository::owner_change(forge, transfer));
            Ok(true)
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
        | Payload::RepoHardDeleted(_) => Ok(true),
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
        | Payload::KeyUnlinked(_) => Ok(false),
    }
}

async fn member(tx: &mut Tx, forge: &Forge, collaborator: &RoleChange, said: &mut Said) -> Result<bool, StoreError> {
    said.insert("member".into(), someone(tx, forge, Some(collaborator.user_id)).await?);
    let roles = json!({ "from": collaborator.before, "to": collaborator.after });
    said.insert("changes".into(), json!({ "permission": roles }));
    Ok(true)
}
