//! Watching: GitHub calls it a subscription.

use super::error::ApiError;
use super::input::Input;
use super::page::Paged;
use super::scoped::Who;
use super::segments::Segments;
use super::shape::{self, SimpleUser, Subscription};
use super::{repos, stars, user};
use crate::App;
use abide_core::WatchLevel;
use abide_core::policy::Action;
use abide_forge::Caller;
use abide_forge::attention::watch;
use abide_forge::repos::Repo;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

/// The caller's watch level. 404 if they have not chosen one; the level is then `participating`.
pub(super) async fn show(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
) -> Result<Json<Subscription>, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoRead).await?;
    chosen(&app, &caller, &repo).await
}

async fn chosen(app: &App, caller: &Caller, repo: &Repo) -> Result<Json<Subscription>, ApiError> {
    let choice = watch::choice(&app.forge, caller, repo).await?.ok_or_else(ApiError::not_found)?;
    Ok(Json(Subscription::of(app, repo, choice)))
}

/// Watch level: `level` is `all`, `participating` or `ignore`. GitHub's `subscribed` stands for `all`, its `ignored`
/// for `ignore`.
#[derive(Deserialize, ToSchema)]
#[schema(as = SubscriptionRequest)]
pub(super) struct Set {
    subscribed: Option<bool>,
    ignored: Option<bool>,
    level: Option<String>,
}

impl Set {
    fn level(&self) -> Result<WatchLevel, ApiError> {
        match self {
            Self { level: Some(word), .. } => word.parse().map_err(|error: abide_core::words::UnknownWord| {
                ApiError::invalid("Subscription", "level", "invalid", error.to_string())
            }),
            Self { ignored: Some(true), .. } => Ok(WatchLevel::Ignore),
            Self { subscribed: Some(false), .. } => Ok(WatchLevel::Participating),
            _ => Ok(WatchLevel::All),
        }
    }
}

pub(super) async fn set(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    Input(body): Input<Set>,
) -> Result<Json<Subscription>, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::WatchSet).await?;
    watch::set(&app.forge, &caller, &repo, body.level()?).await?;
    chosen(&app, &caller, &repo).await
}

pub(super) async fn clear(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::WatchSet).await?;
    watch::clear(&app.forge, &caller, &repo).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn subscribers(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    paged: Paged,
) -> Result<Response, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::WatcherList).await?;
    let people = watch::watchers(&app.forge, &caller, &repo, paged.page()).await?;
    let items: Vec<_> = people.iter().map(|person| SimpleUser::listed(&app.forge, person)).collect();
    Ok(paged.answer(&app, &items, repo.watcher_count))
}

pub(super) async fn mine(State(app): State<App>, Who(caller): Who, paged: Paged) -> Result<Response, ApiError> {
    let user = user::own(&app, &caller).await?;
    let (kept, total) = watch::of_user(&app.forge, &caller, user.id, paged.page()).await?;
    Ok(paged.answer(&app, &shape::page(&app, &caller, &stars::repos_of(&kept)).await?, total))
}
