//! The site's administration. To everyone who does not administer it, none of these pages exist.

mod audit;
mod delete_user;
mod events;
mod invites;
mod jobs;
mod purgatory;
mod users;

use super::Route;
use super::member::Admin;
use super::respond;
use axum::response::Response;
use axum::routing::{get, post};

pub(super) fn routes() -> Vec<Route> {
    vec![
        ("/admin", get(front)),
        ("/admin/users", get(users::list)),
        ("/admin/users/{id}", get(users::show)),
        ("/admin/users/{id}/suspend", post(users::suspend)),
        ("/admin/users/{id}/unsuspend", post(users::unsuspend)),
        ("/admin/users/{id}/give-admin", post(users::give_admin)),
        ("/admin/users/{id}/take-admin", post(users::take_admin)),
        ("/admin/users/{id}/release", post(users::release)),
        ("/admin/users/{id}/delete", get(delete_user::ask).post(delete_user::delete)),
        ("/admin/invites", get(invites::show).post(invites::create)),
        ("/admin/invites/revoke", post(invites::revoke)),
        ("/admin/jobs", get(jobs::show)),
        ("/admin/jobs/retry", post(jobs::retry)),
        ("/admin/events", get(events::show)),
        ("/admin/events/settle", post(events::settle)),
        ("/admin/purgatory", get(purgatory::show)),
        ("/admin/audit", get(audit::show)),
    ]
}

/// `GET /admin`
async fn front(_: Admin) -> Response {
    respond::see_other("/admin/users")
}
