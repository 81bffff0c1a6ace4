//! Title and text of an issue.

use super::IssueError;
use super::context::IssueContext;
use super::involve::listen;
use crate::emit::{AuditAction, audit_repo};
use abide_core::event::{IssueEdited, IssueField, Payload};
use abide_core::issues::text::Title;
use abide_core::issues::timeline::{Detail, TitleDetail};
use abide_core::policy::IssueAction;
use abide_store::issues::timeline::NewEntry;
use abide_store::{Tx, issues};
use serde_json::json;

/// Replaces the title, the text or both.
pub(super) async fn step(
    tx: &mut Tx,
    context: &mut IssueContext,
    title: Option<&Title>,
    body: Option<&str>,
) -> Result<(), IssueError> {
    context.ensure(IssueAction::Edit)?;
    let before = context.issue.clone();
    let title = title.map_or(before.title.as_str(), Title::as_str).to_owned();
    let body = body.unwrap_or(&before.body).to_owned();
    let (renamed, rewritten) = (title != before.title, body != before.body);
    if !renamed && !rewritten {
        return Ok(());
    }
    issues::set_text(tx, before.id, &title, &body).await?;
    if renamed {
        let detail = Detail::Title(TitleDetail { from: before.title.clone(), to: title.clone() }).stored();
        context.append_entry(tx, NewEntry { kind: "renamed", detail, ..NewEntry::default() }).await?;
    }
    (context.issue.title, context.issue.body) = (title, body);
    let mentions = listen(tx, context, &before.body, &context.issue.body).await?;
    let fields = [(IssueField::Title, renamed), (IssueField::Body, rewritten)];
    let changed: Vec<_> = fields.into_iter().filter(|(_, is)| *is).map(|(field, _)| field).collect();
    let edited = IssueEdited { issue: context.issue_ref(), changed: changed.clone(), mentions };
    context.emit(tx, Payload::IssueEdited(edited)).await?;
    if context.who.user != before.author_id {
        let meta = json!({ "number": before.number, "changed": changed });
        audit_repo(tx, &context.who, AuditAction::IssueModerated, &context.repo, meta).await?;
    }
    Ok(())
}
