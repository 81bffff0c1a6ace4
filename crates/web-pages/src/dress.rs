//! Layers around every page: the visitor, security headers, and error pages.

use super::frame::Frame;
use super::notifications::UNSUBSCRIBE;
use super::problem::Problem;
use super::respond;
use super::visitor::Visitor;
use crate::App;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

/// Allows scripts and styles of this site only, and no inline ones, so that a defect of the sanitiser runs no script.
/// Pictures may come from any https origin, because READMEs show badges.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; \
    font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Wraps a page in the layers.
pub(super) async fn dress(State(app): State<App>, request: Request, next: Next) -> Response {
    dressed(&app, request, |request| next.run(request)).await
}

/// The page for unknown URLs.
pub(crate) async fn nowhere(app: App, request: Request) -> Response {
    dressed(&app, request, |_| async { Problem::not_found().into_response() }).await
}

async fn dressed<F>(app: &App, request: Request, serve: impl FnOnce(Request) -> F) -> Response
where
    F: Future<Output = Response>,
{
    let (mut parts, body) = request.into_parts();
    let visitor = match Visitor::of(app, &parts).await {
        Ok(visitor) => visitor,
        Err(fault) => {
            tracing::error!(error = %fault, "cannot read the session of a visitor");
            return (StatusCode::INTERNAL_SERVER_ERROR, "Internal server error. Try again later.\n").into_response();
        }
    };
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    // Mail programs send the unsubscribe form without an origin or token; the secret in the URL authorises it.
    let by_mail = parts.uri.path().starts_with(UNSUBSCRIBE);
    let ours = reads || by_mail || same_origin(&parts.headers, &app.forge.settings().public_url);
    parts.extensions.insert(visitor.clone());
    let mut response = match ours {
        true => serve(Request::from_parts(parts, body)).await,
        false => Problem::foreign_form().into_response(),
    };
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let frame = Frame::new(app, &visitor, problem.title());
        response = match reads && problem.is_before_login() && visitor.viewer().is_none() {
            true => respond::see_other(&frame.login_link()),
            false => problem.page(&frame),
        };
    }
    // A cookie that the page itself sets takes precedence.
    if !response.headers().contains_key(header::SET_COOKIE) {
        let cookies = [visitor.form_cookie(app), visitor.prolonged_cookie(app)].into_iter().flatten();
        for cookie in cookies.filter_map(|cookie| HeaderValue::from_str(&cookie).ok()) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    protect(response.headers_mut());
    response
}

/// Whether a form was sent from a page of this site, by `Sec-Fetch-Site` or `Origin`. Without these headers only the
/// form's token is checked.
fn same_origin(headers: &HeaderMap, public_url: &str) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(HeaderName::from_static("sec-fetch-site")) {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text(header::ORIGIN) else { return true };
    let host = text(header::HOST).unwrap_or_default();
    origin == public_url || origin.split_once("://").is_some_and(|(_, authority)| authority == host)
}

fn protect(headers: &mut HeaderMap) {
    let mut default = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    default(header::CONTENT_SECURITY_POLICY, POLICY);
    default(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    default(header::X_FRAME_OPTIONS, "DENY");
    default(header::REFERRER_POLICY, "same-origin");
    default(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    default(HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()");
    // A page depends on its visitor's permissions, so shared caches must not store it.
    default(header::CACHE_CONTROL, "private, no-cache");
    default(header::VARY, "Cookie");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn forms_of_other_sites_are_known_by_what_browsers_say() {
        let ours = "https://forge.example";
        for (pairs, fine) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "https://forge.example")], false),
            (&[("origin", "https://forge.example")], true),
            (&[("origin", "http://127.0.0.1:7464"), ("host", "127.0.0.1:7464")], true),
            (&[("origin", "https://evil.example"), ("host", "forge.example")], false),
            (&[("origin", "null"), ("host", "forge.example")], false),
            (&[], true),
        ] {
            assert_eq!(same_origin(&headers(pairs), ours), fine, "{pairs:?}");
        }
    }
}
