//! Layers around every request: an id, CORS, the access log, a handler of panics.

use crate::logged;
use crate::server::Peer;
use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tracing::Instrument as _;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// `Strict-Transport-Security` for a year.
const STRICT: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Wraps the routes of a site in all layers.
pub(crate) fn around(router: Router, public_url: &str) -> Router {
    let secure = public_url.starts_with("https://");
    let strict = move |request: Request, next: Next| async move {
        let mut response = next.run(request).await;
        if secure {
            response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, STRICT);
        }
        response
    };
    router.layer(from_fn(observe)).layer(from_fn(cors)).layer(from_fn(strict))
}

/// Nostr clients run in browsers on any site, so scripts of all origins may read responses. Without
/// `Access-Control-Allow-Credentials` browsers send no cookies with them.
async fn cors(request: Request, next: Next) -> Response {
    let mut response = if request.method() == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        next.run(request).await
    };
    allow_everyone(response.headers_mut());
    response
}

fn allow_everyone(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS"),
    );
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("Content-Type, Authorization, Git-Protocol, Accept, Content-Encoding, If-None-Match"),
    );
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(
            "Link, ETag, X-Request-Id, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, \
             X-RateLimit-Used, X-RateLimit-Resource, X-Abide-Notice",
        ),
    );
}

/// Assigns a request id, writes the access log, and turns a panic into a 500.
async fn observe(request: Request, next: Next) -> Response {
    let id = request_id();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|matched| matched.as_str().to_owned());
    let path = logged::path(route.as_deref(), request.uri().path());
    let route = route.unwrap_or_else(|| "none".to_owned());
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0.to_string()).unwrap_or_default();
    let span = tracing::info_span!("request", id);
    let start = Instant::now();
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().instrument(span.clone()).await;
    let mut response = answered.unwrap_or_else(|_| {
        tracing::error!(parent: &span, "a request panicked");
        (StatusCode::INTERNAL_SERVER_ERROR, "Internal server error. Try again later.\n").into_response()
    });
    let (status, elapsed) = (response.status().as_u16(), start.elapsed());
    tracing::info!(parent: &span, %method, path, status, ms = elapsed.as_secs_f64() * 1e3, peer, "answered");
    metrics::counter!("abide_http_requests_total", "route" => route.clone(), "status" => status.to_string())
        .increment(1);
    metrics::histogram!("abide_http_seconds", "route" => route).record(elapsed.as_secs_f64());
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// Unique among the processes of a machine, because it contains the process id.
fn request_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{:x}-{:x}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
