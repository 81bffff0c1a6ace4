//! Shapes for site administrators.

use super::{SimpleUser, time};
use crate::App;
use abide_forge::accounts::admin::UserRow;
use abide_forge::jobs;
use serde::Serialize;
use utoipa::ToSchema;

/// An account with the fields that only site administrators see.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct AdminUser {
    #[serde(flatten)]
    simple: SimpleUser,
    name: Option<String>,
    email: Option<String>,
    /// Number of repositories that the account owns, private ones included.
    owned_repos: i64,
    created_at: String,
    updated_at: String,
    suspended_at: Option<String>,
}

impl AdminUser {
    pub(crate) fn of(app: &App, UserRow { user, repos }: &UserRow) -> Self {
        Self {
            simple: SimpleUser::of(&app.forge, user),
            name: user.display_name.clone(),
            email: user.email.clone(),
            owned_repos: *repos,
            created_at: time(user.created_at),
            updated_at: time(user.updated_at),
            suspended_at: user.suspended_at.map(time),
        }
    }
}

/// A background job. Its payload is not shown, because a queued mail can contain a link that signs in.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Job {
    id: i64,
    kind: String,
    /// `waiting`, `running`, `done` or `failed`.
    state: String,
    /// Jobs with a smaller number run first.
    priority: i64,
    attempts: i64,
    max_attempts: i64,
    last_error: Option<String>,
    run_at: String,
    created_at: String,
    finished_at: Option<String>,
}

impl Job {
    pub(crate) fn of(job: &jobs::Job) -> Self {
        Self {
            id: job.id,
            kind: job.kind.clone(),
            state: job.state.clone(),
            priority: job.priority,
            attempts: job.attempts,
            max_attempts: job.max_attempts,
            last_error: job.last_error.clone(),
            run_at: time(job.run_at),
            created_at: time(job.created_at),
            finished_at: job.finished_at.map(time),
        }
    }
}
