//! The caller's notifications: threads, and marking them.

use super::error::ApiError;
use super::input::Input;
use super::page::Paged;
use super::repos;
use super::scoped::Who;
use super::segments::{Query, Segments};
use super::shape::{self, Notification, ThreadSubscription};
use crate::App;
use abide_core::policy::Action;
use abide_core::{RepoId, Timestamp, time};
use abide_forge::Caller;
use abide_forge::notify::{Filter, Item, State as Seen, inbox};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use std::time::Duration;
use utoipa::ToSchema;

fn instant(field: &'static str, text: &str) -> Result<Timestamp, ApiError> {
    let rule = "must be a time such as 2026-01-31T12:00:00Z";
    time::parse_rfc3339(text).ok_or_else(|| ApiError::invalid("Notification", field, "invalid", rule))
}

fn filter(query: &Query, repo: Option<RepoId>) -> Result<Filter, ApiError> {
    let is = |name: &str| query.get(name).is_some_and(|text| text.eq_ignore_ascii_case("true") || text == "1");
    let at = |name: &'static str| query.get(name).map(|text| instant(name, text)).transpose();
    Ok(Filter {
        all: is("all"),
        taking_part: is("participating"),
        since: at("since")?,
        before: at("before")?,
        repo,
        public: false,
    })
}

async fn page(app: &App, caller: &Caller, filter: Filter, paged: &Paged) -> Result<Response, ApiError> {
    let items = inbox::list(&app.forge, caller, filter, paged.page()).await?;
    let total = inbox::count(&app.forge, caller, filter).await?;
    let repos: Vec<_> = items.iter().map(|item| item.repo.clone()).collect();
    let shaped = shape::page(app, caller, &repos).await?;
    let items: Vec<_> = items.iter().zip(shaped).map(|(item, repo)| Notification::of(app, item, repo)).collect();
    Ok(paged.answer(app, &items, total))
}

pub(super) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    query: Query,
    paged: Paged,
) -> Result<Response, ApiError> {
    page(&app, &caller, filter(&query, None)?, &paged).await
}

pub(super) async fn list_of_repo(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    query: Query,
    paged: Paged,
) -> Result<Response, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoRead).await?;
    page(&app, &caller, filter(&query, Some(repo.id))?, &paged).await
}

/// Marks notifications up to `last_read_at` (default: now) as read. `read: false` changes nothing.
#[derive(Deserialize, ToSchema)]
#[schema(as = MarkNotifications)]
pub(super) struct Mark {
    last_read_at: Option<String>,
    read: Option<bool>,
}

async fn mark_until(app: &App, caller: &Caller, repo: Option<RepoId>, body: Mark) -> Result<StatusCode, ApiError> {
    let until = body.last_read_at.map(|text| instant("last_read_at", &text)).transpose()?;
    // Clients name the second in which they looked; what came within it was on their screen.
    let until = until.map(|at| at.plus(Duration::from_micros(999_999)));
    if body.read != Some(false) {
        inbox::mark_all(&app.forge, caller, repo, until).await?;
    }
    Ok(StatusCode::RESET_CONTENT)
}

pub(super) async fn mark_all(
    State(app): State<App>,
    Who(caller): Who,
    Input(body): Input<Mark>,
) -> Result<StatusCode, ApiError> {
    mark_until(&app, &caller, None, body).await
}

pub(super) async fn mark_repo(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    Input(body): Input<Mark>,
) -> Result<StatusCode, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoRead).await?;
    mark_until(&app, &caller, Some(repo.id), body).await
}

async fn found(app: &App, caller: &Caller, id: &str) -> Result<Item, ApiError> {
    Ok(inbox::show(&app.forge, caller, id).await?)
}

pub(super) async fn show(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<String>,
) -> Result<Json<Notification>, ApiError> {
    let item = found(&app, &caller, &id).await?;
    let repo = shape::one(&app, &caller, &item.repo).await?;
    Ok(Json(Notification::of(&app, &item, repo)))
}

pub(super) async fn read(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<String>,
) -> Result<StatusCode, ApiError> {
    let item = found(&app, &caller, &id).await?;
    inbox::mark(&app.forge, &caller, &item, Seen::Read).await?;
    Ok(StatusCode::RESET_CONTENT)
}

pub(super) async fn done(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<String>,
) -> Result<StatusCode, ApiError> {
    let item = found(&app, &caller, &id).await?;
    inbox::mark(&app.forge, &caller, &item, Seen::Done).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn subscription(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<String>,
) -> Result<Json<ThreadSubscription>, ApiError> {
    Ok(Json(ThreadSubscription::of(&app, &found(&app, &caller, &id).await?)))
}

/// Subscription to a thread: `ignored` mutes it.
#[derive(Deserialize, ToSchema)]
#[schema(as = ThreadSubscriptionRequest)]
pub(super) struct Subscribe {
    ignored: Option<bool>,
}

pub(super) async fn subscribe(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<String>,
    Input(body): Input<Subscribe>,
) -> Result<Json<ThreadSubscription>, ApiError> {
    let item = found(&app, &caller, &id).await?;
    inbox::set_muted(&app.forge, &caller, &item, body.ignored.unwrap_or(false)).await?;
    Ok(Json(ThreadSubscription::of(&app, &found(&app, &caller, &id).await?)))
}

pub(super) async fn unsubscribe(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<String>,
) -> Result<StatusCode, ApiError> {
    let item = found(&app, &caller, &id).await?;
    inbox::set_muted(&app.forge, &caller, &item, true).await?;
    Ok(StatusCode::NO_CONTENT)
}
