//! Answers of pages.

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// A rendered template.
pub(crate) fn html(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => {
            let mut response = Response::new(Body::from(text));
            *response.status_mut() = status;
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, html);
            response
        }
        Err(error) => {
            tracing::error!(%error, "a template failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "Internal server error. Try again later.\n").into_response()
        }
    }
}

/// A page, all well.
pub(crate) fn page(template: &impl Template) -> Response {
    html(StatusCode::OK, template)
}

/// A page with a secret that is shown this once: no cache keeps it, the browser's neither.
pub(crate) fn secret(template: &impl Template) -> Response {
    let mut response = page(template);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A form shown again with what is wrong about it.
pub(crate) fn form_again(template: &impl Template) -> Response {
    html(StatusCode::BAD_REQUEST, template)
}

/// After a form: the browser gets another page, so that reloading it sends nothing twice.
pub(crate) fn see_other(to: &str) -> Response {
    redirect(StatusCode::SEE_OTHER, to)
}

/// The page has another address now. Not to be remembered: the old name may be given to another repository.
pub(crate) fn moved(to: &str) -> Response {
    let mut response = redirect(StatusCode::MOVED_PERMANENTLY, to);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The form has another URL now: the browser sends it there again, unchanged.
pub(crate) fn resend(to: &str) -> Response {
    let mut response = redirect(StatusCode::TEMPORARY_REDIRECT, to);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn redirect(status: StatusCode, to: &str) -> Response {
    let mut response = status.into_response();
    // Anything that cannot stand in a header cannot be an address of ours.
    let location = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(header::LOCATION, location);
    response
}

/// Where a login may lead: to a page of ours and nowhere else.
pub(crate) fn safe_next(next: Option<&str>) -> &str {
    match next {
        Some(next) if is_local(next) => next,
        _ => "/",
    }
}

/// One slash at the start and no other character that a browser takes for one.
fn is_local(next: &str) -> bool {
    let mut bytes = next.bytes();
    bytes.next() == Some(b'/')
        && !matches!(bytes.next(), Some(b'/' | b'\\'))
        && !next.contains('\\')
        && next.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logging_in_never_leads_to_another_site() {
        for fine in ["/", "/a/b?c=d", "/a%20b"] {
            assert_eq!(safe_next(Some(fine)), fine);
        }
        for bad in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/\t/evil.example",
            "a",
            "/a\r\nb",
            "/x\\y",
        ] {
            assert_eq!(safe_next(Some(bad)), "/", "{bad:?}");
        }
        assert_eq!(safe_next(None), "/");
    }
}
