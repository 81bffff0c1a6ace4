//! Segments of a page's path, from the raw path: names are ASCII, and file paths need not be UTF-8.

use super::problem::Problem;
use abide_core::Timestamp;
use abide_forge::attention::SortKey;
use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use std::convert::Infallible;

/// The path segments, percent-encoded.
#[derive(Debug, Clone)]
pub(crate) struct PagePath {
    segments: Vec<String>,
    query: String,
    reads: bool,
}

impl PagePath {
    /// Whether the request only reads.
    pub(crate) fn reads(&self) -> bool {
        self.reads
    }

    /// One segment, from zero. Empty if there is none.
    pub(crate) fn segment(&self, index: usize) -> &str {
        self.segments.get(index).map_or("", String::as_str)
    }

    /// One segment, as text; `None` if it is not UTF-8.
    pub(crate) fn decoded(&self, index: usize) -> Option<String> {
        percent_decode_str(self.segment(index)).decode_utf8().ok().map(|text| text.into_owned())
    }

    /// The rest of the path from a segment on, decoded to bytes.
    pub(crate) fn rest(&self, from: usize) -> Vec<u8> {
        let rest = self.segments.get(from..).unwrap_or_default().join("/");
        percent_decode_str(&rest).collect()
    }

    /// The rest of the path from a segment on, percent-encoded.
    pub(crate) fn raw_rest(&self, from: usize) -> String {
        self.segments.get(from..).unwrap_or_default().join("/")
    }

    /// A parameter of the query, the first of that name.
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        form_urlencoded::parse(self.query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }

    /// A parameter of the query; empty if absent.
    pub(crate) fn query_text(&self, name: &str) -> String {
        self.query(name).unwrap_or_default()
    }

    /// Id in the query; 404 if it is not a number.
    pub(crate) fn id(&self) -> Result<i64, Problem> {
        self.query_text("id").parse().map_err(|_| Problem::not_found())
    }

    /// The requested page number, from one.
    pub(crate) fn page(&self) -> usize {
        self.query("page").and_then(|page| page.parse().ok()).unwrap_or(1).clamp(1, 1_000_000)
    }

    /// Sort key of the entry after which the list continues, as `Links::older` writes it; the top of the list by
    /// default.
    pub(crate) fn behind(&self) -> SortKey {
        let asked = self.query("before");
        let key = asked
            .as_deref()
            .and_then(|text| text.split_once('.'))
            .and_then(|(at, id)| Some(SortKey { at: Timestamp::from_micros(at.parse().ok()?), id: id.parse().ok()? }));
        key.unwrap_or(SortKey::TOP)
    }

    /// The raw query, with its question mark, or nothing.
    pub(crate) fn raw_query(&self) -> String {
        if self.query.is_empty() { String::new() } else { format!("?{}", self.query) }
    }
}

impl<S: Sync> FromRequestParts<S> for PagePath {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let segments = parts.uri.path().split('/').skip(1).map(str::to_owned).collect();
        let reads = matches!(parts.method, Method::GET | Method::HEAD);
        Ok(Self { segments, query: parts.uri.query().unwrap_or_default().to_owned(), reads })
    }
}
