//! Responses of pages.

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

/// A page with status 200.
pub(crate) fn page(template: &impl Template) -> Response {
    html(StatusCode::OK, template)
}

/// A page that shows a secret once: neither proxies nor the browser may store it.
pub(crate) fn secret(template: &impl Template) -> Response {
    let mut response = page(template);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A form with its errors, with status 400.
pub(crate) fn form_again(template: &impl Template) -> Response {
    html(StatusCode::BAD_REQUEST, template)
}

/// Redirect after a form, so that reloading does not send it again.
pub(crate) fn see_other(to: &str) -> Response {
    redirect(StatusCode::SEE_OTHER, to)
}

/// Redirect that is not cached, because the old name can be given to another repository.
pub(crate) fn moved(to: &str) -> Response {
    let mut response = redirect(StatusCode::MOVED_PERMANENTLY, to);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// Redirect of a form: the browser sends it again to the new URL.
pub(crate) fn resend(to: &str) -> Response {
    let mut response = redirect(StatusCode::TEMPORARY_REDIRECT, to);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn redirect(status: StatusCode, to: &str) -> Response {
    let mut response = status.into_response();
    // A text that is invalid in a header cannot be a URL of this site.
    let location = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(header::LOCATION, location);
    response
}

/// Target of the redirect after sign-in: only paths of this site are accepted.
pub(crate) fn safe_next(next: Option<&str>) -> &str {
    match next {
        Some(next) if is_local(next) => next,
        _ => "/",
    }
}

/// One slash at the start, and no characters that browsers treat as another slash.
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
