//! Collaborators of a repository. They are added at once: there are no invitations to answer.

use super::error::ApiError;
use super::input::Input;
use super::page::Paged;
use super::scoped::Who;
use super::segments::{RepoItemPath, Segments};
use super::shape::{self, Collaborator, Permission, SimpleUser};
use super::{repos, user};
use crate::App;
use abide_core::policy::Action;
use abide_core::repo::Role;
use abide_forge::repos::collaborators;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

pub(super) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    paged: Paged,
) -> Result<Response, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::CollaboratorList).await?;
    let (people, total) = collaborators::list(&app.forge, &repo, paged.page()).await?;
    let items: Vec<_> = people.iter().map(|person| Collaborator::of(&app, person)).collect();
    Ok(paged.answer(&app, &items, total))
}

/// 204 if the user is a collaborator, 404 if not.
pub(super) async fn check(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, person)): RepoItemPath,
) -> Result<StatusCode, ApiError> {
    let repo = repos::at(&app, &caller, (owner, name), Action::CollaboratorList).await?;
    let person = user::named(&app, &person).await?;
    match collaborators::role(&app.forge, &repo, person.id).await? {
        Some(_) => Ok(StatusCode::NO_CONTENT),
        None => Err(ApiError::not_found()),
    }
}

pub(super) async fn permission(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, person)): RepoItemPath,
) -> Result<Json<Permission>, ApiError> {
    let repo = repos::at(&app, &caller, (owner, name), Action::CollaboratorList).await?;
    let person = user::named(&app, &person).await?;
    let role = collaborators::role(&app.forge, &repo, person.id).await?;
    Ok(Json(Permission {
        permission: shape::legacy_permission(role),
        role_name: role.map_or("none", Role::as_str),
        user: SimpleUser::of(&app.forge, &person),
    }))
}

/// The new role: `read`, `triage`, `write`, `maintain`, `admin`, or GitHub's older `pull` and `push`.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewRole)]
pub(super) struct Set {
    permission: Option<String>,
}

pub(super) async fn set(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, person)): RepoItemPath,
    Input(body): Input<Set>,
) -> Result<StatusCode, ApiError> {
    let repo = repos::at(&app, &caller, (owner, name), Action::CollaboratorManage).await?;
    let person = user::named(&app, &person).await?;
    collaborators::set(&app.forge, &caller, &repo, &person, role(body.permission.as_deref())?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Accepts the roles of this API and GitHub's older `pull` and `push`.
fn role(word: Option<&str>) -> Result<Role, ApiError> {
    match word {
        None | Some("push") => Ok(Role::Write),
        Some("pull") => Ok(Role::Read),
        Some(word) => word.parse().map_err(|error: abide_core::words::UnknownWord| {
            ApiError::invalid("Collaborator", "permission", "invalid", error.to_string())
        }),
    }
}

pub(super) async fn remove(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, name, person)): RepoItemPath,
) -> Result<StatusCode, ApiError> {
    let repo = repos::at(&app, &caller, (owner, name), Action::RepoRead).await?;
    let person = user::named(&app, &person).await?;
    collaborators::remove(&app.forge, &caller, &repo, &person).await?;
    Ok(StatusCode::NO_CONTENT)
}
