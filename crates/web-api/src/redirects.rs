//! A repository's old names.

use super::error::ApiError;
use super::page::Paged;
use super::repos;
use super::scoped::Who;
use super::segments::{RepoItemPath, Segments};
use super::shape::Redirect;
use crate::App;
use abide_core::policy::Action;
use abide_forge::repos::redirects;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

pub(super) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    paged: Paged,
) -> Result<Response, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::AuditRead).await?;
    // The list is bounded, so each page loads all of it.
    let all: Vec<_> =
        redirects::list(&app.forge, &caller, &repo).await?.iter().map(|old| Redirect::of(&app, &repo, old)).collect();
    Ok(paged.answer(&app, paged.part(&all), all.len() as i64))
}

pub(super) async fn release(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, id)): RepoItemPath,
) -> Result<StatusCode, ApiError> {
    let repo = repos::at(&app, &caller, (owner, name), Action::RedirectRelease).await?;
    redirects::release(&app.forge, &caller, &repo, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
