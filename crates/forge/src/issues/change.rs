//! Changes an issue: one request is one transaction.

use super::context::{IssueContext, Target};
use super::{IssueError, assign, label, milestone, state, text};
use crate::{Caller, Forge};
use abide_core::issues::text::{Title, body};
use abide_core::issues::{Reason, State};
use abide_macros::boxed;
use abide_store::issues::{self, Issue};
use abide_store::repos::Repo;
use abide_store::{StoreError, Tx};

/// Change of a set of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// Replaces all names.
    Set(Vec<String>),
    /// Adds names.
    Add(Vec<String>),
    /// Removes names, each of which must be present.
    Remove(Vec<String>),
}

/// Fields to change.
#[derive(Debug, Clone, Default)]
pub struct Change {
    pub title: Option<String>,
    /// Markdown.
    pub body: Option<String>,
    /// New state, with the reason for closing.
    pub state: Option<(State, Option<Reason>)>,
    pub labels: Option<Names>,
    pub assignees: Option<Names>,
    /// Number of a milestone; `None` removes it.
    pub milestone: Option<Option<i64>>,
}

struct Unit {
    target: Target,
    title: Option<Title>,
    body: Option<String>,
    change: Change,
}

/// Changes an issue. A request that changes nothing emits no event.
#[boxed]
pub async fn change(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    number: i64,
    change: Change,
) -> Result<Issue, IssueError> {
    let settings = forge.settings().issues.clone();
    if let Some((state, Some(reason))) = change.state
        && !reason.fits(state)
    {
        return Err(IssueError::Reason);
    }
    let title = change.title.as_deref().map(str::parse).transpose().map_err(IssueError::at("title"))?;
    let text = change.body.as_deref().map(|text| body(text, settings.body_bytes)).transpose();
    let body = text.map_err(IssueError::at("body"))?;
    let target = Target { caller: caller.clone(), repo: repo.id, number, settings };
    forge.store().write(Unit { target, title, body, change }, |tx, unit| Box::pin(write(tx, unit))).await
}

/// Closes an issue.
#[boxed]
pub async fn close(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    number: i64,
    reason: Option<Reason>,
) -> Result<Issue, IssueError> {
    change(forge, caller, repo, number, Change { state: Some((State::Closed, reason)), ..Change::default() }).await
}

/// Opens an issue again.
#[boxed]
pub async fn reopen(forge: &Forge, caller: &Caller, repo: &Repo, number: i64) -> Result<Issue, IssueError> {
    change(forge, caller, repo, number, Change { state: Some((State::Open, None)), ..Change::default() }).await
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Issue, IssueError> {
    let Unit { target, title, body, change } = unit;
    let mut context = IssueContext::open(tx, target).await?;
    if title.is_some() || body.is_some() {
        text::step(tx, &mut context, title.as_ref(), body.as_deref()).await?;
    }
    if let Some(names) = &change.labels {
        label::step(tx, &context, names).await?;
    }
    if let Some(names) = &change.assignees {
        assign::step(tx, &context, names).await?;
    }
    if let Some(number) = change.milestone {
        milestone::step(tx, &mut context, number).await?;
    }
    if let Some((to, why)) = change.state {
        state::step(tx, &mut context, to, why, None).await?;
    }
    Ok(issues::by_id(tx, context.issue.id).await?.ok_or(StoreError::Missing)?)
}
