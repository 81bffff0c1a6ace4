//! Pages of a list: `per_page` and `page` in, `Link` out.

use super::error::ApiError;
use crate::App;
use abide_forge::repos::Page;
use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Entries per page by default.
pub(super) const DEFAULT: i64 = 30;
const MAX: i64 = 100;
/// Last page number. The database reads all rows before a page, so deep pages are slow; clients use a filter instead.
const MAX_OFFSET: i64 = 10_000;

/// The requested page.
#[derive(Debug, Clone)]
pub(super) struct Paged {
    per_page: i64,
    page: i64,
    /// Path and other parameters, to build links from.
    path: String,
    rest: Vec<String>,
}

impl FromRequestParts<App> for Paged {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        let uri = parts.extensions.get::<axum::extract::OriginalUri>().map_or(&parts.uri, |original| &original.0);
        Self::parse(uri.path(), uri.query().unwrap_or(""))
    }
}

impl Paged {
    fn parse(path: &str, query: &str) -> Result<Self, ApiError> {
        let mut paged = Self { per_page: DEFAULT, page: 1, path: path.to_owned(), rest: Vec::new() };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            // Values that are not numbers are ignored, as on GitHub.
            match pair.split_once('=') {
                Some(("per_page", value)) => paged.per_page = size(value),
                Some(("page", value)) => paged.page = value.parse().unwrap_or(1).max(1),
                _ => paged.rest.push(pair.to_owned()),
            }
        }
        if (paged.page - 1).saturating_mul(paged.per_page) > MAX_OFFSET {
            let rule = format!("paging is limited to the first {MAX_OFFSET} entries of a list");
            return Err(ApiError::invalid("Search", "page", "invalid", rule));
        }
        Ok(paged)
    }

    pub(super) fn page(&self) -> Page {
        Page { limit: self.per_page, offset: (self.page - 1) * self.per_page }
    }

    /// The page of a list that is complete in memory.
    pub(super) fn part<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        let at = |index: i64| usize::try_from(index).unwrap_or(usize::MAX).min(all.len());
        let Page { limit, offset } = self.page();
        &all[at(offset)..at(offset + limit)]
    }

    fn link(&self, app: &App, page: i64, rel: &str) -> String {
        let mut query = self.rest.clone();
        query.push(format!("per_page={}", self.per_page));
        query.push(format!("page={page}"));
        format!("<{}?{}>; rel=\"{rel}\"", app.url(&self.path), query.join("&"))
    }

    /// The page with its `Link` header.
    pub(super) fn answer<T: Serialize>(&self, app: &App, items: &[T], total: i64) -> Response {
        self.answer_as(app, items, total)
    }

    /// An object that contains the page, with the `Link` header.
    pub(super) fn answer_as<T: Serialize + ?Sized>(&self, app: &App, body: &T, total: i64) -> Response {
        let last = (total.max(1) + self.per_page - 1) / self.per_page;
        let last = last.min(MAX_OFFSET / self.per_page + 1);
        self.with_links(app, body, self.page < last, Some(last))
    }

    /// A page of a list of unknown length, with links to the previous and next page.
    pub(super) fn answer_open<T: Serialize>(&self, app: &App, items: &[T], more: bool) -> Response {
        let reachable = self.page.saturating_mul(self.per_page) <= MAX_OFFSET;
        self.with_links(app, items, more && reachable, None)
    }

    fn with_links<T: Serialize + ?Sized>(&self, app: &App, body: &T, more: bool, last: Option<i64>) -> Response {
        let mut links = Vec::new();
        if self.page > 1 {
            links.push(self.link(app, 1, "first"));
            links.push(self.link(app, (self.page - 1).min(last.unwrap_or(i64::MAX)), "prev"));
        }
        if more {
            links.push(self.link(app, self.page + 1, "next"));
            links.extend(last.map(|last| self.link(app, last, "last")));
        }
        linked(body, &links)
    }
}

/// Entries per page, as requested.
pub(super) fn size(asked: &str) -> i64 {
    asked.parse().unwrap_or(DEFAULT).clamp(1, MAX)
}

/// A body with a `Link` header.
pub(super) fn linked<T: Serialize + ?Sized>(body: &T, links: &[String]) -> Response {
    let mut response = Json(body).into_response();
    if let Ok(value) = HeaderValue::from_str(&links.join(", "))
        && !links.is_empty()
    {
        response.headers_mut().insert(header::LINK, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_numbers_are_put_right_and_deep_pages_are_refused() {
        let parse = |query: &str| Paged::parse("/x", query);
        assert_eq!(parse("").unwrap().page().limit, 30);
        assert_eq!(parse("per_page=1000&page=2").unwrap().page().offset, 100);
        assert_eq!(parse("per_page=-3&page=-1").unwrap().page().limit, 1);
        assert_eq!(parse("per_page=x&page=y").unwrap().page().offset, 0);
        assert!(parse("per_page=100&page=101").is_ok());
        assert!(parse("per_page=100&page=102").is_err());
        assert!(parse("page=9223372036854775807").is_err());
    }
}
