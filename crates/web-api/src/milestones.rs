//! The milestones of a repository.

use super::error::ApiError;
use super::input::{Input, even_null};
use super::issues::{number, word};
use super::page::Paged;
use super::repos;
use super::scoped::Who;
use super::segments::{Query, RepoItemPath, RepoPath, Segments};
use super::shape::Milestone;
use crate::App;
use abide_core::policy::Action;
use abide_core::{Timestamp, time};
use abide_forge::issues::State as MilestoneState;
use abide_forge::issues::milestones::{self, Request};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

pub(super) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): RepoPath,
    paged: Paged,
    query: Query,
) -> Result<Response, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoRead).await?;
    let state = match query.get("state") {
        Some("all") => None,
        _ => Some(word(&query, "state")?.unwrap_or(MilestoneState::Open)),
    };
    let (found, total) = milestones::list(&app.forge, &repo, state, paged.page()).await?;
    let items: Vec<_> = found.iter().map(|milestone| Milestone::of(&app.forge, &repo, milestone)).collect();
    Ok(paged.answer(&app, &items, total))
}

/// Fields of a milestone. A new one needs a title.
#[derive(Deserialize, ToSchema)]
#[schema(as = MilestoneEdit)]
pub(super) struct Plan {
    title: Option<String>,
    description: Option<String>,
    /// `open` or `closed`.
    state: Option<String>,
    /// `2026-01-31T12:00:00Z`, or null for no due date.
    #[serde(default, deserialize_with = "even_null")]
    due_on: Option<Option<String>>,
}

impl Plan {
    fn request(self) -> Result<Request, ApiError> {
        let wrong = |field: &'static str, rule: String| ApiError::invalid("Milestone", field, "invalid", rule);
        let state = self.state.map(|text| {
            text.parse().map_err(|error: abide_core::words::UnknownWord| wrong("state", error.to_string()))
        });
        let due = |text: String| -> Result<Timestamp, ApiError> {
            time::parse_rfc3339(&text)
                .ok_or_else(|| wrong("due_on", "must be a time such as 2026-01-31T12:00:00Z".to_owned()))
        };
        Ok(Request {
            title: self.title,
            description: self.description,
            state: state.transpose()?,
            due_on: self.due_on.map(|text| text.map(due).transpose()).transpose()?,
        })
    }
}

pub(super) async fn create(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): RepoPath,
    Input(body): Input<Plan>,
) -> Result<(StatusCode, Json<Milestone>), ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoRead).await?;
    let milestone = milestones::create(&app.forge, &caller, &repo, body.request()?).await?;
    Ok((StatusCode::CREATED, Json(Milestone::of(&app.forge, &repo, &milestone))))
}

pub(super) async fn show(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, at)): RepoItemPath,
) -> Result<Json<Milestone>, ApiError> {
    let repo = repos::at(&app, &caller, (owner, name), Action::RepoRead).await?;
    let milestone = milestones::show(&app.forge, &repo, number(&at)?).await?;
    Ok(Json(Milestone::of(&app.forge, &repo, &milestone)))
}

pub(super) async fn edit(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, at)): RepoItemPath,
    Input(body): Input<Plan>,
) -> Result<Json<Milestone>, ApiError> {
    let repo = repos::at(&app, &caller, (owner, name), Action::RepoRead).await?;
    let milestone = milestones::edit(&app.forge, &caller, &repo, number(&at)?, body.request()?).await?;
    Ok(Json(Milestone::of(&app.forge, &repo, &milestone)))
}

pub(super) async fn remove(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, at)): RepoItemPath,
) -> Result<StatusCode, ApiError> {
    let repo = repos::at(&app, &caller, (owner, name), Action::RepoRead).await?;
    milestones::remove(&app.forge, &caller, &repo, number(&at)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
