//! The routes of notifications.

use crate::api::about::{About, about};
use crate::api::notifications;
use crate::api::scoped::Access::Logged;
use crate::api::scoped::Routes;
use crate::api::shape::{Notification, ThreadSubscription};
use abide_core::scope::Scope;

fn listed(summary: &'static str) -> About {
    about(summary)
        .query("all", "`true` for what was read too.")
        .query("participating", "`true` for what the caller takes part in, without what they only watch.")
        .query("since", "Only what was told after this time, e.g. 2026-01-31T12:00:00Z.")
        .query("before", "Only what was told before this time.")
        .gives_page::<Notification>()
}

pub(super) fn notifications() -> Routes {
    let access = Logged(Scope::Notifications);
    let mark = |summary| about(summary).takes_perhaps::<notifications::Mark>().gives_empty(205);
    Routes::of("Notifications")
        .get("/notifications", access, notifications::list, listed("What the caller was told, the latest first"))
        .put("/notifications", access, notifications::mark_all, mark("Mark everything as read"))
        .get(
            "/notifications/threads/{id}",
            access,
            notifications::show,
            about("A thread that the caller was told about").gives::<Notification>(),
        )
        .patch(
            "/notifications/threads/{id}",
            access,
            notifications::read,
            about("Mark a thread as read").takes_nothing().gives_empty(205),
        )
        .delete(
            "/notifications/threads/{id}",
            access,
            notifications::done,
            about("Put a thread away until something happens in it").gives_nothing(),
        )
        .get(
            "/notifications/threads/{id}/subscription",
            access,
            notifications::subscription,
            about("Whether the caller hears of a thread").gives::<ThreadSubscription>(),
        )
        .put(
            "/notifications/threads/{id}/subscription",
            access,
            notifications::subscribe,
            about("Mute a thread, or hear of it again")
                .takes_perhaps::<notifications::Subscribe>()
                .gives::<ThreadSubscription>(),
        )
        .delete(
            "/notifications/threads/{id}/subscription",
            access,
            notifications::unsubscribe,
            about("Mute a thread until someone mentions the caller in it").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/notifications",
            access,
            notifications::list_of_repo,
            listed("What the caller was told about a repository"),
        )
        .put(
            "/repos/{owner}/{repo}/notifications",
            access,
            notifications::mark_repo,
            mark("Mark everything of a repository as read"),
        )
}
