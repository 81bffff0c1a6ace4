//! Links between the pages of a list.

use super::path::PagePath;
use abide_forge::attention::SortKey;

/// Links to the previous and next page.
#[derive(Default)]
pub(crate) struct Links {
    pub previous: Option<String>,
    pub next: Option<String>,
}

impl Links {
    /// Links around page `page` of the list at `path`.
    pub(crate) fn around(path: &str, page_path: &PagePath, page: usize, more: bool) -> Self {
        let to = |page: usize| with(path, page_path, "page", &page.to_string());
        Self { previous: (page > 1).then(|| to(page - 1)), next: more.then(|| to(page + 1)) }
    }

    /// Links of a list that is read newest first from the row `before`. One row more than `shown` means that others
    /// follow, and is removed; `to` returns the URL of the page after a row, or of the first page.
    pub(crate) fn behind<T>(
        rows: &mut Vec<T>,
        shown: usize,
        before: Option<i64>,
        id: impl Fn(&T) -> i64,
        to: impl Fn(Option<i64>) -> String,
    ) -> Self {
        let more = rows.len() > shown;
        rows.truncate(shown);
        let next = rows.last().filter(|_| more).map(|row| to(Some(id(row))));
        Self { previous: before.map(|_| to(None)), next }
    }

    /// Links of a feed with an optional next position.
    pub(crate) fn feed(path: &str, page_path: &PagePath, next: Option<i64>) -> Self {
        Self {
            previous: page_path.query("before").map(|_| without(path, page_path)),
            next: next.map(|key| with(path, page_path, "before", &key.to_string())),
        }
    }

    /// Links of a list of which one row more than `shown` was loaded. That row means that older ones follow, and is
    /// removed.
    pub(crate) fn older<E>(
        path: &str,
        page_path: &PagePath,
        loaded: &mut Vec<E>,
        shown: usize,
        key: impl Fn(&E) -> SortKey,
    ) -> Self {
        let more = loaded.len() > shown;
        loaded.truncate(shown);
        let last = loaded.last().filter(|_| more).map(key);
        Self {
            previous: page_path.query("before").map(|_| without(path, page_path)),
            next: last.map(|key| with(path, page_path, "before", &format!("{}.{}", key.at.micros(), key.id))),
        }
    }
}

/// Query parameters other than those that select a page.
fn kept(page_path: &PagePath) -> form_urlencoded::Serializer<'static, String> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (key, value) in form_urlencoded::parse(page_path.raw_query().trim_start_matches('?').as_bytes()) {
        if !["page", "before", "done"].contains(&key.as_ref()) {
            query.append_pair(&key, &value);
        }
    }
    query
}

fn with(path: &str, page_path: &PagePath, key: &str, value: &str) -> String {
    format!("{path}?{}", kept(page_path).append_pair(key, value).finish())
}

/// URL of the first page.
fn without(path: &str, page_path: &PagePath) -> String {
    let query = kept(page_path).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}
