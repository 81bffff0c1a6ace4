//! Opening an issue.

use super::change::Names;
use super::context::{IssueContext, throttle, writer};
use super::involve::{involved, listen};
use super::{IssueError, assign, label, milestone};
use crate::emit::Who;
use crate::open::{may, open_locked};
use crate::{Caller, Forge, IssueSettings};
use abide_core::RepoId;
use abide_core::event::{IssueOpened, Origin, Payload};
use abide_core::issues::text::{self, Title};
use abide_core::policy::Action;
use abide_macros::boxed;
use abide_store::issues::people::Why;
use abide_store::issues::{self, Issue};
use abide_store::repos::Repo;
use abide_store::{StoreError, Tx};

/// Fields of a new issue. Labels, assignees and milestone are ignored for users who may not triage.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub title: String,
    /// Markdown.
    pub body: String,
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    /// Number of a milestone.
    pub milestone: Option<i64>,
}

struct Unit {
    caller: Caller,
    repo: RepoId,
    title: Title,
    body: String,
    request: Request,
    settings: IssueSettings,
}

/// Opens an issue.
#[boxed]
pub async fn create(forge: &Forge, caller: &Caller, repo: &Repo, request: Request) -> Result<Issue, IssueError> {
    let settings = forge.settings().issues.clone();
    let title = request.title.parse().map_err(IssueError::at("title"))?;
    let body = text::body(&request.body, settings.body_bytes).map_err(IssueError::at("body"))?;
    let unit = Unit { caller: caller.clone(), repo: repo.id, title, body, request, settings };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Issue, IssueError> {
    let repo = open_locked(tx, &unit.caller, unit.repo, Action::IssueCreate).await?;
    let author = writer(&unit.caller)?;
    throttle(tx, "issue", unit.settings.creation(), author).await?;
    let (id, _) = issues::insert(tx, repo.id, author, unit.title.as_str(), &unit.body).await?;
    let issue = issues::by_id(tx, id).await?.ok_or(StoreError::Missing)?;
    let (caller, who) = (unit.caller.clone(), Who::from(&unit.caller));
    let mut context = IssueContext { caller, who, repo, issue, settings: unit.settings.clone() };
    involved(tx, author, &context.repo, &context.issue, Why::Author).await?;
    let mentions = listen(tx, &context, "", &unit.body).await?;
    let opened = IssueOpened { issue: context.issue_ref(), mentions };
    context.emit(tx, Payload::IssueCreated(Origin::Local(opened))).await?;
    if may(&context.caller, &context.repo, Action::IssueTriage) {
        let request = &unit.request;
        label::step(tx, &context, &Names::Add(request.labels.clone())).await?;
        assign::step(tx, &context, &Names::Add(request.assignees.clone())).await?;
        if let Some(number) = request.milestone {
            milestone::step(tx, &mut context, Some(number)).await?;
        }
    }
    Ok(issues::by_id(tx, id).await?.ok_or(StoreError::Missing)?)
}
