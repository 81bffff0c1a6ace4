//! Searching.

use super::error::ApiError;
use super::page::Paged;
use super::scoped::Who;
use super::segments::Query;
use super::shape::{self, Found, Match};
use crate::App;
use abide_forge::repos::search::{self, Sort};
use axum::extract::State;
use axum::response::Response;

pub(super) async fn repositories(
    State(app): State<App>,
    Who(caller): Who,
    query: Query,
    paged: Paged,
) -> Result<Response, ApiError> {
    let text = query.get("q").ok_or_else(|| ApiError::invalid("Search", "q", "missing", "q says what to look for"))?;
    let sort = match query.get("sort") {
        Some("stars") => Sort::Stars,
        Some("updated") => Sort::Updated,
        Some("name") => Sort::Name,
        _ => Sort::BestMatch,
    };
    let asked = search::Query { text: text.to_owned(), topic: None, owner: None, sort };
    let (repos, total_count) = search::search(&app.forge, &caller, &asked, paged.page()).await?;
    let items = shape::page(&app, &caller, &repos).await?;
    let items = items.into_iter().map(|repository| Match { repository, score: 1.0 }).collect();
    Ok(paged.answer_as(&app, &Found { total_count, incomplete_results: false, items }, total_count))
}
