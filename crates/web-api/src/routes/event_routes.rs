//! Routes of events.

use crate::about::about;
use crate::events;
use crate::scoped::Access::Open;
use crate::scoped::Routes;
use crate::shape::Event;
use abide_core::scope::Scope;

const STREAM: &[&str] = &["text/event-stream"];

pub(super) fn events() -> Routes {
    let read = Open(Scope::RepoRead);
    Routes::of("Events")
        .get("/events", read, events::public, about("List public events").gives_log::<Event>())
        .get(
            "/events/stream",
            read,
            events::stream,
            about("Stream events that the caller may see, as server-sent events")
                .query(
                    "after",
                    "Id of the last event the client has. Default: only new events. `Last-Event-ID` takes precedence.",
                )
                .or_media(STREAM),
        )
        .get(
            "/repos/{owner}/{repo}/events",
            read,
            events::of_repo,
            about("List events of a repository").gives_log::<Event>(),
        )
        .get(
            "/users/{user}/events",
            read,
            events::of_user,
            about("List events of a user that the caller may see").gives_log::<Event>(),
        )
        .get(
            "/users/{user}/events/public",
            read,
            events::of_user_in_public,
            about("List public events of a user").gives_log::<Event>(),
        )
        .get(
            "/users/{user}/received_events",
            read,
            events::received,
            about("List events a user receives that the caller may see").gives_log::<Event>(),
        )
}
