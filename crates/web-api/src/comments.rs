//! Comments on issues.

use super::error::ApiError;
use super::input::Input;
use super::issues::{ascending, number, readable, since};
use super::page::Paged;
use super::scoped::Who;
use super::segments::{Query, RepoItemPath, Segments};
use super::shape::IssueComment;
use crate::App;
use abide_forge::issues::{Order, comment, show as issue};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

pub(super) async fn of_repo(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name)): Segments<(String, String)>,
    paged: Paged,
    query: Query,
) -> Result<Response, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    let order = match query.get("sort") {
        None | Some("created") => Order::Created,
        Some("updated") => Order::Updated,
        Some(_) => return Err(ApiError::invalid("IssueComment", "sort", "invalid", "must be created or updated")),
    };
    let order = (order, ascending(&query, "direction")?.unwrap_or(true));
    let (found, total) = issue::comments_of_repo(&app.forge, &repo, since(&query)?, order, paged.page()).await?;
    let items: Vec<_> = found.iter().map(|comment| IssueComment::of(&app.forge, &repo, comment)).collect();
    Ok(paged.answer(&app, &items, total))
}

pub(super) async fn of_issue(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, number)): RepoItemPath,
    paged: Paged,
    query: Query,
) -> Result<Response, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    let issue = issue::show(&app.forge, &repo, &number).await?;
    let (found, total) = issue::comments(&app.forge, &issue, since(&query)?, paged.page()).await?;
    let items: Vec<_> = found.iter().map(|comment| IssueComment::of(&app.forge, &repo, comment)).collect();
    Ok(paged.answer(&app, &items, total))
}

/// Text of a comment.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewComment)]
pub(super) struct Say {
    body: String,
}

pub(super) async fn say(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, at)): RepoItemPath,
    Input(body): Input<Say>,
) -> Result<(StatusCode, Json<IssueComment>), ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    let said = comment::add(&app.forge, &caller, &repo, number(&at)?, &body.body).await?;
    Ok((StatusCode::CREATED, Json(IssueComment::of(&app.forge, &repo, &said))))
}

pub(super) async fn show(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, id)): RepoItemPath,
) -> Result<Json<IssueComment>, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    Ok(Json(IssueComment::of(&app.forge, &repo, &comment::show(&app.forge, &repo, &id).await?)))
}

pub(super) async fn edit(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, id)): RepoItemPath,
    Input(body): Input<Say>,
) -> Result<Json<IssueComment>, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    let said = comment::edit(&app.forge, &caller, &repo, &id, &body.body).await?;
    Ok(Json(IssueComment::of(&app.forge, &repo, &said)))
}

pub(super) async fn remove(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, id)): RepoItemPath,
) -> Result<StatusCode, ApiError> {
    let repo = readable(&app, &caller, owner, name).await?;
    comment::remove(&app.forge, &caller, &repo, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
