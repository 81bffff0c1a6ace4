//! `/user` and `/users/{user}`.

use super::error::ApiError;
use super::input::{Input, even_null};
use super::page::Paged;
use super::scoped::Who;
use super::segments::Segments;
use super::shape::{self, Counts, OwnUser};
use crate::App;
use abide_core::UserName;
use abide_forge::Caller;
use abide_forge::accounts::{self, User, emails, profile};
use abide_forge::attention::follow;
use abide_forge::repos::{Page, list};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

/// The account with a name or nostr key; 404 for other texts.
pub(super) async fn named(app: &App, name: &str) -> Result<User, ApiError> {
    let found = match name.parse::<UserName>() {
        Ok(name) => accounts::find(&app.forge, &name).await?,
        Err(_) => accounts::nostr::find(&app.forge, name).await?,
    };
    found.ok_or_else(ApiError::not_found)
}

/// The caller's own account. The route guard admits only accounts.
pub(super) async fn own(app: &App, caller: &Caller) -> Result<User, ApiError> {
    let id = caller.user_id().ok_or_else(ApiError::login_required)?;
    accounts::by_id(&app.forge, id).await?.ok_or_else(ApiError::not_found)
}

async fn counts(app: &App, user: &User) -> Result<Counts, ApiError> {
    let stranger = Caller::anonymous(None);
    let (_, public_repos) = list::of_owner(&app.forge, &stranger, user.id, Page { limit: 1, offset: 0 }).await?;
    let (followers, following) = follow::counts(&app.forge, user.id).await?;
    Ok(Counts { public_repos, followers, following })
}

pub(super) async fn me(State(app): State<App>, Who(caller): Who) -> Result<Json<OwnUser>, ApiError> {
    let user = own(&app, &caller).await?;
    let counts = counts(&app, &user).await?;
    Ok(Json(OwnUser::of(&app, &user, counts)))
}

/// Fields to change; a missing field stays as it is, and `null` empties it.
#[derive(Deserialize, ToSchema)]
#[schema(as = ProfileChanges)]
pub(super) struct Edit {
    #[serde(default, deserialize_with = "even_null")]
    #[schema(value_type = Option<String>)]
    name: Option<Option<String>>,
    #[serde(default, deserialize_with = "even_null")]
    #[schema(value_type = Option<String>)]
    bio: Option<Option<String>>,
    #[serde(default, deserialize_with = "even_null")]
    #[schema(value_type = Option<String>)]
    blog: Option<Option<String>>,
    #[serde(default, deserialize_with = "even_null")]
    #[schema(value_type = Option<String>)]
    location: Option<Option<String>>,
}

pub(super) async fn edit(
    State(app): State<App>,
    Who(caller): Who,
    Input(body): Input<Edit>,
) -> Result<Json<OwnUser>, ApiError> {
    let before = own(&app, &caller).await?;
    let or = |given: Option<Option<String>>, kept: String| given.map_or(kept, Option::unwrap_or_default);
    let request = profile::Request {
        display_name: or(body.name, before.display_name.unwrap_or_default()),
        bio: or(body.bio, before.bio),
        website: or(body.blog, before.website),
        location: or(body.location, before.location),
    };
    profile::edit(&app.forge, &caller, request).await?;
    me(State(app), Who(caller)).await
}

/// E-mail addresses cannot be changed over the API: a leaked token must not be enough to take over an account.
pub(super) async fn emails(State(app): State<App>, Who(caller): Who, paged: Paged) -> Result<Response, ApiError> {
    let user = own(&app, &caller).await?;
    let all = emails::of_user(&app.forge, user.id).await?;
    let page = paged.page();
    let shown = all.iter().skip(page.offset as usize).take(page.limit as usize);
    let items: Vec<_> = shown.map(shape::Email::of).collect();
    Ok(paged.answer(&app, &items, all.len() as i64))
}

pub(super) async fn show(
    State(app): State<App>,
    Segments(name): Segments<String>,
) -> Result<Json<shape::User>, ApiError> {
    let user = named(&app, &name).await?;
    let counts = counts(&app, &user).await?;
    Ok(Json(shape::User::of(&app, &user, counts)))
}
