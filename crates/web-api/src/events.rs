//! Events: in pages, and as a live stream.

use super::error::ApiError;
use super::keyset::Keyset;
use super::scoped::Who;
use super::segments::{Query, Segments};
use super::shape::{Consumer, Event, SetAside};
use super::streams::StreamSlot;
use super::{repos, user};
use crate::App;
use abide_core::policy::Action;
use abide_forge::By;
use abide_forge::accounts::standing::{ASK_EVERY, Standing};
use abide_forge::consumers::manage;
use abide_forge::feeds::{self, Feed, Item, Tail};
use abide_forge::{Caller, Fault};
use abide_web::auth;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, Stream, StreamExt as _};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::Instant;

/// Time without an event after which a stream sends a comment, so that proxies keep it open.
const SILENCE: Duration = Duration::from_secs(15);
/// Maximum lifetime of a stream; the client reconnects with its last event id.
const LIFE: Duration = Duration::from_secs(15 * 60);

pub(super) async fn public(State(app): State<App>, Who(caller): Who, keyset: Keyset) -> Result<Response, ApiError> {
    page(&app, &caller, Feed::Public, &keyset).await
}

pub(super) async fn of_repo(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    keyset: Keyset,
) -> Result<Response, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoRead).await?;
    page(&app, &caller, Feed::Repo(repo.id), &keyset).await
}

pub(super) async fn of_user(
    State(app): State<App>,
    Who(caller): Who,
    Segments(name): Segments<String>,
    keyset: Keyset,
) -> Result<Response, ApiError> {
    let user = user::named(&app, &name).await?;
    page(&app, &caller, Feed::Actor(user.id), &keyset).await
}

pub(super) async fn of_user_in_public(
    State(app): State<App>,
    Segments(name): Segments<String>,
    keyset: Keyset,
) -> Result<Response, ApiError> {
    let user = user::named(&app, &name).await?;
    page(&app, &Caller::anonymous(None), Feed::Actor(user.id), &keyset).await
}

pub(super) async fn received(
    State(app): State<App>,
    Who(caller): Who,
    Segments(name): Segments<String>,
    keyset: Keyset,
) -> Result<Response, ApiError> {
    let user = user::named(&app, &name).await?;
    page(&app, &caller, Feed::Home(user.id), &keyset).await
}

async fn page(app: &App, caller: &Caller, feed: Feed, keyset: &Keyset) -> Result<Response, ApiError> {
    let limit = usize::try_from(keyset.per_page()).unwrap_or(usize::MAX);
    let page = feeds::read(&app.forge, caller, feed, keyset.before, limit).await?;
    let shown: Vec<_> = page.items.iter().map(|item| Event::of(app, item)).collect();
    Ok(keyset.behind(app, &shown, page.next))
}

/// New events of the log as server-sent events, after the id in `after` or `Last-Event-ID`; without either, from now
/// on.
pub(super) async fn stream(
    State(app): State<App>,
    Who(caller): Who,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let known = headers.get("last-event-id").and_then(|id| id.to_str().ok()).or_else(|| query.get("after"));
    let rule = || ApiError::invalid("Event", "after", "invalid", "must be the numeric id of an event");
    let after = known.map(|id| id.trim().parse().map_err(|_| rule())).transpose()?;
    let slot = app.streams.take(&caller).map_err(ApiError::crowded)?;
    let tail = Tail::new(&app.forge, &caller, after).await?;
    let standing = auth::standing(&headers, &caller);
    let following = Following { app, tail, standing, end: Instant::now() + LIFE, _slot: slot };
    let mut response = Sse::new(messages(following)).into_response();
    // Keeps nginx from buffering the stream.
    response.headers_mut().insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
    Ok(response)
}

/// An open event stream.
struct Following {
    app: App,
    tail: Tail,
    standing: Standing,
    end: Instant,
    _slot: StreamSlot,
}

impl Following {
    /// The next message; `None` at the end.
    async fn next(&mut self) -> Option<Vec<sse::Event>> {
        let silent_until = Instant::now() + SILENCE;
        while Instant::now() < self.end {
            let items = self.tail.next(ASK_EVERY).await;
            let holds = self.standing.holds(&self.app.forge).await;
            let (items, holds) = items.and_then(|items| Ok((items, holds?))).map_err(ends_early).ok()?;
            if !holds {
                return None;
            }
            if !items.is_empty() {
                return Some(items.iter().map(|item| said(&self.app, item)).collect());
            }
            if Instant::now() >= silent_until {
                return Some(vec![sse::Event::default().comment("nothing new")]);
            }
        }
        None
    }
}

fn ends_early(error: Fault) {
    tracing::warn!(%error, "an event stream ended early");
}

fn said(app: &App, item: &Item) -> sse::Event {
    let data = serde_json::to_string(&Event::of(app, item)).unwrap_or_default();
    sse::Event::default().id(item.seq.to_string()).data(data)
}

/// Messages of a stream: each event with its id, and comments in between. The stream ends when the server stops or the
/// caller loses access.
fn messages(following: Following) -> impl Stream<Item = Result<sse::Event, Infallible>> {
    let stop = following.app.stop.clone();
    let first = stream::iter([sse::Event::default().comment("from here on").retry(Duration::from_secs(3))]);
    let rest = stream::unfold(following, |mut following| async move {
        let said = following.next().await?;
        Some((stream::iter(said), following))
    });
    first.chain(rest.flatten()).map(Ok).take_until(stop.cancelled_owned())
}

pub(super) async fn consumers(State(app): State<App>, Who(caller): Who) -> Result<Json<Vec<Consumer>>, ApiError> {
    let by = By::admin(&caller)?;
    let all = manage::status(&app.forge, &by).await?;
    Ok(Json(all.iter().map(Consumer::of).collect()))
}

pub(super) async fn set_aside(State(app): State<App>, Who(caller): Who, keyset: Keyset) -> Result<Response, ApiError> {
    let by = By::admin(&caller)?;
    let before = keyset.before.unwrap_or(i64::MAX);
    let failures = manage::failures(&app.forge, &by, before, keyset.limit()).await?;
    Ok(keyset.answer(&app, &failures, |failure| failure.seq, SetAside::of))
}
