//! Finding repositories.

use super::errors::Errors;
use super::frame::Frame;
use super::links::Links;
use super::listed::Listed;
use super::path::PagePath;
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
    errors: Errors,
    repos: Vec<Listed>,
    links: Links,
}

const PER_PAGE: usize = 30;

const SORTS: [(&str, &str); 4] =
    [("updated", "Recently changed"), ("best", "Best match"), ("stars", "Most stars"), ("name", "Name")];

/// `GET /explore`, `GET /search`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Result<Response, Problem> {
    let (query, topic, page) = (page_path.query_text("q"), page_path.query_text("topic"), page_path.page());
    let sort = page_path.query("sort").unwrap_or_else(|| if query.is_empty() { "updated" } else { "best" }.into());
    let order = match sort.as_str() {
        "best" => Sort::BestMatch,
        "stars" => Sort::Stars,
        "name" => Sort::Name,
        _ => Sort::Updated,
    };
    let wanted = Page { limit: PER_PAGE as i64, offset: ((page - 1) * PER_PAGE) as i64 };
    let (repos, total, errors) = match search(&app, &visitor, &query, &topic, order, wanted).await {
        Ok((repos, total)) => (repos, total, Errors::none()),
        Err(SearchError::Invalid(invalid)) => (Vec::new(), 0, Errors::at("q", &invalid.to_string())),
        Err(SearchError::Fault(fault)) => return Err(fault.into()),
    };
    let repos = Listed::all(&app, &visitor, repos).await?;
    let more = if total >= MAX_TOTAL { "More than " } else { "" };
    let found = format!("{more}{}", text::count(usize::try_from(total).unwrap_or(0), "repository", "repositories"));
    let path = if page_path.segment(0) == "explore" { "/explore" } else { "/search" };
    let links = Links::around(path, &page_path, page, total > (page * PER_PAGE) as i64);
    let title = if query.is_empty() { "Explore".to_owned() } else { format!("Search: {query}") };
    let frame = Frame::new(&app, &visitor, title);
    let status = if errors.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let (tab, sorts) = ("repos", &SORTS);
    Ok(respond::html(status, &ExplorePage { frame, tab, query, topic, sort, sorts, found, errors, repos, links }))
}

/// Repositories that the visitor may read, latest change first.
pub(super) async fn latest(app: &App, visitor: &Visitor, page: Page) -> Result<Vec<Repo>, Problem> {
    match search(app, visitor, "", "", Sort::Updated, page).await {
        Ok((repos, _)) => Ok(repos),
        Err(SearchError::Fault(fault)) => Err(fault.into()),
        Err(SearchError::Invalid(invalid)) => {
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, sentence(&invalid.to_string())))
        }
    }
}

/// Matching repositories that the visitor may read.
async fn search(
    app: &App,
    visitor: &Visitor,
    text: &str,
    topic: &str,
    sort: Sort,
    page: Page,
) -> Result<(Vec<Repo>, i64), SearchError> {
    let topic = (!topic.is_empty()).then(|| topic.to_owned());
    let query = Query { text: text.to_owned(), topic, owner: None, sort };
    search::search(&app.forge, &visitor.caller(), &query, page).await
}
