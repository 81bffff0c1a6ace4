//! The caller's SSH keys.

use super::error::ApiError;
use super::input::Input;
use super::page::Paged;
use super::scoped::Who;
use super::segments::Segments;
use super::shape::Key;
use super::user;
use crate::App;
use abide_forge::accounts::ssh_keys;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

pub(super) async fn list(State(app): State<App>, Who(caller): Who, paged: Paged) -> Result<Response, ApiError> {
    let me = user::own(&app, &caller).await?;
    let page = paged.page();
    let (keys, total) = ssh_keys::list(&app.forge, me.id, page.limit, page.offset).await?;
    let items: Vec<_> = keys.iter().map(|key| Key::of(&app, key)).collect();
    Ok(paged.answer(&app, &items, total))
}

/// A new SSH key.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewKey)]
pub(super) struct Add {
    #[serde(default)]
    title: String,
    key: String,
}

pub(super) async fn add(
    State(app): State<App>,
    Who(caller): Who,
    Input(body): Input<Add>,
) -> Result<(StatusCode, Json<Key>), ApiError> {
    let me = user::own(&app, &caller).await?;
    let key = ssh_keys::add(&app.forge, &caller, me.id, &body.title, &body.key).await?;
    Ok((StatusCode::CREATED, Json(Key::of(&app, &key))))
}

pub(super) async fn show(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<i64>,
) -> Result<Json<Key>, ApiError> {
    let me = user::own(&app, &caller).await?;
    let key = ssh_keys::get(&app.forge, me.id, id).await?.ok_or_else(ApiError::not_found)?;
    Ok(Json(Key::of(&app, &key)))
}

pub(super) async fn remove(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<i64>,
) -> Result<StatusCode, ApiError> {
    let me = user::own(&app, &caller).await?;
    match ssh_keys::remove(&app.forge, &caller, me.id, id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::not_found()),
    }
}
