//! Shapes for site administrators.

use super::{SimpleUser, time};
use crate::App;
use abide_forge::accounts::admin::UserRow;
use abide_forge::jobs;
use serde::Serialize;
use utoipa::ToSchema;

/// An account, as a site admin sees it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct AdminUser {
    #[serde(flatten)]
    simple: SimpleUser,
    name: Option<String>,
    email: Option<String>,
    /// How many repositories they own, private ones too.
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

/// Work that is done later. Its payload is not shown: a queued mail may hold a link that opens an account.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Job {
    id: i64,
    kind: String,
    /// `waiting`, `running`, `done` or `failed`.
    state: String,
    /// Smaller is more urgent.
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
