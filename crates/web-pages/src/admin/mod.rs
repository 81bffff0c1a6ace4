//! Site administration. Everyone but site admins gets 404.

mod audit;
mod delete_user;
mod events;
mod invites;
mod jobs;
mod purgatory;
mod questions;
mod sync;
mod users;

use super::Route;
use super::ask::Question;
use super::errors::Errors;
use super::frame::Frame;
use super::member::Admin;
use super::respond;
use crate::App;
use askama::Template;
use axum::response::Response;
use axum::routing::{get, post};

pub(super) fn routes() -> Vec<Route> {
    vec![
        ("/admin", get(front)),
        ("/admin/users", get(users::list)),
        ("/admin/users/{id}", get(users::show)),
        ("/admin/users/{id}/suspend", get(questions::suspend).post(users::suspend)),
        ("/admin/users/{id}/unsuspend", post(users::unsuspend)),
        ("/admin/users/{id}/give-admin", get(questions::give_admin).post(users::give_admin)),
        ("/admin/users/{id}/take-admin", get(questions::take_admin).post(users::take_admin)),
        ("/admin/users/{id}/reset-two-factor", get(questions::reset_factor).post(users::reset_factor)),
        ("/admin/users/{id}/release", get(questions::release).post(users::release)),
        ("/admin/users/{id}/delete", get(delete_user::ask).post(delete_user::delete)),
        ("/admin/invites", get(invites::show).post(invites::create)),
        ("/admin/invites/revoke", get(invites::ask_revoke).post(invites::revoke)),
        ("/admin/jobs", get(jobs::show)),
        ("/admin/jobs/retry", post(jobs::retry)),
        ("/admin/events", get(events::show)),
        ("/admin/events/settle", get(events::ask_drop).post(events::settle)),
        ("/admin/purgatory", get(purgatory::show)),
        ("/admin/sync", get(sync::show)),
        ("/admin/sync/manage", post(sync::manage)),
        ("/admin/audit", get(audit::show)),
    ]
}

#[derive(Template)]
#[template(path = "admin/ask.html")]
struct AskPage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    question: Question,
}

/// Shows a confirmation page.
fn ask(app: &App, by: &Admin, section: &'static str, question: Question) -> Response {
    let frame = Frame::new(app, &by.visitor, question.title.clone());
    respond::page(&AskPage { frame, section, errors: Errors::none(), question })
}

/// `GET /admin`
async fn front(_: Admin) -> Response {
    respond::see_other("/admin/users")
}
