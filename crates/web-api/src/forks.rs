//! Forks of a repository.

use super::error::ApiError;
use super::input::Input;
use super::page::Paged;
use super::repos;
use super::scoped::Who;
use super::segments::Segments;
use super::shape;
use crate::App;
use abide_core::policy::Action;
use abide_forge::repos::fork;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use utoipa::ToSchema;

pub(super) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    paged: Paged,
) -> Result<Response, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoRead).await?;
    let (forks, total) = fork::list(&app.forge, &caller, &repo, paged.page()).await?;
    Ok(paged.answer(&app, &shape::page(&app, &caller, &forks).await?, total))
}

/// Options of a new fork.
#[derive(Deserialize, ToSchema)]
#[schema(as = ForkRequest)]
pub(super) struct Create {
    /// Default: the name of the source.
    name: Option<String>,
    default_branch_only: Option<bool>,
}

/// Responds when the fork is complete. The status is 202, because GitHub forks in the background.
pub(super) async fn create(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    Input(body): Input<Create>,
) -> Result<Response, ApiError> {
    let source = repos::at(&app, &caller, slug, Action::ForkCreate).await?;
    let typed = body.name.clone();
    let request = fork::Request { name: body.name, default_branch_only: body.default_branch_only.unwrap_or(false) };
    let forked = fork::fork(&app.forge, &caller, &source, request).await?;
    let shape = shape::one(&app, &caller, &forked.repo).await?;
    let notice = repos::notice(forked.replaced, typed.as_deref(), &forked.repo.name);
    Ok((StatusCode::ACCEPTED, notice, Json(shape)).into_response())
}
