//! Repositories.

use super::error::ApiError;
use super::input::{Input, even_null};
use super::page::Paged;
use super::scoped::Who;
use super::segments::Segments;
use super::shape::{self, Repository};
use super::user;
use crate::App;
use abide_core::RepoName;
use abide_core::policy::Action;
use abide_core::repo::Visibility;
use abide_forge::Caller;
use abide_forge::browse::{self, Browser};
use abide_forge::repos::create::Created;
use abide_forge::repos::edit::Edited;
use abide_forge::repos::open::{RepoLocator, moved, open};
use abide_forge::repos::{Repo, create, delete, edit, list};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

/// The repository of a path, if the caller may perform the action.
pub(super) async fn at(app: &App, caller: &Caller, slug: (String, String), action: Action) -> Result<Repo, ApiError> {
    Ok(open(&app.forge, caller, &RepoLocator::slug(slug.0, slug.1), action).await?)
}

/// The repository of a path, for reading its content.
pub(super) async fn look_into(app: &App, caller: &Caller, slug: (String, String)) -> Result<Browser, ApiError> {
    let repo = at(app, caller, slug, Action::RepoRead).await?;
    Ok(browse::of_repo(&app.forge, caller, repo).await?)
}

/// The repository of a path, which must not be empty.
pub(super) async fn content_of(app: &App, caller: &Caller, slug: (String, String)) -> Result<Browser, ApiError> {
    let browser = look_into(app, caller, slug).await?;
    if browser.is_empty() { Err(ApiError::empty_repository()) } else { Ok(browser) }
}

pub(super) async fn show(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
) -> Result<Response, ApiError> {
    let locator = RepoLocator::slug(slug.0, slug.1);
    let repo = open(&app.forge, &caller, &locator, Action::RepoRead).await?;
    // Requests by an old name are redirected to the URL by id, which never changes.
    if moved(&locator, &repo) {
        return Ok(moved_to(&app.url(&format!("/api/v3/repositories/{}", repo.id))));
    }
    Ok(Json(shape::one(&app, &caller, &repo).await?).into_response())
}

fn moved_to(url: &str) -> Response {
    let body = json!({ "message": "Moved Permanently", "url": url, "documentation_url": "/api/docs" });
    (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, url)], Json(body)).into_response()
}

/// Adds `X-Abide-Notice` if the new name was a redirect to another repository, or differs from the requested spelling.
pub(super) fn notice(replaced: bool, typed: Option<&str>, name: &RepoName) -> Option<[(&'static str, String); 1]> {
    let folded = typed.is_some_and(|typed| name.folds(typed));
    let said = [
        folded.then(|| format!("repository names are lowercase; this one is named {name}")),
        replaced.then(|| "this name redirected to another repository until now".to_owned()),
    ];
    let said: Vec<_> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| [("X-Abide-Notice", said.join("; "))])
}

pub(super) async fn show_by_id(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<String>,
) -> Result<Json<Repository>, ApiError> {
    let repo = open(&app.forge, &caller, &RepoLocator::Id(id), Action::RepoRead).await?;
    Ok(Json(shape::one(&app, &caller, &repo).await?))
}

pub(super) async fn mine(State(app): State<App>, Who(caller): Who, paged: Paged) -> Result<Response, ApiError> {
    let user = user::own(&app, &caller).await?;
    let (repos, total) = list::of_member(&app.forge, user.id, paged.page()).await?;
    Ok(paged.answer(&app, &shape::page(&app, &caller, &repos).await?, total))
}

pub(super) async fn of_user(
    State(app): State<App>,
    Who(caller): Who,
    Segments(name): Segments<String>,
    paged: Paged,
) -> Result<Response, ApiError> {
    let user = user::named(&app, &name).await?;
    let (repos, total) = list::of_owner(&app.forge, &caller, user.id, paged.page()).await?;
    Ok(paged.answer(&app, &shape::page(&app, &caller, &repos).await?, total))
}

/// A new repository. `license_template` and `gitignore_template` are keys such as `mit` and `Rust`.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewRepository)]
pub(super) struct Create {
    name: String,
    description: Option<String>,
    private: Option<bool>,
    visibility: Option<String>,
    default_branch: Option<String>,
    #[serde(default)]
    auto_init: bool,
    license_template: Option<String>,
    gitignore_template: Option<String>,
}

pub(super) async fn create(
    State(app): State<App>,
    Who(caller): Who,
    Input(body): Input<Create>,
) -> Result<Response, ApiError> {
    let typed = body.name.clone();
    let request = create::Request {
        name: body.name,
        description: body.description.unwrap_or_default(),
        visibility: visibility(body.visibility, body.private)?.unwrap_or(Visibility::Public),
        default_branch: body.default_branch,
        init: Some(create::Init {
            readme: body.auto_init,
            licence: body.license_template,
            gitignore: body.gitignore_template,
        }),
    };
    let Created { repo, replaced } = create::create(&app.forge, &caller, request).await?;
    let notice = notice(replaced, Some(&typed), &repo.name);
    Ok((StatusCode::CREATED, notice, Json(shape::one(&app, &caller, &repo).await?)).into_response())
}

/// Fields to change; a missing field stays as it is.
#[derive(Deserialize, ToSchema)]
#[schema(as = RepositoryChanges)]
pub(super) struct Edit {
    name: Option<String>,
    #[serde(default, deserialize_with = "even_null")]
    #[schema(value_type = Option<String>)]
    description: Option<Option<String>>,
    private: Option<bool>,
    visibility: Option<String>,
    default_branch: Option<String>,
    archived: Option<bool>,
}

pub(super) async fn edit(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    Input(body): Input<Edit>,
) -> Result<Response, ApiError> {
    let repo = at(&app, &caller, slug, Action::RepoRead).await?;
    let typed = body.name.clone();
    let request = edit::Request {
        description: body.description.map(Option::unwrap_or_default),
        default_branch: body.default_branch,
        name: body.name,
        archived: body.archived,
        visibility: visibility(body.visibility, body.private)?,
    };
    let Edited { repo, replaced } = edit::edit(&app.forge, &caller, &repo, request).await?;
    let notice = notice(replaced, typed.as_deref(), &repo.name);
    Ok((notice, Json(shape::one(&app, &caller, &repo).await?)).into_response())
}

/// `visibility` replaces the older `private`; if both are given, `visibility` wins.
fn visibility(word: Option<String>, private: Option<bool>) -> Result<Option<Visibility>, ApiError> {
    match (word, private) {
        (Some(word), _) => word.parse().map(Some).map_err(|error: abide_core::words::UnknownWord| {
            ApiError::invalid("Repository", "visibility", "invalid", error.to_string())
        }),
        (None, Some(true)) => Ok(Some(Visibility::Private)),
        (None, Some(false)) => Ok(Some(Visibility::Public)),
        (None, None) => Ok(None),
    }
}

pub(super) async fn delete(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let repo = at(&app, &caller, slug, Action::RepoDelete).await?;
    delete::delete(&app.forge, &caller, &repo).await?;
    Ok(StatusCode::NO_CONTENT)
}
