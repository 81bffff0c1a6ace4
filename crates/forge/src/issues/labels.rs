//! The labels of a repository.

use super::IssueError;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::open::open_locked;
use crate::{Caller, Fault, Forge};
use abide_core::RepoId;
use abide_core::event::{self, Payload};
use abide_core::issues::text::{Colour, LabelName, MAX_LABEL_ABOUT, about};
use abide_core::policy::Action;
use abide_macros::boxed;
use abide_store::Tx;
use abide_store::issues::labels::{self, Label, Look};
use abide_store::repos::{Page, Repo};
use serde_json::json;

/// Fields of a label; a missing field stays as it is, or empty in a new one.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub name: Option<String>,
    /// Six hexadecimal digits.
    pub color: Option<String>,
    pub description: Option<String>,
}

impl Request {
    /// Merges the requested fields with the stored ones.
    fn over(&self, before: Option<&Label>) -> Result<Look, IssueError> {
        let name = match (&self.name, before) {
            (None, Some(before)) => before.name.clone(),
            (name, _) => name.as_deref().unwrap_or_default().parse().map_err(IssueError::at("name"))?,
        };
        let color = match self.color.as_deref().filter(|color| !color.is_empty()) {
            Some(color) => color.parse().map_err(IssueError::at("color"))?,
            None => before.map_or_else(Colour::default, |before| before.color.clone()),
        };
        let description = match &self.description {
            Some(text) => about(text, MAX_LABEL_ABOUT).map_err(IssueError::at("description"))?,
            None => before.map(|before| before.description.clone()).unwrap_or_default(),
        };
        Ok(Look { name, color, description })
    }
}

/// A page of a repository's labels by name, and their total number.
#[boxed]
pub async fn list(forge: &Forge, repo: &Repo, page: Page) -> Result<(Vec<Label>, i64), Fault> {
    Ok(labels::list(&mut *forge.store().read().await?, repo.id, page).await?)
}

/// The label with this name.
#[boxed]
pub async fn show(forge: &Forge, repo: &Repo, name: &str) -> Result<Label, IssueError> {
    let found = labels::by_name(&mut *forge.store().read().await?, repo.id, &folded(name)).await?;
    found.ok_or(IssueError::NotFound("label"))
}

fn folded(name: &str) -> String {
    name.parse::<LabelName>().map(|name| name.folded()).unwrap_or_default()
}

struct Unit {
    caller: Caller,
    repo: RepoId,
    /// Name of the label to edit or remove; empty for a new one.
    name: String,
    request: Request,
    limit: i64,
}

/// Creates a label.
#[boxed]
pub async fn create(forge: &Forge, caller: &Caller, repo: &Repo, request: Request) -> Result<Label, IssueError> {
    let limit = forge.settings().issues.labels;
    let unit = Unit { caller: caller.clone(), repo: repo.id, name: String::new(), request, limit };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Label, IssueError> {
    let repo = open_locked(tx, &unit.caller, unit.repo, Action::IssueModerate).await?;
    add(tx, &Who::from(&unit.caller), &repo, &unit.request.over(None)?, unit.limit).await
}

/// Adds a label to a locked repository.
pub(super) async fn add(tx: &mut Tx, who: &Who, repo: &Repo, look: &Look, limit: i64) -> Result<Label, IssueError> {
    // Checked before the insert: PostgreSQL ends the transaction at the first refused statement.
    if labels::by_name(tx, repo.id, &look.name.folded()).await?.is_some() {
        return Err(IssueError::Taken { field: "name" });
    }
    if labels::list(tx, repo.id, Page { limit: 1, offset: 0 }).await?.1 >= limit {
        return Err(IssueError::TooMany { field: "labels", limit });
    }
    let label = labels::insert(tx, repo.id, look).await.map_err(IssueError::taken("name"))?;
    let payload = Payload::LabelCreated(event::Label { label_id: Some(label.id) });
    emit(tx, who, Subject::Repo(repo), repo.visibility.into(), payload).await?;
    Ok(label)
}

/// Changes a label on all its issues.
#[boxed]
pub async fn edit(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    name: &str,
    request: Request,
) -> Result<Label, IssueError> {
    let unit = Unit { caller: caller.clone(), repo: repo.id, name: folded(name), request, limit: 0 };
    forge.store().write(unit, |tx, unit| Box::pin(rewrite(tx, unit))).await
}

async fn rewrite(tx: &mut Tx, unit: &Unit) -> Result<Label, IssueError> {
    let repo = open_locked(tx, &unit.caller, unit.repo, Action::IssueModerate).await?;
    let before = labels::by_name(tx, repo.id, &unit.name).await?.ok_or(IssueError::NotFound("label"))?;
    let look = unit.request.over(Some(&before))?;
    let Look { name, color, description } = look.clone();
    let after = Label { id: before.id, name, color, description };
    if before == after {
        return Ok(after);
    }
    labels::update(tx, before.id, &look).await.map_err(IssueError::taken("name"))?;
    let payload = Payload::LabelEdited(event::Label { label_id: Some(before.id) });
    emit(tx, &Who::from(&unit.caller), Subject::Repo(&repo), repo.visibility.into(), payload).await?;
    Ok(after)
}

/// Removes a label from a repository and from every issue.
#[boxed]
pub async fn remove(forge: &Forge, caller: &Caller, repo: &Repo, name: &str) -> Result<(), IssueError> {
    let request = Request::default();
    let unit = Unit { caller: caller.clone(), repo: repo.id, name: folded(name), request, limit: 0 };
    forge.store().write(unit, |tx, unit| Box::pin(unwrite(tx, unit))).await
}

async fn unwrite(tx: &mut Tx, unit: &Unit) -> Result<(), IssueError> {
    let repo = open_locked(tx, &unit.caller, unit.repo, Action::IssueModerate).await?;
    let label = labels::by_name(tx, repo.id, &unit.name).await?.ok_or(IssueError::NotFound("label"))?;
    labels::remove(tx, label.id).await?;
    let who = Who::from(&unit.caller);
    audit_repo(tx, &who, AuditAction::LabelDeleted, &repo, json!({ "label": label.name.as_str() })).await?;
    let payload = Payload::LabelDeleted(event::Label { label_id: Some(label.id) });
    Ok(emit(tx, &who, Subject::Repo(&repo), repo.visibility.into(), payload).await?)
}
