//! The milestones of a repository.

use super::IssueError;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::open::open_locked;
use crate::{Caller, Fault, Forge};
use abide_core::event::{self, Payload};
use abide_core::issues::State;
use abide_core::issues::text::{MAX_MILESTONE_ABOUT, Title, body};
use abide_core::policy::Action;
use abide_core::{RepoId, Timestamp};
use abide_macros::boxed;
use abide_store::issues::milestones::{self, Milestone, Plan};
use abide_store::repos::{Page, Repo};
use abide_store::{StoreError, Tx};
use serde_json::json;

/// Fields of a milestone; a missing field stays as it is, or empty in a new one.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub title: Option<String>,
    pub description: Option<String>,
    pub state: Option<State>,
    /// Due date; `Some(None)` removes it.
    pub due_on: Option<Option<Timestamp>>,
}

impl Request {
    fn over(&self, before: Option<&Milestone>) -> Result<Plan, IssueError> {
        let title = match (&self.title, before) {
            (None, Some(before)) => before.title.clone(),
            (title, _) => {
                let title: Result<Title, _> = title.as_deref().unwrap_or_default().parse();
                title.map_err(IssueError::at("title"))?.to_string()
            }
        };
        let description = match &self.description {
            Some(text) => body(text, MAX_MILESTONE_ABOUT).map_err(IssueError::at("description"))?,
            None => before.map(|before| before.description.clone()).unwrap_or_default(),
        };
        let state = self.state.or(before.map(|before| before.state)).unwrap_or(State::Open);
        let due_on = self.due_on.unwrap_or_else(|| before.and_then(|before| before.due_on));
        Ok(Plan { title, description, state, due_on })
    }
}

/// A page of a repository's milestones, earliest due date first, and their total number.
#[boxed]
pub async fn list(
    forge: &Forge,
    repo: &Repo,
    state: Option<State>,
    page: Page,
) -> Result<(Vec<Milestone>, i64), Fault> {
    Ok(milestones::list(&mut *forge.store().read().await?, repo.id, state, page).await?)
}

/// The milestone with this number.
#[boxed]
pub async fn show(forge: &Forge, repo: &Repo, number: i64) -> Result<Milestone, IssueError> {
    let found = milestones::by_number(&mut *forge.store().read().await?, repo.id, number).await?;
    found.ok_or(IssueError::NotFound("milestone"))
}

struct Unit {
    caller: Caller,
    repo: RepoId,
    /// Number of the milestone to edit or remove; 0 for a new one.
    number: i64,
    request: Request,
    limit: i64,
}

/// Creates a milestone.
#[boxed]
pub async fn create(forge: &Forge, caller: &Caller, repo: &Repo, request: Request) -> Result<Milestone, IssueError> {
    let limit = forge.settings().issues.milestones;
    let unit = Unit { caller: caller.clone(), repo: repo.id, number: 0, request, limit };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Milestone, IssueError> {
    let repo = open_locked(tx, &unit.caller, unit.repo, Action::IssueModerate).await?;
    let plan = unit.request.over(None)?;
    if milestones::list(tx, repo.id, None, Page { limit: 1, offset: 0 }).await?.1 >= unit.limit {
        return Err(IssueError::TooMany { field: "milestones", limit: unit.limit });
    }
    let who = Who::from(&unit.caller);
    let number = milestones::insert(tx, repo.id, who.user, &plan).await.map_err(IssueError::taken("title"))?;
    let payload = Payload::MilestoneCreated(event::Milestone { number: Some(number) });
    emit(tx, &who, Subject::Repo(&repo), repo.visibility.into(), payload).await?;
    Ok(milestones::by_number(tx, repo.id, number).await?.ok_or(StoreError::Missing)?)
}

/// Changes a milestone.
#[boxed]
pub async fn edit(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    number: i64,
    request: Request,
) -> Result<Milestone, IssueError> {
    let unit = Unit { caller: caller.clone(), repo: repo.id, number, request, limit: 0 };
    forge.store().write(unit, |tx, unit| Box::pin(rewrite(tx, unit))).await
}

async fn rewrite(tx: &mut Tx, unit: &Unit) -> Result<Milestone, IssueError> {
    let (repo, before) = opened(tx, unit).await?;
    let plan = unit.request.over(Some(&before))?;
    milestones::update(tx, &before, &plan).await.map_err(IssueError::taken("title"))?;
    let changed = event::Milestone { number: Some(before.number) };
    let payload = match (before.state, plan.state) {
        (State::Open, State::Closed) => Payload::MilestoneClosed(changed),
        (State::Closed, State::Open) => Payload::MilestoneOpened(changed),
        (State::Open, State::Open) | (State::Closed, State::Closed) => Payload::MilestoneEdited(changed),
    };
    emit(tx, &Who::from(&unit.caller), Subject::Repo(&repo), repo.visibility.into(), payload).await?;
    Ok(milestones::by_number(tx, repo.id, unit.number).await?.ok_or(StoreError::Missing)?)
}

/// Removes a milestone; its issues stay.
#[boxed]
pub async fn remove(forge: &Forge, caller: &Caller, repo: &Repo, number: i64) -> Result<(), IssueError> {
    let unit = Unit { caller: caller.clone(), repo: repo.id, number, request: Request::default(), limit: 0 };
    forge.store().write(unit, |tx, unit| Box::pin(unwrite(tx, unit))).await
}

async fn unwrite(tx: &mut Tx, unit: &Unit) -> Result<(), IssueError> {
    let (repo, milestone) = opened(tx, unit).await?;
    milestones::remove(tx, milestone.id).await?;
    let (who, number) = (Who::from(&unit.caller), milestone.number);
    audit_repo(tx, &who, AuditAction::MilestoneDeleted, &repo, json!({ "number": number, "title": milestone.title }))
        .await?;
    let payload = Payload::MilestoneDeleted(event::Milestone { number: Some(number) });
    Ok(emit(tx, &who, Subject::Repo(&repo), repo.visibility.into(), payload).await?)
}

async fn opened(tx: &mut Tx, unit: &Unit) -> Result<(Repo, Milestone), IssueError> {
    let repo = open_locked(tx, &unit.caller, unit.repo, Action::IssueModerate).await?;
    let found = milestones::by_number(tx, repo.id, unit.number).await?;
    Ok((repo, found.ok_or(IssueError::NotFound("milestone"))?))
}
