//! Feeds of events, as pages and as Atom.

use super::frame::Frame;
use super::links::Links;
use super::listed::Listed;
use super::path::PagePath;
use super::problem::Problem;
use super::respond;
use super::visitor::Visitor;
use crate::App;
use crate::show::sentence::Sentence;
use abide_core::feed::Period;
use abide_forge::Caller;
use abide_forge::feeds::{self, Feed};
use abide_web::auth::{self, Credentials};
use askama::Template;
use axum::extract::State;
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// Sentences on one page.
const PER_PAGE: usize = 30;
/// Sentences in an Atom feed.
const IN_ATOM: usize = 50;
/// Repositories on the page of popular ones.
const POPULAR: i64 = 25;

/// A page of a feed, and the position of the next page.
pub(super) async fn page(
    app: &App,
    caller: &Caller,
    feed: Feed,
    path: &str,
    page_path: &PagePath,
) -> Result<(Vec<Sentence>, Links), Problem> {
    let before = page_path.query("before").and_then(|position| position.parse().ok());
    let page = feeds::read(&app.forge, caller, feed, before, PER_PAGE).await?;
    let links = Links::feed(path, page_path, page.next);
    Ok((page.items.into_iter().map(Sentence::of).collect(), links))
}

#[derive(Template)]
#[template(path = "explore/activity.html")]
struct ActivityPage {
    frame: Frame,
    tab: &'static str,
    sentences: Vec<Sentence>,
    links: Links,
}

/// `GET /explore/activity`
pub(super) async fn explore(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
) -> Result<Response, Problem> {
    let (sentences, links) = page(&app, &visitor.caller(), Feed::Public, "/explore/activity", &page_path).await?;
    let frame = Frame::new(&app, &visitor, "Activity");
    Ok(respond::page(&ActivityPage { frame, tab: "activity", sentences, links }))
}

#[derive(Template)]
#[template(path = "explore/trending.html")]
struct TrendingPage {
    frame: Frame,
    tab: &'static str,
    period: Period,
    periods: &'static [(Period, &'static str)],
    repos: Vec<Listed>,
}

const PERIODS: [(Period, &str); 3] =
    [(Period::Day, "Today"), (Period::Week, "This week"), (Period::Month, "This month")];

/// `GET /trending`
pub(super) async fn trending(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
) -> Result<Response, Problem> {
    let period = page_path.query_text("since").parse().unwrap_or(Period::Week);
    let repos = feeds::popular(&app.forge, &visitor.caller(), period, POPULAR).await?;
    let repos = Listed::all(&app, &visitor, repos).await?;
    let frame = Frame::new(&app, &visitor, "Trending");
    Ok(respond::page(&TrendingPage { frame, tab: "trending", period, periods: &PERIODS, repos }))
}

#[derive(Template)]
#[template(path = "feed.xml")]
struct AtomFeed {
    title: String,
    /// URL of the Atom feed.
    own: String,
    /// URL of the page with the same content.
    page: String,
    base: String,
    updated: String,
    sentences: Vec<Sentence>,
}

/// An Atom feed. `page` is the URL of the page with the same content, `own` the URL of the feed.
pub(super) async fn atom(
    app: &App,
    caller: &Caller,
    feed: Feed,
    title: String,
    (page, own): (&str, &str),
    known: Option<&HeaderValue>,
) -> Result<Response, Problem> {
    let items = feeds::read(&app.forge, caller, feed, None, IN_ATOM).await?.items;
    let updated = items.first().map_or_else(|| app.forge.clock().now(), |item| item.at);
    // Visible events can disappear without a new event, so the tag is computed from all that are shown.
    let tag = format!("W/\"{}\"", items.iter().map(|item| item.seq).fold(items.len() as u64, mix));
    if known.is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let base = app.url("");
    let sentences = items.into_iter().map(Sentence::of).collect();
    let (own, page) = (app.url(own), app.url(page));
    let mut response = respond::page(&AtomFeed { title, own, page, base, updated: updated.to_string(), sentences });
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/atom+xml; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}

/// One step of an order-dependent checksum.
fn mix(sum: u64, seq: i64) -> u64 {
    (sum ^ seq.unsigned_abs()).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17)
}

/// `GET /explore/atom`
pub(super) async fn explore_atom(
    State(app): State<App>,
    visitor: Visitor,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let at = ("/explore/activity", "/explore/atom");
    let title = "Public activity".to_owned();
    atom(&app, &visitor.caller(), Feed::Public, title, at, headers.get(header::IF_NONE_MATCH)).await
}

/// `GET /home/atom`: for signed-in visitors, and for feed readers with a token (any name, the token as password).
pub(super) async fn home_atom(
    State(app): State<App>,
    visitor: Visitor,
    extensions: Extensions,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = match visitor.caller() {
        caller if caller.user_id().is_some() => caller,
        _ => match auth::identify(&app, &headers, auth::peer(&extensions)).await? {
            Credentials::Good(caller) => caller,
            Credentials::None(_) | Credentials::Bad => return Ok(asks_for_token()),
        },
    };
    let Some(user) = caller.user_id() else { return Ok(asks_for_token()) };
    caller.ensure_scope(abide_core::scope::Scope::RepoRead)?;
    let at = ("/", "/home/atom");
    let title = "Your activity feed".to_owned();
    atom(&app, &caller, Feed::Home(user), title, at, headers.get(header::IF_NONE_MATCH)).await
}

fn asks_for_token() -> Response {
    let ask = [(header::WWW_AUTHENTICATE, "Basic realm=\"Abide: any name, and a token as password\"")];
    (StatusCode::UNAUTHORIZED, ask, "This feed is private: sign in, or use a token as the password.\n").into_response()
}
