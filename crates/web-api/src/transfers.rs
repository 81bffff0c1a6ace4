//! Offers to hand a repository over, and the answers to them.

use super::error::ApiError;
use super::input::Input;
use super::page::Paged;
use super::repos;
use super::scoped::Who;
use super::segments::Segments;
use super::shape::Transfer;
use crate::App;
use abide_core::policy::Action;
use abide_core::transfer::Answer;
use abide_forge::Caller;
use abide_forge::repos::transfer;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

/// Recipient of a transfer.
#[derive(Deserialize, ToSchema)]
#[schema(as = TransferRequest)]
pub(super) struct Offer {
    new_owner: String,
    /// The current name, if given: a transfer cannot rename the repository.
    new_name: Option<String>,
}

pub(super) async fn offer(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    Input(body): Input<Offer>,
) -> Result<(StatusCode, Json<Transfer>), ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoTransfer).await?;
    if body.new_name.is_some_and(|name| !name.eq_ignore_ascii_case(repo.name.as_str())) {
        let rule = "a transfer cannot rename the repository; rename it before or after the transfer";
        return Err(ApiError::invalid("Repository", "new_name", "unprocessable", rule));
    }
    let offer = transfer::offer(&app.forge, &caller, &repo, &body.new_owner).await?;
    Ok((StatusCode::ACCEPTED, Json(Transfer::of(&app, &caller, &offer))))
}

pub(super) async fn inbox(State(app): State<App>, Who(caller): Who, paged: Paged) -> Result<Response, ApiError> {
    let (offers, total) = transfer::inbox(&app.forge, &caller, paged.page()).await?;
    let items: Vec<_> = offers.iter().map(|offer| Transfer::of(&app, &caller, offer)).collect();
    Ok(paged.answer(&app, &items, total))
}

pub(super) async fn show(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<String>,
) -> Result<Json<Transfer>, ApiError> {
    let offer = transfer::see(&app.forge, &caller, &id).await?;
    Ok(Json(Transfer::of(&app, &caller, &offer)))
}

pub(super) async fn accept(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<String>,
) -> Result<Json<Transfer>, ApiError> {
    answer(&app, &caller, &id, Answer::Accept).await
}

pub(super) async fn decline(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<String>,
) -> Result<Json<Transfer>, ApiError> {
    answer(&app, &caller, &id, Answer::Decline).await
}

pub(super) async fn cancel(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<String>,
) -> Result<Json<Transfer>, ApiError> {
    answer(&app, &caller, &id, Answer::Cancel).await
}

async fn answer(app: &App, caller: &Caller, id: &str, answer: Answer) -> Result<Json<Transfer>, ApiError> {
    let offer = transfer::answer(&app.forge, caller, id, answer).await?;
    Ok(Json(Transfer::of(app, caller, &offer)))
}
