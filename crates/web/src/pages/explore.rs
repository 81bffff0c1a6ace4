//! Finding repositories.

use super::frame::Frame;
use super::links::Links;
use super::listed::Listed;
use super::path::Address;
use super::problem::{Problem, sentence};
use super::respond;
use super::visitor::Visitor;
use crate::App;
use crate::show::text;
use abide_forge::repos::search::{self, MAX_TOTAL, Query, SearchError, Sort};
use abide_forge::repos::{Page, Repo};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

#[derive(Template)]
#[template(path = "explore/search.html")]
struct ExplorePage {
    frame: Frame,
    tab: &'static str,
    query: String,
    topic: String,
    sort: String,
    sorts: &'static [(&'static str, &'static str)],
    found: String,
    repos: Vec<Listed>,
    links: Links,
}

const PER_PAGE: usize = 30;

const SORTS: [(&str, &str); 4] =
    [("updated", "Recently changed"), ("best", "Best match"), ("stars", "Most stars"), ("name", "Name")];

/// `GET /explore`, `GET /search`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, address: Address) -> Result<Response, Problem> {
    let (query, topic, page) = (address.query_text("q"), address.query_text("topic"), address.page());
    let sort = address.query("sort").unwrap_or_else(|| if query.is_empty() { "updated" } else { "best" }.into());
    let order = match sort.as_str() {
        "best" => Sort::BestMatch,
        "stars" => Sort::Stars,
        "name" => Sort::Name,
        _ => Sort::Updated,
    };
    let wanted = Page { limit: PER_PAGE as i64, offset: ((page - 1) * PER_PAGE) as i64 };
    let (repos, total) = find(&app, &visitor, &query, &topic, order, wanted).await?;
    let repos = Listed::all(&app, &visitor, repos).await?;
    let more = if total >= MAX_TOTAL { "More than " } else { "" };
    let found = format!("{more}{}", text::count(usize::try_from(total).unwrap_or(0), "repository", "repositories"));
    let path = if address.segment(0) == "explore" { "/explore" } else { "/search" };
    let links = Links::around(path, &address, page, total > (page * PER_PAGE) as i64);
    let title = if query.is_empty() { "Explore".to_owned() } else { format!("Search: {query}") };
    let frame = Frame::new(&app, &visitor, title);
    Ok(respond::page(&ExplorePage { frame, tab: "repos", query, topic, sort, sorts: &SORTS, found, repos, links }))
}

/// What matches and may be read by the visitor.
pub(super) async fn find(
    app: &App,
    visitor: &Visitor,
    text: &str,
    topic: &str,
    sort: Sort,
    page: Page,
) -> Result<(Vec<Repo>, i64), Problem> {
    let topic = (!topic.is_empty()).then(|| topic.to_owned());
    let query = Query { text: text.to_owned(), topic, owner: None, sort };
    search::search(&app.forge, &visitor.caller(), &query, page).await.map_err(|error| match error {
        SearchError::Fault(fault) => fault.into(),
        SearchError::Invalid(invalid) => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, sentence(&invalid.to_string())),
    })
}
