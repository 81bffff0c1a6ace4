//! Background jobs.

use crate::App;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Admin;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use abide_forge::jobs::{Job, manage};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

/// Jobs on the page; `abide jobs list` lists more.
const SHOWN: i64 = 100;
const STATES: [&str; 4] = ["waiting", "running", "failed", "done"];

#[derive(Template)]
#[template(path = "admin/jobs.html")]
struct JobsPage {
    frame: Frame,
    section: &'static str,
    /// State filter; empty for all.
    state: String,
    counts: Vec<(&'static str, i64)>,
    jobs: Vec<Job>,
    shown: i64,
}

/// `GET /admin/jobs`
pub(super) async fn show(State(app): State<App>, by: Admin, page_path: PagePath) -> Result<Response, Problem> {
    let state = page_path.query_text("state");
    let counts = manage::counts(&app.forge, &by.by).await?;
    let count = |state| counts.iter().find(|(name, _)| name == state).map_or(0, |(_, count)| *count);
    Ok(respond::page(&JobsPage {
        frame: Frame::new(&app, &by.visitor, "Jobs"),
        section: "jobs",
        counts: STATES.into_iter().map(|state| (state, count(state))).collect(),
        jobs: manage::list(&app.forge, &by.by, Some(&state), SHOWN).await?,
        state,
        shown: SHOWN,
    }))
}

/// `POST /admin/jobs/retry`
pub(super) async fn retry(State(app): State<App>, by: Admin, form: Form) -> Result<Response, Problem> {
    match manage::retry(&app.forge, &by.by, form.id()?).await? {
        true => Ok(respond::see_other("/admin/jobs?done=queued")),
        false => {
            Err(Problem::new(StatusCode::CONFLICT, "This job has not ended, or no longer exists. Nothing was changed."))
        }
    }
}
