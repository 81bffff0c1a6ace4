//! The labels of a repository.

use super::error::ApiError;
use super::input::Input;
use super::page::Paged;
use super::repos;
use super::scoped::Who;
use super::segments::{RepoItemPath, RepoPath, Segments};
use super::shape::Label;
use crate::App;
use abide_core::policy::Action;
use abide_forge::issues::labels::{self, Request};
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
) -> Result<Response, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoRead).await?;
    let (found, total) = labels::list(&app.forge, &repo, paged.page()).await?;
    let items: Vec<_> = found.iter().map(|label| Label::of(&app.forge, &repo, label)).collect();
    Ok(paged.answer(&app, &items, total))
}

/// A new label.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewLabel)]
pub(super) struct Create {
    name: String,
    /// Six hexadecimal digits.
    color: Option<String>,
    description: Option<String>,
}

pub(super) async fn create(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): RepoPath,
    Input(body): Input<Create>,
) -> Result<(StatusCode, Json<Label>), ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoRead).await?;
    let request = Request { name: Some(body.name), color: body.color, description: body.description };
    let label = labels::create(&app.forge, &caller, &repo, request).await?;
    Ok((StatusCode::CREATED, Json(Label::of(&app.forge, &repo, &label))))
}

pub(super) async fn show(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, label)): RepoItemPath,
) -> Result<Json<Label>, ApiError> {
    let repo = repos::at(&app, &caller, (owner, name), Action::RepoRead).await?;
    Ok(Json(Label::of(&app.forge, &repo, &labels::show(&app.forge, &repo, &label).await?)))
}

/// Fields of a label to change.
#[derive(Deserialize, ToSchema)]
#[schema(as = LabelEdit)]
pub(super) struct Edit {
    new_name: Option<String>,
    name: Option<String>,
    color: Option<String>,
    description: Option<String>,
}

pub(super) async fn edit(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, label)): RepoItemPath,
    Input(body): Input<Edit>,
) -> Result<Json<Label>, ApiError> {
    let repo = repos::at(&app, &caller, (owner, name), Action::RepoRead).await?;
    let request = Request { name: body.new_name.or(body.name), color: body.color, description: body.description };
    let label = labels::edit(&app.forge, &caller, &repo, &label, request).await?;
    Ok(Json(Label::of(&app.forge, &repo, &label)))
}

pub(super) async fn remove(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, label)): RepoItemPath,
) -> Result<StatusCode, ApiError> {
    let repo = repos::at(&app, &caller, (owner, name), Action::RepoRead).await?;
    labels::remove(&app.forge, &caller, &repo, &label).await?;
    Ok(StatusCode::NO_CONTENT)
}
