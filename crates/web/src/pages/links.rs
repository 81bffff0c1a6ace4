//! Pages of a list.

use super::path::Address;

/// Links to the pages beside one.
#[derive(Default)]
pub(crate) struct Links {
    pub previous: Option<String>,
    pub next: Option<String>,
}

impl Links {
    /// Links around page `page` of a list whose address is `path`.
    pub(crate) fn around(path: &str, address: &Address, page: usize, more: bool) -> Self {
        let to = |page: usize| {
            let mut query = form_urlencoded::Serializer::new(String::new());
            for (key, value) in form_urlencoded::parse(address.raw_query().trim_start_matches('?').as_bytes()) {
                if key != "page" && key != "done" {
                    query.append_pair(&key, &value);
                }
            }
            query.append_pair("page", &page.to_string());
            format!("{path}?{}", query.finish())
        };
        Self { previous: (page > 1).then(|| to(page - 1)), next: more.then(|| to(page + 1)) }
    }

    /// Links of a list that is read newest first, behind the row `before`. One row more than the `shown` ones tells that
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
}
