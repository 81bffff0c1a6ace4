//! Pages of a log, newest entry first: `before` and `per_page` in, a `Link` to older entries out.
//!
//! A page begins at an entry, not at a page number: new entries do not shift the pages, and every page costs the same.

use super::error::ApiError;
use super::page::{DEFAULT, linked, size};
use crate::App;
use axum::extract::{FromRequestParts, OriginalUri};
use axum::http::request::Parts;
use axum::response::Response;
use serde::Serialize;

/// The requested page of a log.
#[derive(Debug, Clone)]
pub(super) struct Keyset {
    /// Only entries older than this one.
    pub before: Option<i64>,
    per_page: i64,
    /// Path and other parameters, to build links from.
    path: String,
    rest: Vec<String>,
}

impl FromRequestParts<App> for Keyset {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        let uri = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0);
        Ok(Self::parse(uri.path(), uri.query().unwrap_or("")))
    }
}

impl Keyset {
    fn parse(path: &str, query: &str) -> Self {
        let mut asked = Self { before: None, per_page: DEFAULT, path: path.to_owned(), rest: Vec::new() };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            // Values that are not numbers are ignored, as in every list.
            match pair.split_once('=') {
                Some(("per_page", value)) => asked.per_page = size(value),
                Some(("before", value)) => asked.before = value.parse().ok(),
                _ => asked.rest.push(pair.to_owned()),
            }
        }
        asked
    }

    /// Number of entries to load: one more than are shown, to know whether there are older ones.
    pub(super) fn limit(&self) -> i64 {
        self.per_page + 1
    }

    /// Number of requested entries.
    pub(super) fn per_page(&self) -> i64 {
        self.per_page
    }

    /// The entries, with a link to older ones if the log may have any after this position.
    pub(super) fn behind<T: Serialize>(&self, app: &App, shown: &[T], next: Option<i64>) -> Response {
        linked(&shown, &next.map(|key| self.link(app, key)).into_iter().collect::<Vec<_>>())
    }

    fn link(&self, app: &App, before: i64) -> String {
        let mut query = self.rest.clone();
        query.extend([format!("per_page={}", self.per_page), format!("before={before}")]);
        format!("<{}?{}>; rel=\"next\"", app.url(&self.path), query.join("&"))
    }

    /// Response of a page, each entry in its shape, with a link to older ones if there are any.
    pub(super) fn answer<E, T: Serialize>(
        &self,
        app: &App,
        loaded: &[E],
        number: impl Fn(&E) -> i64,
        shape: impl Fn(&E) -> T,
    ) -> Response {
        let shown = &loaded[..loaded.len().min(usize::try_from(self.per_page).unwrap_or(usize::MAX))];
        let older = shown.last().filter(|_| shown.len() < loaded.len());
        let link = older.map(|last| self.link(app, number(last)));
        linked(&shown.iter().map(shape).collect::<Vec<_>>(), &link.into_iter().collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_numbers_are_put_right() {
        for (query, before, limit) in [
            ("", None, 31),
            ("per_page=7&before=12", Some(12), 8),
            ("per_page=1000&before=x", None, 101),
            ("before=9223372036854775808&per_page=-1", None, 2),
            ("before=-3&&x&per_page", Some(-3), 31),
        ] {
            let asked = Keyset::parse("/x", query);
            assert_eq!((asked.before, asked.limit()), (before, limit), "{query}");
        }
    }
}
