//! Answers that the client may still have: `ETag` and `If-None-Match`.

use super::error::ApiError;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

/// No JSON answer is nearly as large; a larger one is sent without a tag.
const LARGEST: usize = 64 << 20;

/// Tags an answer to a reading request, and sends none of it to a client that has it already. An answer that comes
/// with a tag of its own is taken as it is, so that a stream stays one; one that goes on for ever has no tag.
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

/// Whether one of the tags that a client has is this one. Weak or strong makes no difference for reading.
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
