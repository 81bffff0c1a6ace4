//! The routes of notifications.

use crate::about::{About, about};
use crate::notifications;
use crate::scoped::Access::Logged;
use crate::scoped::Routes;
use crate::shape::{Notification, ThreadSubscription};
use abide_core::scope::Scope;

fn listed(summary: &'static str) -> About {
    about(summary)
        .query("all", "`true` includes read notifications.")
        .query("participating", "`true` shows only notifications of threads the user takes part in or is mentioned in.")
        .query("since", "Only notifications updated after this time, e.g. 2026-01-31T12:00:00Z.")
        .query("before", "Only notifications updated before this time.")
        .gives_page::<Notification>()
}

pub(super) fn notifications() -> Routes {
    let access = Logged(Scope::Notifications);
    let mark = |summary| about(summary).takes_perhaps::<notifications::Mark>().gives_empty(205);
    Routes::of("Notifications")
        .get("/notifications", access, notifications::list, listed("List notifications, newest first"))
        .put("/notifications", access, notifications::mark_all, mark("Mark all notifications as read"))
        .get("/notifications/threads/{id}", access, notifications::show, about("Get a thread").gives::<Notification>())
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
            about("Mark a thread as done").gives_nothing(),
        )
        .get(
            "/notifications/threads/{id}/subscription",
            access,
            notifications::subscription,
            about("Get the subscription of a thread").gives::<ThreadSubscription>(),
        )
        .put(
            "/notifications/threads/{id}/subscription",
            access,
            notifications::subscribe,
            about("Set the subscription of a thread: mute or unmute it")
                .takes_perhaps::<notifications::Subscribe>()
                .gives::<ThreadSubscription>(),
        )
        .delete(
            "/notifications/threads/{id}/subscription",
            access,
            notifications::unsubscribe,
            about("Mute a thread until the user is mentioned in it").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/notifications",
            access,
            notifications::list_of_repo,
            listed("List notifications of a repository"),
        )
        .put(
            "/repos/{owner}/{repo}/notifications",
            access,
            notifications::mark_repo,
            mark("Mark all notifications of a repository as read"),
        )
}
