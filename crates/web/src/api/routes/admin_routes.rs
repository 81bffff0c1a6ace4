//! The routes of those who look after the site.

use crate::api::about::about;
use crate::api::scoped::Access::Logged;
use crate::api::scoped::Routes;
use crate::api::shape::{AdminUser, AuditEntry, Consumer, Job, SetAside};
use crate::api::{admin, events};
use abide_core::scope::Scope;

pub(super) fn administration() -> Routes {
    let access = Logged(Scope::Admin);
    Routes::of("Site administration")
        .get(
            "/admin/users",
            access,
            admin::users,
            about("Accounts by name").query("q", "A part of a name or address.").gives_page::<AdminUser>(),
        )
        .put(
            "/users/{user}/suspended",
            access,
            admin::suspend,
            about("Suspend an account: it is logged out, and its tokens and keys open nothing")
                .takes_nothing()
                .gives_nothing(),
        )
        .delete(
            "/admin/users/{user}",
            access,
            admin::delete_user,
            about("Delete an account; its repositories can be restored by the operator for some time")
                .query("content", "`kept` (the default) or `removed`: what becomes of its issues and comments.")
                .gives_nothing(),
        )
        .delete("/users/{user}/suspended", access, admin::unsuspend, about("Lift a suspension").gives_nothing())
        .delete(
            "/admin/users/{user}/two-factor",
            access,
            admin::reset_factor,
            about("Turn off the two-factor login of an account whose owner lost it: its logins end, and its address is told")
                .gives_nothing(),
        )
        .get(
            "/admin/jobs",
            access,
            admin::jobs,
            about("Work that is done later, the latest first")
                .query("state", "`waiting`, `running`, `done` or `failed`.")
                .gives_log::<Job>(),
        )
        .post(
            "/admin/jobs/{id}/retry",
            access,
            admin::retry,
            about("Queue a job that has ended once more").takes_nothing().gives_empty(202),
        )
        .get(
            "/admin/audit",
            access,
            admin::audit,
            about("Who did what, the latest first")
                .query("action", "Only this action, such as `repo_renamed`.")
                .query("actor", "Only what the account of this name did.")
                .query("repo", "Only what was done to the repository `owner/name`.")
                .gives_log::<AuditEntry>(),
        )
        .get(
            "/admin/consumers",
            access,
            events::consumers,
            about("How far each consumer of the log has come").gives_list::<Consumer>(),
        )
        .get(
            "/admin/consumers/failures",
            access,
            events::set_aside,
            about("Events that a consumer could not take in").gives_log::<SetAside>(),
        )
}
