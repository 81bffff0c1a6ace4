//! The routes of what happened.

use crate::api::about::about;
use crate::api::events;
use crate::api::scoped::Access::Open;
use crate::api::scoped::Routes;
use crate::api::shape::Event;
use abide_core::scope::Scope;

const STREAM: &[&str] = &["text/event-stream"];

pub(super) fn events() -> Routes {
    let read = Open(Scope::RepoRead);
    Routes::of("Events")
        .get("/events", read, events::public, about("What happened in public").gives_log::<Event>())
        .get(
            "/events/stream",
            read,
            events::stream,
            about("What the caller may know of, as it happens: server-sent events")
                .query("after", "The id of the last event the client has; none is from now on. `Last-Event-ID` wins.")
                .or_media(STREAM),
        )
        .get("/repos/{owner}/{repo}/events", read, events::of_repo, about("What happened here").gives_log::<Event>())
        .get(
            "/users/{user}/events",
            read,
            events::of_user,
            about("What someone did, as far as the caller may know").gives_log::<Event>(),
        )
        .get(
            "/users/{user}/events/public",
            read,
            events::of_user_in_public,
            about("What someone did in public").gives_log::<Event>(),
        )
        .get(
            "/users/{user}/received_events",
            read,
            events::received,
            about("What happened in what someone keeps an eye on, as far as the caller may know").gives_log::<Event>(),
        )
}
