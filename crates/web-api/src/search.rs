//! Searching.

use super::error::ApiError;
use super::issues::ascending;
use super::page::Paged;
use super::scoped::Who;
use super::segments::Query;
use super::shape::{self, Found, FoundIssues, Issue, IssueMatch, Match};
use crate::App;
use abide_forge::issues;
use abide_forge::repos::search::{self, Sort};
use axum::extract::State;
use axum::response::Response;

fn text(query: &Query) -> Result<&str, ApiError> {
    query.get("q").ok_or_else(|| ApiError::invalid("Search", "q", "missing", "q is required"))
}

pub(super) async fn repositories(
    State(app): State<App>,
    Who(caller): Who,
    query: Query,
    paged: Paged,
) -> Result<Response, ApiError> {
    let text = text(&query)?;
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

pub(super) async fn issues(
    State(app): State<App>,
    Who(caller): Who,
    query: Query,
    paged: Paged,
) -> Result<Response, ApiError> {
    // Unknown orders are ignored, as in the search for repositories.
    let order = (query.get("sort").and_then(|sort| sort.parse().ok()), ascending(&query, "order")?);
    let found = issues::search::search(&app.forge, &caller, text(&query)?, order, paged.page()).await?;
    let items = found
        .each()
        .map(|(issue, repo)| IssueMatch { issue: Issue::of(&app.forge, repo, issue), score: 1.0 })
        .collect();
    let (total_count, incomplete_results) = (found.total, found.incomplete);
    Ok(paged.answer_as(&app, &FoundIssues { total_count, incomplete_results, items }, total_count))
}
