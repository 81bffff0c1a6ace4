//! Site administration: lists, and actions on accounts. Everyone else gets 404.

use super::error::ApiError;
use super::keyset::Keyset;
use super::page::Paged;
use super::scoped::Who;
use super::segments::{Query, Segments};
use super::shape::{AdminUser, AuditEntry, Job};
use super::user;
use crate::App;
use abide_forge::By;
use abide_forge::accounts::admin::{self, AuditFilter};
use abide_forge::accounts::delete::{self, Remains};
use abide_forge::accounts::reset_factor;
use abide_forge::jobs::manage;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

const JOB_STATES: [&str; 4] = ["waiting", "running", "done", "failed"];

/// `GET /admin/users`
pub(super) async fn users(
    State(app): State<App>,
    Who(caller): Who,
    query: Query,
    paged: Paged,
) -> Result<Response, ApiError> {
    let by = By::admin(&caller)?;
    let (found, total) = admin::users(&app.forge, &by, query.get("q"), paged.page()).await?;
    let users: Vec<_> = found.iter().map(|found| AdminUser::of(&app, found)).collect();
    Ok(paged.answer(&app, &users, total))
}

/// `PUT /users/{user}/suspended`
pub(super) async fn suspend(
    State(app): State<App>,
    Who(caller): Who,
    Segments(name): Segments<String>,
) -> Result<StatusCode, ApiError> {
    By::admin(&caller)?;
    let user = user::named(&app, &name).await?;
    admin::suspend(&app.forge, &caller, user.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /users/{user}/suspended`
pub(super) async fn unsuspend(
    State(app): State<App>,
    Who(caller): Who,
    Segments(name): Segments<String>,
) -> Result<StatusCode, ApiError> {
    By::admin(&caller)?;
    let user = user::named(&app, &name).await?;
    admin::unsuspend(&app.forge, &caller, user.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /admin/users/{user}`
pub(super) async fn delete_user(
    State(app): State<App>,
    Who(caller): Who,
    Segments(name): Segments<String>,
    query: Query,
) -> Result<StatusCode, ApiError> {
    By::admin(&caller)?;
    let remains = match query.get("content") {
        None => Remains::Kept,
        Some(word) => {
            word.parse().map_err(|_| ApiError::invalid("User", "content", "invalid", "must be kept or removed"))?
        }
    };
    let user = user::named(&app, &name).await?;
    delete::delete_by_admin(&app.forge, &caller, user.id, remains).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /admin/users/{user}/two-factor`
pub(super) async fn reset_factor(
    State(app): State<App>,
    Who(caller): Who,
    Segments(name): Segments<String>,
) -> Result<StatusCode, ApiError> {
    By::admin(&caller)?;
    let user = user::named(&app, &name).await?;
    reset_factor::by_admin(&app.forge, &caller, user.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /admin/jobs`
pub(super) async fn jobs(
    State(app): State<App>,
    Who(caller): Who,
    query: Query,
    keyset: Keyset,
) -> Result<Response, ApiError> {
    let by = By::admin(&caller)?;
    let state = query.get("state");
    if state.is_some_and(|state| !JOB_STATES.contains(&state)) {
        let rule = format!("must be one of {}", JOB_STATES.join(", "));
        return Err(ApiError::invalid("Job", "state", "invalid", rule));
    }
    let jobs = manage::page(&app.forge, &by, state, keyset.before, keyset.limit()).await?;
    Ok(keyset.answer(&app, &jobs, |job| job.id, Job::of))
}

/// `POST /admin/jobs/{id}/retry`
pub(super) async fn retry(
    State(app): State<App>,
    Who(caller): Who,
    Segments(id): Segments<i64>,
) -> Result<StatusCode, ApiError> {
    let by = By::admin(&caller)?;
    if manage::retry(&app.forge, &by, id).await? {
        return Ok(StatusCode::ACCEPTED);
    }
    match manage::find(&app.forge, &by, id).await? {
        Some(job) => {
            Err(ApiError::conflict(format!("The job is {}. Only jobs that have ended can be retried.", job.state)))
        }
        None => Err(ApiError::not_found()),
    }
}

/// `GET /admin/audit`
pub(super) async fn audit(
    State(app): State<App>,
    Who(caller): Who,
    query: Query,
    keyset: Keyset,
) -> Result<Response, ApiError> {
    let by = By::admin(&caller)?;
    let asked = |name| query.get(name).map(str::to_owned);
    let filter = AuditFilter { action: asked("action"), actor: asked("actor"), repo: asked("repo") };
    let rows = admin::audit(&app.forge, &by, &filter, keyset.before, keyset.limit()).await?;
    Ok(keyset.answer(&app, &rows, |row| row.record.id, |row| AuditEntry::of(&app, row)))
}
