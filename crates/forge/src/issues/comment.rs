//! Comments of an issue: add, edit, remove.

use super::IssueError;
use super::context::{IssueContext, Target, throttle, writer};
use super::involve::{involved, listen};
use crate::emit::{AuditAction, audit_repo};
use crate::open::judge_decision;
use crate::{Caller, Forge};
use abide_core::CommentId;
use abide_core::event::{CommentDeleted, Commented, Origin, Payload};
use abide_core::issues::text;
use abide_core::policy::{self, Action, IssueAction};
use abide_macros::boxed;
use abide_store::issues::comments::{self, Comment};
use abide_store::issues::people::Why;
use abide_store::issues::timeline::NewEntry;
use abide_store::repos::Repo;
use abide_store::{StoreError, Tx};
use serde_json::json;

/// Comments on an issue.
#[boxed]
pub async fn add(forge: &Forge, caller: &Caller, repo: &Repo, number: i64, body: &str) -> Result<Comment, IssueError> {
    let (target, body) = prepared(forge, caller, repo, number, body)?;
    forge.store().write((target, body), |tx, (target, body)| Box::pin(write(tx, target, body))).await
}

fn prepared(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    number: i64,
    body: &str,
) -> Result<(Target, String), IssueError> {
    let settings = forge.settings().issues.clone();
    let body = text::comment(body, settings.body_bytes).map_err(IssueError::at("body"))?;
    Ok((Target { caller: caller.clone(), repo: repo.id, number, settings }, body))
}

async fn write(tx: &mut Tx, target: &Target, body: &str) -> Result<Comment, IssueError> {
    let context = IssueContext::open(tx, target).await?;
    let facts = context.repo.facts();
    judge_decision(policy::can(&context.caller.actor, Action::IssueComment, &facts, context.repo.role))?;
    let author = writer(&context.caller)?;
    if context.issue.comment_count >= context.settings.comments_per_issue {
        return Err(IssueError::TooMany { field: "comments", limit: context.settings.comments_per_issue });
    }
    throttle(tx, "comment", context.settings.commenting(), author).await?;
    let id = comments::insert(tx, context.repo.id, context.issue.id, author, body).await?;
    context.append_entry(tx, NewEntry { kind: "commented", comment: Some(id), ..NewEntry::default() }).await?;
    involved(tx, author, &context.repo, &context.issue, Why::Comment).await?;
    let mentions = listen(tx, &context, "", body).await?;
    let comment = Commented { issue: context.issue_ref(), comment_id: id, mentions };
    context.emit(tx, Payload::IssueCommentCreated(Origin::Local(comment))).await?;
    Ok(comments::by_id(tx, context.repo.id, id).await?.ok_or(StoreError::Missing)?)
}

/// One comment of a repository.
#[boxed]
pub async fn show(forge: &Forge, repo: &Repo, id: &str) -> Result<Comment, IssueError> {
    let id = comment_id(id)?;
    let found = comments::by_id(&mut *forge.store().read().await?, repo.id, id).await?;
    found.ok_or(IssueError::NotFound("comment"))
}

/// Replaces the text of a comment.
#[boxed]
pub async fn edit(forge: &Forge, caller: &Caller, repo: &Repo, id: &str, body: &str) -> Result<Comment, IssueError> {
    let comment = show(forge, repo, id).await?;
    let (target, body) = prepared(forge, caller, repo, comment.number, body)?;
    let unit = (target, comment.id, body);
    forge.store().write(unit, |tx, (target, id, body)| Box::pin(rewrite(tx, target, *id, body))).await
}

async fn rewrite(tx: &mut Tx, target: &Target, id: CommentId, body: &str) -> Result<Comment, IssueError> {
    let (context, comment) = opened(tx, target, id, IssueAction::Edit).await?;
    if comment.body == body {
        return Ok(comment);
    }
    comments::set_body(tx, id, body).await?;
    let mentions = listen(tx, &context, &comment.body, body).await?;
    let edited = Commented { issue: context.issue_ref(), comment_id: id, mentions };
    context.emit(tx, Payload::IssueCommentEdited(edited)).await?;
    moderated(tx, &context, &comment, AuditAction::IssueCommentModerated).await?;
    Ok(comments::by_id(tx, context.repo.id, id).await?.ok_or(StoreError::Missing)?)
}

/// Removes a comment permanently and returns it.
#[boxed]
pub async fn remove(forge: &Forge, caller: &Caller, repo: &Repo, id: &str) -> Result<Comment, IssueError> {
    let comment = show(forge, repo, id).await?;
    let settings = forge.settings().issues.clone();
    let target = Target { caller: caller.clone(), repo: repo.id, number: comment.number, settings };
    forge.store().write((target, comment.id), |tx, (target, id)| Box::pin(unwrite(tx, target, *id))).await
}

async fn unwrite(tx: &mut Tx, target: &Target, id: CommentId) -> Result<Comment, IssueError> {
    let (context, comment) = opened(tx, target, id, IssueAction::Remove).await?;
    comments::remove(tx, &comment).await?;
    let deleted = CommentDeleted {
        issue: context.issue_ref(),
        comment_id: id,
        comment_author_id: comment.author_id,
        comment_author: comment.author_name.as_ref().map(ToString::to_string),
    };
    context.emit(tx, Payload::IssueCommentDeleted(deleted)).await?;
    moderated(tx, &context, &comment, AuditAction::IssueCommentRemoved).await?;
    Ok(comment)
}

async fn opened(
    tx: &mut Tx,
    target: &Target,
    id: CommentId,
    action: IssueAction,
) -> Result<(IssueContext, Comment), IssueError> {
    let context = IssueContext::open(tx, target).await?;
    let found = comments::by_id(tx, context.repo.id, id).await?.ok_or(IssueError::NotFound("comment"))?;
    context.ensure_of(action, found.author_id)?;
    Ok((context, found))
}

/// Writes an audit row for a moderated comment.
async fn moderated(
    tx: &mut Tx,
    context: &IssueContext,
    comment: &Comment,
    action: AuditAction,
) -> Result<(), StoreError> {
    if context.who.user == comment.author_id {
        return Ok(());
    }
    let author = comment.author_name.as_ref().map(ToString::to_string);
    let meta = json!({ "number": comment.number, "comment_id": comment.id.get(), "author": author });
    audit_repo(tx, &context.who, action, &context.repo, meta).await
}

fn comment_id(text: &str) -> Result<CommentId, IssueError> {
    text.parse().map_err(|_| IssueError::NotFound("comment"))
}
