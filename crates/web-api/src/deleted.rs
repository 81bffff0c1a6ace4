//! Deleted repositories: what can be restored, and restoring it.

use super::error::ApiError;
use super::input::Input;
use super::page::Paged;
use super::repos;
use super::scoped::Who;
use super::segments::Segments;
use super::shape::{self, DeletedRepository};
use crate::App;
use abide_forge::repos::restore;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use utoipa::ToSchema;

pub(super) async fn list(State(app): State<App>, Who(caller): Who, paged: Paged) -> Result<Response, ApiError> {
    let (repos, total) = restore::list(&app.forge, &caller, paged.page()).await?;
    let shapes = shape::page(&app, &caller, &repos).await?;
    let items: Vec<_> =
        repos.iter().zip(shapes).map(|(repo, shape)| DeletedRepository::of(&app, repo, shape)).collect();
    Ok(paged.answer(&app, &items, total))
}

/// Name of the restored repository.
#[derive(Deserialize, ToSchema)]
#[schema(as = RestoreRequest)]
pub(super) struct Restore {
    /// Default: the name before the deletion.
    name: Option<String>,
}

pub(super) async fn restore(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<String>,
    Input(body): Input<Restore>,
) -> Result<Response, ApiError> {
    let typed = body.name.as_deref().filter(|typed| !typed.trim().is_empty());
    let repo = restore::restore(&app.forge, &caller, &id, typed).await?;
    let notice = repos::notice(false, typed, &repo.name);
    Ok((notice, Json(shape::one(&app, &caller, &repo).await?)).into_response())
}
