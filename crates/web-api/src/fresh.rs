//! Conditional requests: `ETag` and `If-None-Match`.

use super::error::ApiError;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

/// Larger responses are sent without a tag. JSON responses are far smaller.
const LARGEST: usize = 64 << 20;

/// Adds an `ETag` to the response of a GET or HEAD request, and answers 304 if the client has that version. A response
/// with its own tag passes unchanged, so that it stays a stream; endless streams get no tag.
pub(super) async fn conditional(method: &Method, asked: Option<&HeaderValue>, response: Response) -> Response {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return response;
    }
    let mut response = response;
    about_caches(response.headers_mut());
    if response.status() != StatusCode::OK {
        return response;
    }
    if response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
    {
        return response;
    }
    let mut response = if response.headers().contains_key(header::ETAG) { response } else { tagged(response).await };
    let same = match (asked, response.headers().get(header::ETAG)) {
        (Some(asked), Some(tag)) => asked.to_str().is_ok_and(|asked| matches(asked, tag.as_bytes())),
        _ => false,
    };
    if same {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(header::CONTENT_LENGTH);
        response.headers_mut().remove(header::CONTENT_TYPE);
    }
    response
}

/// A response depends on the caller and on the requested form, and must be revalidated.
fn about_caches(headers: &mut HeaderMap) {
    headers.insert(header::VARY, HeaderValue::from_static("Authorization, Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
}

async fn tagged(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, LARGEST).await else { return ApiError::internal().into_response() };
    let digest = Sha256::digest(&bytes);
    let hex = hex::encode(&digest[..16]);
    let tag = HeaderValue::from_str(&format!("W/\"{hex}\"")).expect("hexadecimal digits can stand in a header");
    parts.headers.insert(header::ETAG, tag);
    Response::from_parts(parts, Body::from(bytes))
}

/// Whether `If-None-Match` contains the tag. GET compares tags weakly (RFC 9110).
fn matches(asked: &str, tag: &[u8]) -> bool {
    let plain = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let tag = String::from_utf8_lossy(tag);
    asked.trim() == "*" || asked.split(',').any(|one| plain(one) == plain(&tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_without_their_weakness() {
        for asked in ["W/\"a\"", "\"a\"", "\"b\", W/\"a\"", "*", " \"a\" "] {
            assert!(matches(asked, b"W/\"a\""), "{asked}");
        }
        for asked in ["", "a", "\"b\"", "W/\"A\"", "\"a"] {
            assert!(!matches(asked, b"W/\"a\""), "{asked}");
        }
    }
}
