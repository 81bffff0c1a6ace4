//! Routes of site administration.

use crate::about::about;
use crate::scoped::Access::Logged;
use crate::scoped::Routes;
use crate::shape::{AdminUser, AuditEntry, Consumer, Job, SetAside};
use crate::{admin, events};
use abide_core::scope::Scope;

pub(super) fn administration() -> Routes {
    let access = Logged(Scope::Admin);
    Routes::of("Site administration")
        .get(
            "/admin/users",
            access,
            admin::users,
            about("List accounts by name").query("q", "Part of a name or e-mail address.").gives_page::<AdminUser>(),
        )
        .put(
            "/users/{user}/suspended",
            access,
            admin::suspend,
            about("Suspend an account: its sessions end, and its tokens and keys stop working")
                .takes_nothing()
                .gives_nothing(),
        )
        .delete(
            "/admin/users/{user}",
            access,
            admin::delete_user,
            about("Delete an account; the operator can restore its repositories during the grace period")
                .query("content", "`kept` (default) or `removed`: keep or remove its issues and comments.")
                .gives_nothing(),
        )
        .delete("/users/{user}/suspended", access, admin::unsuspend, about("Lift a suspension").gives_nothing())
        .delete(
            "/admin/users/{user}/two-factor",
            access,
            admin::reset_factor,
            about("Turn off two-factor authentication of an account; its sessions end, and it gets a mail")
                .gives_nothing(),
        )
        .get(
            "/admin/jobs",
            access,
            admin::jobs,
            about("List background jobs, newest first")
                .query("state", "`waiting`, `running`, `done` or `failed`.")
                .gives_log::<Job>(),
        )
        .post(
            "/admin/jobs/{id}/retry",
            access,
            admin::retry,
            about("Queue an ended job again").takes_nothing().gives_empty(202),
        )
        .get(
            "/admin/audit",
            access,
            admin::audit,
            about("List the audit log, newest first")
                .query("action", "Only this action, such as `repo_renamed`.")
                .query("actor", "Only actions of this account.")
                .query("repo", "Only actions on this repository (`owner/name`).")
                .gives_log::<AuditEntry>(),
        )
        .get(
            "/admin/consumers",
            access,
            events::consumers,
            about("List event consumers with cursor and lag").gives_list::<Consumer>(),
        )
        .get(
            "/admin/consumers/failures",
            access,
            events::set_aside,
            about("List failed events").gives_log::<SetAside>(),
        )
}
