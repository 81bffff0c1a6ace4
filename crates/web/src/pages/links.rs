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
}
