//! Pages of a list.

use super::path::PagePath;
use abide_forge::attention::SortKey;

/// Links to the pages beside one.
#[derive(Default)]
pub(crate) struct Links {
    pub previous: Option<String>,
    pub next: Option<String>,
}

impl Links {
    /// Links around page `page` of a list whose address is `path`.
    pub(crate) fn around(path: &str, page_path: &PagePath, page: usize, more: bool) -> Self {
        let to = |page: usize| with(path, page_path, "page", &page.to_string());
        Self { previous: (page > 1).then(|| to(page - 1)), next: more.then(|| to(page + 1)) }
    }

    /// Links of a list that is read newest first, behind the row `before`. One row more than the `shown` ones means that
    /// there are others, and is taken off; `to` is the address of what is behind a row, or of the beginning.
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

    /// Links of a feed that continues after a position, if it does.
    pub(crate) fn feed(path: &str, page_path: &PagePath, next: Option<i64>) -> Self {
        Self {
            previous: page_path.query("before").map(|_| without(path, page_path)),
            next: next.map(|key| with(path, page_path, "before", &key.to_string())),
        }
    }

    /// Links of a list that goes from an entry to older ones. One more than `shown` was loaded if there are any, and is
    /// taken away.
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

/// The parameters of an address that do not say which part of a list is shown.
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

/// The beginning of the list.
fn without(path: &str, page_path: &PagePath) -> String {
    let query = kept(page_path).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}
