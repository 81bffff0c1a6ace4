//! Followers and followed users.

use super::error::ApiError;
use super::page::Paged;
use super::scoped::Who;
use super::segments::Segments;
use super::shape::SimpleUser;
use super::user;
use crate::App;
use abide_core::UserId;
use abide_forge::attention::{Person, follow};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

/// 204 if the caller follows the user, 404 if not.
pub(super) async fn check(
    State(app): State<App>,
    Who(caller): Who,
    Segments(name): Segments<String>,
) -> Result<StatusCode, ApiError> {
    let me = user::own(&app, &caller).await?;
    let other = user::named(&app, &name).await?;
    answer(follow::follows(&app.forge, me.id, other.id).await?)
}

/// 204 if one follows the other, 404 if not.
pub(super) async fn check_other(
    State(app): State<App>,
    Segments((follower, followed)): Segments<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let (follower, followed) = (user::named(&app, &follower).await?, user::named(&app, &followed).await?);
    answer(follow::follows(&app.forge, follower.id, followed.id).await?)
}

fn answer(follows: bool) -> Result<StatusCode, ApiError> {
    if follows { Ok(StatusCode::NO_CONTENT) } else { Err(ApiError::not_found()) }
}

pub(super) async fn follow(
    State(app): State<App>,
    Who(caller): Who,
    Segments(name): Segments<String>,
) -> Result<StatusCode, ApiError> {
    let other = user::named(&app, &name).await?;
    follow::follow(&app.forge, &caller, &other).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn unfollow(
    State(app): State<App>,
    Who(caller): Who,
    Segments(name): Segments<String>,
) -> Result<StatusCode, ApiError> {
    let other = user::named(&app, &name).await?;
    follow::unfollow(&app.forge, &caller, &other).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn followers(
    State(app): State<App>,
    Segments(name): Segments<String>,
    paged: Paged,
) -> Result<Response, ApiError> {
    let user = user::named(&app, &name).await?;
    list_followers(&app, user.id, &paged).await
}

pub(super) async fn following(
    State(app): State<App>,
    Segments(name): Segments<String>,
    paged: Paged,
) -> Result<Response, ApiError> {
    let user = user::named(&app, &name).await?;
    list_following(&app, user.id, &paged).await
}

pub(super) async fn my_followers(State(app): State<App>, Who(caller): Who, paged: Paged) -> Result<Response, ApiError> {
    list_followers(&app, user::own(&app, &caller).await?.id, &paged).await
}

pub(super) async fn my_following(State(app): State<App>, Who(caller): Who, paged: Paged) -> Result<Response, ApiError> {
    list_following(&app, user::own(&app, &caller).await?.id, &paged).await
}

async fn list_followers(app: &App, user: UserId, paged: &Paged) -> Result<Response, ApiError> {
    let people = follow::followers(&app.forge, user, paged.page()).await?;
    Ok(listed(app, &people, follow::counts(&app.forge, user).await?.0, paged))
}

async fn list_following(app: &App, user: UserId, paged: &Paged) -> Result<Response, ApiError> {
    let people = follow::following(&app.forge, user, paged.page()).await?;
    Ok(listed(app, &people, follow::counts(&app.forge, user).await?.1, paged))
}

fn listed(app: &App, people: &[Person], total: i64, paged: &Paged) -> Response {
    let items: Vec<_> = people.iter().map(|person| SimpleUser::listed(&app.forge, person)).collect();
    paged.answer(app, &items, total)
}
