//! `/user` and `/users/{user}`.

use super::error::ApiError;
use super::scoped::Who;
use super::segments::Segments;
use super::shape::{self, OwnUser};
use crate::App;
use abide_core::UserName;
use abide_forge::Caller;
use abide_forge::accounts::{self, User};
use abide_forge::repos::{Page, list};
use axum::Json;
use axum::extract::State;

/// The account of that name; a name that cannot be one belongs to nobody.
pub(super) async fn named(app: &App, name: &str) -> Result<User, ApiError> {
    let name: UserName = name.parse().map_err(|_| ApiError::not_found())?;
    accounts::find(&app.forge, &name).await?.ok_or_else(ApiError::not_found)
}

/// The caller's own account. The guard let in only those who have one.
pub(super) async fn own(app: &App, caller: &Caller) -> Result<User, ApiError> {
    let id = caller.user_id().ok_or_else(ApiError::login_required)?;
    accounts::by_id(&app.forge, id).await?.ok_or_else(ApiError::not_found)
}

async fn public_repos(app: &App, user: &User) -> Result<i64, ApiError> {
    let stranger = Caller::anonymous(None);
    Ok(list::of_owner(&app.forge, &stranger, user.id, Page { limit: 1, offset: 0 }).await?.1)
}

pub(super) async fn me(State(app): State<App>, Who(caller): Who) -> Result<Json<OwnUser>, ApiError> {
    let user = own(&app, &caller).await?;
    let repos = public_repos(&app, &user).await?;
    Ok(Json(OwnUser::of(&app, &user, repos)))
}

pub(super) async fn show(
    State(app): State<App>,
    Segments(name): Segments<String>,
) -> Result<Json<shape::User>, ApiError> {
    let user = named(&app, &name).await?;
    let repos = public_repos(&app, &user).await?;
    Ok(Json(shape::User::of(&app, &user, repos)))
}
