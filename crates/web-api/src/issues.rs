//! Issues of a repository, and those that concern someone.

use super::error::ApiError;
use super::input::{Input, InputOrList, even_null};
use super::page::Paged;
use super::repos;
use super::scoped::Who;
use super::segments::{Query, RepoItemPath, RepoPath, Segments};
use super::shape::{self, Issue, Label, OwnIssue, SimpleUser, TimelineEvent};
use crate::App;
use abide_core::issues::filter::Filter;
use abide_core::policy::Action;
use abide_core::{Timestamp, time};
use abide_forge::Caller;
use abide_forge::issues::change::{self, Change, Names};
use abide_forge::issues::list::{self, Wish};
use abide_forge::issues::search::{self, Concern};
use abide_forge::issues::{Reason, State as IssueState, create, show};
use abide_forge::repos::Repo;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

pub(super) async fn readable(app: &App, caller: &Caller, owner: String, name: String) -> Result<Repo, ApiError> {
    repos::at(app, caller, (owner, name), Action::RepoRead).await
}

/// The number in an address; what is none names nothing.
pub(super) fn number(text: &str) -> Result<i64, ApiError> {
    show::number_of(text).ok_or_else(ApiError::not_found)
}

async fn shaped(app: &App, repo: &Repo, issue: abide_forge::issues::Issue) -> Result<Issue, ApiError> {
    Ok(Issue::of(&app.forge, repo, &show::detail(&app.forge, issue).await?))
}

/// A query parameter that is one of several words.
pub(super) fn word<T: std::str::FromStr>(query: &Query, name: &'static str) -> Result<Option<T>, ApiError>
where
    T::Err: std::fmt::Display,
{
    let wrong = |error: T::Err| ApiError::invalid("Issue", name, "invalid", error.to_string());
    query.get(name).map(|text| text.parse().map_err(wrong)).transpose()
}

pub(super) fn since(query: &Query) -> Result<Option<Timestamp>, ApiError> {
    let rule = "must be a time such as 2026-01-31T12:00:00Z";
    let parse = |text| time::parse_rfc3339(text).ok_or_else(|| ApiError::invalid("Issue", "since", "invalid", rule));
    query.get("since").map(parse).transpose()
}

/// The other way round: the least or the oldest first.
pub(super) fn ascending(query: &Query, name: &'static str) -> Result<Option<bool>, ApiError> {
    match query.get(name) {
        None => Ok(None),
        Some("desc") => Ok(Some(false)),
        Some("asc") => Ok(Some(true)),
        Some(_) => Err(ApiError::invalid("Issue", name, "invalid", "must be asc or desc")),
    }
}

/// Filter of every list of issues: state, labels and order.
fn asked(query: &Query) -> Result<Filter, ApiError> {
    let mut filter = Filter { state: Some(IssueState::Open), ..Filter::default() };
    match query.get("state") {
        Some("all") => filter.state = None,
        Some(_) => filter.state = word(query, "state")?,
        None => {}
    }
    for label in query.get("labels").unwrap_or_default().split(',').filter(|label| !label.trim().is_empty()) {
        filter.only_label(label);
    }
    if let Some(sort) = word(query, "sort")? {
        filter.sort = sort;
    }
    filter.ascending = ascending(query, "direction")?.unwrap_or(false);
    Ok(filter)
}

fn wish(query: &Query) -> Result<Wish, ApiError> {
    let mut filter = asked(query)?;
    if let Some(name) = query.get("creator") {
        filter.only_author(name);
    }
    if let Some(name) = query.get("assignee") {
        filter.only_assignee(name);
    }
    let mut milestone = None;
    match query.get("milestone") {
        Some(any @ ("*" | "none")) => filter.only_milestone(any),
        Some(text) => match show::number_of(text) {
            Some(number) => milestone = Some(number),
            None => {
                let rule = "must be a milestone number, * or none";
                return Err(ApiError::invalid("Issue", "milestone", "invalid", rule));
            }
        },
        None => {}
    }
    Ok(Wish { filter, milestone, since: since(query)? })
}

/// The issues that concern the caller, wherever they are.
pub(super) async fn mine(
    State(app): State<App>,
    Who(caller): Who,
    paged: Paged,
    query: Query,
) -> Result<Response, ApiError> {
    concerning(&app, &caller, &paged, &query, false).await
}

/// The same in repositories that the caller owns or collaborates on.
pub(super) async fn mine_at_home(
    State(app): State<App>,
    Who(caller): Who,
    paged: Paged,
    query: Query,
) -> Result<Response, ApiError> {
    concerning(&app, &caller, &paged, &query, true).await
}

async fn concerning(
    app: &App,
    caller: &Caller,
    paged: &Paged,
    query: &Query,
    theirs: bool,
) -> Result<Response, ApiError> {
    let concern = word(query, "filter")?.unwrap_or(Concern::Assigned);
    let wish = search::Wish { concern, theirs, filter: asked(query)?, since: since(query)? };
    let found = search::mine(&app.forge, caller, wish, paged.page()).await?;
    let homes = shape::page(app, caller, &found.repos).await?;
    let home =
        |repo: &Repo| homes.iter().zip(&found.repos).find(|(_, at)| at.id == repo.id).map(|(home, _)| home.clone());
    let item =
        |(issue, repo): (_, &Repo)| OwnIssue { issue: Issue::of(&app.forge, repo, issue), repository: home(repo) };
    let items: Vec<_> = found.each().map(item).collect();
    Ok(paged.answer(app, &items, found.total))
}

pub(super) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name)): RepoPath,
    paged: Paged,
    query: Query,
) -> Result<Response, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    let (found, total) = list::list(&app.forge, &repo, &wish(&query)?, paged.page()).await?;
    let items: Vec<_> =
        show::detailed(&app.forge, found).await?.iter().map(|issue| Issue::of(&app.forge, &repo, issue)).collect();
    Ok(paged.answer(&app, &items, total))
}

/// A label by its name, or the label itself.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
pub(super) enum LabelRef {
    Name(String),
    Label { name: String },
}

impl From<LabelRef> for String {
    fn from(label: LabelRef) -> Self {
        match label {
            LabelRef::Name(name) | LabelRef::Label { name } => name,
        }
    }
}

fn names(labels: Vec<LabelRef>) -> Vec<String> {
    labels.into_iter().map(String::from).collect()
}

/// A new issue. Labels, assignees and milestone of a caller without the triage role are ignored.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewIssue)]
pub(super) struct Create {
    title: String,
    body: Option<String>,
    #[serde(default)]
    labels: Vec<LabelRef>,
    #[serde(default)]
    assignees: Vec<String>,
    assignee: Option<String>,
    milestone: Option<i64>,
}

pub(super) async fn open(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name)): RepoPath,
    Input(body): Input<Create>,
) -> Result<(StatusCode, Json<Issue>), ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    let mut assignees = body.assignees;
    assignees.extend(body.assignee);
    let request = create::Request {
        title: body.title,
        body: body.body.unwrap_or_default(),
        labels: names(body.labels),
        assignees,
        milestone: body.milestone,
    };
    let issue = create::create(&app.forge, &caller, &repo, request).await?;
    Ok((StatusCode::CREATED, Json(shaped(&app, &repo, issue).await?)))
}

pub(super) async fn show(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, number)): RepoItemPath,
) -> Result<Json<Issue>, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    let issue = show::show(&app.forge, &repo, &number).await?;
    Ok(Json(shaped(&app, &repo, issue).await?))
}

/// Fields of an issue to change.
#[derive(Deserialize, ToSchema)]
#[schema(as = IssueEdit)]
pub(super) struct Edit {
    title: Option<String>,
    #[serde(default, deserialize_with = "even_null")]
    body: Option<Option<String>>,
    /// `open` or `closed`.
    state: Option<String>,
    /// `completed` or `not_planned` for a closed issue, `reopened` for an open one.
    state_reason: Option<String>,
    labels: Option<Vec<LabelRef>>,
    assignees: Option<Vec<String>>,
    #[serde(default, deserialize_with = "even_null")]
    assignee: Option<Option<String>>,
    #[serde(default, deserialize_with = "even_null")]
    milestone: Option<Option<i64>>,
}

fn parsed<T>(text: &str, field: &'static str) -> Result<T, ApiError>
where
    T: std::str::FromStr<Err = abide_core::words::UnknownWord>,
{
    text.parse().map_err(|error: T::Err| ApiError::invalid("Issue", field, "invalid", error.to_string()))
}

impl Edit {
    fn change(self) -> Result<Change, ApiError> {
        let reason: Option<Reason> = self.state_reason.map(|text| parsed(&text, "state_reason")).transpose()?;
        let state = match self.state {
            Some(text) => Some((parsed(&text, "state")?, reason)),
            // A reason alone is another one for what is closed already.
            None => reason.filter(|reason| *reason != Reason::Reopened).map(|_| (IssueState::Closed, reason)),
        };
        let single = self.assignee.map(|name| name.into_iter().filter(|name| !name.is_empty()).collect());
        Ok(Change {
            title: self.title,
            body: self.body.map(Option::unwrap_or_default),
            state,
            labels: self.labels.map(|labels| Names::Set(names(labels))),
            assignees: self.assignees.or(single).map(Names::Set),
            milestone: self.milestone,
        })
    }
}

pub(super) async fn edit(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, at)): RepoItemPath,
    Input(body): Input<Edit>,
) -> Result<Json<Issue>, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    changed(&app, &caller, &repo, &at, body.change()?).await
}

async fn changed(app: &App, caller: &Caller, repo: &Repo, at: &str, to: Change) -> Result<Json<Issue>, ApiError> {
    let issue = change::change(&app.forge, caller, repo, number(at)?, to).await?;
    Ok(Json(shaped(app, repo, issue).await?))
}

pub(super) async fn timeline(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, number)): RepoItemPath,
    paged: Paged,
) -> Result<Response, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    let issue = show::show(&app.forge, &repo, &number).await?;
    let (entries, total) = show::timeline(&app.forge, &caller, &issue, paged.page()).await?;
    let items: Vec<_> = entries.iter().map(|entry| TimelineEvent::of(&app, &repo, issue.number, entry)).collect();
    Ok(paged.answer(&app, &items, total))
}

pub(super) async fn events(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, number)): RepoItemPath,
    paged: Paged,
) -> Result<Response, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    let issue = show::show(&app.forge, &repo, &number).await?;
    let (entries, total) = show::changes(&app.forge, &caller, &issue, paged.page()).await?;
    let items: Vec<_> = entries.iter().map(|entry| TimelineEvent::of(&app, &repo, issue.number, entry)).collect();
    Ok(paged.answer(&app, &items, total))
}

/// Labels by their names: a list, or an object that holds one.
#[derive(Deserialize, ToSchema)]
#[schema(as = LabelNames)]
pub(super) struct LabelNames {
    #[serde(default)]
    labels: Vec<LabelRef>,
}

impl From<Vec<LabelRef>> for LabelNames {
    fn from(labels: Vec<LabelRef>) -> Self {
        Self { labels }
    }
}

pub(super) async fn labels(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, number)): RepoItemPath,
    paged: Paged,
) -> Result<Response, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    let issue = show::show(&app.forge, &repo, &number).await?;
    let labels = show::detail(&app.forge, issue).await?.labels;
    let items: Vec<_> = paged.part(&labels).iter().map(|label| Label::of(&app.forge, &repo, label)).collect();
    Ok(paged.answer(&app, &items, labels.len() as i64))
}

async fn relabel(
    app: &App,
    caller: &Caller,
    (owner, name, at): (String, String, String),
    to: Names,
) -> Result<Json<Vec<Label>>, ApiError> {
    let repo = readable(app, caller, owner, name).await?;
    let to = Change { labels: Some(to), ..Change::default() };
    let issue = change::change(&app.forge, caller, &repo, number(&at)?, to).await?;
    let labels = show::detail(&app.forge, issue).await?.labels;
    Ok(Json(labels.iter().map(|label| Label::of(&app.forge, &repo, label)).collect()))
}

pub(super) async fn add_labels(
    State(app): State<App>,
    Who(caller): Who,
    Segments(address): RepoItemPath,
    InputOrList(body, ..): InputOrList<LabelNames, LabelRef>,
) -> Result<Json<Vec<Label>>, ApiError> {
    relabel(&app, &caller, address, Names::Add(names(body.labels))).await
}

pub(super) async fn set_labels(
    State(app): State<App>,
    Who(caller): Who,
    Segments(address): RepoItemPath,
    InputOrList(body, ..): InputOrList<LabelNames, LabelRef>,
) -> Result<Json<Vec<Label>>, ApiError> {
    relabel(&app, &caller, address, Names::Set(names(body.labels))).await
}

pub(super) async fn clear_labels(
    State(app): State<App>,
    Who(caller): Who,
    Segments(address): RepoItemPath,
) -> Result<StatusCode, ApiError> {
    relabel(&app, &caller, address, Names::Set(Vec::new())).await.map(|_| StatusCode::NO_CONTENT)
}

pub(super) async fn remove_label(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, at, label)): Segments<(String, String, String, String)>,
) -> Result<Json<Vec<Label>>, ApiError> {
    relabel(&app, &caller, (owner, name, at), Names::Remove(vec![label])).await
}

/// User names of assignees.
#[derive(Deserialize, ToSchema)]
#[schema(as = AssigneeNames)]
pub(super) struct AssigneeNames {
    #[serde(default)]
    assignees: Vec<String>,
}

pub(super) async fn assign(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, at)): RepoItemPath,
    Input(body): Input<AssigneeNames>,
) -> Result<(StatusCode, Json<Issue>), ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    let to = Change { assignees: Some(Names::Add(body.assignees)), ..Change::default() };
    Ok((StatusCode::CREATED, changed(&app, &caller, &repo, &at, to).await?))
}

pub(super) async fn unassign(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, at)): RepoItemPath,
    Input(body): Input<AssigneeNames>,
) -> Result<Json<Issue>, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    let to = Change { assignees: Some(Names::Remove(body.assignees)), ..Change::default() };
    changed(&app, &caller, &repo, &at, to).await
}

pub(super) async fn assignable(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name)): RepoPath,
    paged: Paged,
) -> Result<Response, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    let (people, total) = show::assignable(&app.forge, &repo, paged.page()).await?;
    let items: Vec<SimpleUser> = people.iter().map(|found| SimpleUser::assignee(&app.forge, found)).collect();
    Ok(paged.answer(&app, &items, total))
}

pub(super) async fn is_assignable(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, user)): RepoItemPath,
) -> Result<StatusCode, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    match show::is_assignable(&app.forge, &repo, &user).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::not_found()),
    }
}
