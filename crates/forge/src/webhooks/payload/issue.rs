//! Issues and their comments.

use super::details::{Changes, Details, Empty};
use super::draft::{CommentDraft, Draft, IssueDraft, Row, TitleChange};
use super::sender::Sender;
use crate::Forge;
use crate::github::{Issue, IssueComment, Label, Milestone, Urls};
use crate::issues::show::{Detailed, detailed_in};
use abide_core::event::{IssueEdited, IssueField, IssueLabel, IssueMilestone, IssueRef};
use abide_core::{CommentId, IssueId, LabelId, MilestoneId, Timestamp, UserId};
use abide_store::issues::{self, comments, labels, milestones};
use abide_store::repos::Repo;
use abide_store::{Conn, StoreError, Tx};
use serde::Serialize;

/// Details with an issue; `None` if it is gone.
pub(super) async fn of(
    tx: &mut Tx,
    forge: &Forge,
    repo: &Repo,
    issue: IssueRef,
) -> Result<Option<Details>, StoreError> {
    let Some(detailed) = load(tx, issue.issue_id).await? else { return Ok(None) };
    let issue = IssueDraft::of(&Issue::of(forge, repo, &detailed));
    Ok(Some(Details { issue: Some(issue), ..Details::default() }))
}

/// The fields that changed. The time of a changed title leads [`refresh`] to the title before.
pub(super) fn changes(edited: &IssueEdited, at: Timestamp) -> Changes {
    let mut changes = Changes::default();
    for field in &edited.changed {
        match field {
            IssueField::Title => changes.title = Some(TitleChange { at: Some(at.micros()), from: None }),
            IssueField::Body => changes.body = Some(Empty {}),
        }
    }
    changes
}

/// Rows of the first version have no ids of labels and milestones; id 0 names none.
pub(super) fn label(changed: &IssueLabel) -> Row {
    Row::by_id(changed.label_id.map_or(0, LabelId::get))
}

pub(super) fn milestone(changed: &IssueMilestone) -> Row {
    Row::by_id(changed.milestone_id.map_or(0, MilestoneId::get))
}

/// A comment that was deleted. Its row is gone, so its times are unknown.
#[derive(Debug, Serialize)]
struct DeletedComment {
    id: i64,
    node_id: String,
    url: String,
    html_url: String,
    issue_url: String,
    body: &'static str,
    user: Sender,
}

/// Details with a comment and its issue; `None` if the issue is gone. `author` is that of a deleted comment.
pub(super) async fn commented(
    tx: &mut Tx,
    forge: &Forge,
    repo: &Repo,
    issue: IssueRef,
    id: CommentId,
    author: Option<UserId>,
) -> Result<Option<Details>, StoreError> {
    let Some(detailed) = load(tx, issue.issue_id).await? else { return Ok(None) };
    let number = detailed.issue.number;
    let issue = IssueDraft::of(&Issue::of(forge, repo, &detailed));
    let comment = match comments::by_id(tx, repo.id, id).await? {
        Some(found) => CommentDraft::of(&IssueComment::of(forge, repo, &found)),
        None => {
            let urls = Urls::of(forge, repo);
            CommentDraft::of(&DeletedComment {
                id: id.get(),
                node_id: format!("IC_{id}"),
                url: urls.api(&format!("/issues/comments/{id}")),
                html_url: urls.page(&format!("/issues/{number}#comment-{id}")),
                issue_url: urls.api(&format!("/issues/{number}")),
                body: "",
                user: Sender::of(tx, forge, author).await?,
            })
        }
    };
    Ok(Some(Details { issue: Some(issue), comment: Some(comment), ..Details::default() }))
}

/// Fills in the titles, texts, labels and milestones of the live rows. Texts of a deleted row stay empty.
pub(super) async fn refresh(conn: &mut Conn, forge: &Forge, repo: &Repo, draft: &mut Draft) -> Result<(), StoreError> {
    if let Some(issue) = &mut draft.issue
        && let Some(id) = issue.id.map(IssueId::new)
    {
        let found = issues::by_id(conn, id).await?;
        let (title, body) = found.map(|issue| (issue.title, issue.body)).unwrap_or_default();
        issue.title = title;
        issue.body = Some(body).filter(|text| !text.is_empty());
        let mut labels = Vec::new();
        for kept in &issue.labels {
            labels.extend(live_label(conn, forge, repo, kept).await?);
        }
        issue.labels = labels;
        issue.milestone = match &issue.milestone {
            Some(kept) => live_milestone(conn, forge, repo, kept).await?,
            None => None,
        };
        if let Some(title) = draft.changes.as_mut().and_then(|changes| changes.title.as_mut())
            && let Some(at) = title.at
        {
            let from = issues::timeline::title_before(conn, id, Timestamp::from_micros(at)).await?;
            *title = TitleChange { at: None, from };
        }
    }
    if let Some(comment) = &mut draft.comment
        && let Some(id) = comment.id
    {
        let found = comments::by_id(conn, repo.id, CommentId::new(id)).await?;
        comment.body = found.map(|comment| comment.body).unwrap_or_default();
    }
    if let Some(kept) = &mut draft.label
        && let Some(found) = live_label(conn, forge, repo, kept).await?
    {
        *kept = found;
    }
    if let Some(kept) = &mut draft.milestone
        && let Some(found) = live_milestone(conn, forge, repo, kept).await?
    {
        *kept = found;
    }
    Ok(())
}

async fn live_label(conn: &mut Conn, forge: &Forge, repo: &Repo, kept: &Row) -> Result<Option<Row>, StoreError> {
    let Some(id) = kept.id.map(LabelId::new) else { return Ok(None) };
    Ok(labels::by_id(conn, repo.id, id).await?.map(|found| Row::label(&Label::of(forge, repo, &found))))
}

async fn live_milestone(conn: &mut Conn, forge: &Forge, repo: &Repo, kept: &Row) -> Result<Option<Row>, StoreError> {
    let Some(id) = kept.id.map(MilestoneId::new) else { return Ok(None) };
    let found = milestones::by_ids(conn, &[id]).await?;
    Ok(found.first().map(|found| Row::milestone(&Milestone::of(forge, repo, found))))
}

async fn load(tx: &mut Tx, id: IssueId) -> Result<Option<Detailed>, StoreError> {
    let found = issues::by_id(tx, id).await?;
    Ok(detailed_in(tx, found.into_iter().collect()).await?.pop())
}
