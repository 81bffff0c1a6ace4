//! Bytes of a repository, with headers that keep browsers from running them as a page of this site.

use super::error::ApiError;
use abide_core::Oid;
use abide_forge::browse::Browser;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use serde::Serialize;
use tokio::io::AsyncReadExt as _;
use tokio_util::io::ReaderStream;

/// `Content-Security-Policy` of raw files: no scripts, no subresources.
const SANDBOX: &str = "default-src 'none'; sandbox";

/// The field that a blob is written into.
const EMPTY_CONTENT: &str = r#""content":"""#;

/// Bytes of a blob that are encoded at a time: a multiple of three.
const PIECE: usize = 48 << 10;

/// Streams a blob of any size.
pub(super) async fn stream(browser: &Browser, oid: Oid) -> Result<Response, ApiError> {
    let stream = browser.stream(oid).await?;
    let length = stream.size();
    let mut response = of_type("application/octet-stream", Body::from_stream(ReaderStream::new(stream)));
    let tag = HeaderValue::from_str(&format!("\"{oid}\"")).expect("hexadecimal digits can stand in a header");
    response.headers_mut().insert(header::ETAG, tag);
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}

/// A blob as the field `content` of a JSON object, encoded piece by piece while it is sent. `shape` is the object with
/// that field empty.
pub(super) async fn stream_json(browser: &Browser, oid: Oid, shape: &impl Serialize) -> Result<Response, ApiError> {
    let whole = serde_json::to_string(shape).map_err(|_| ApiError::internal())?;
    let (before, after) = whole.split_once(EMPTY_CONTENT).ok_or_else(ApiError::internal)?;
    // Without its last quote, which follows the blob.
    let before = Bytes::from(format!("{before}{}", &EMPTY_CONTENT[..EMPTY_CONTENT.len() - 1]));
    let after = Bytes::from(format!("\"{after}"));
    let stream = browser.stream(oid).await?;
    let length = before.len() as u64 + stream.size().div_ceil(3) * 4 + after.len() as u64;
    let encoded = futures_util::stream::try_unfold(stream, |mut stream| async move {
        // Only the last chunk may have base64 padding, so the others are groups of three bytes.
        let mut piece = Vec::with_capacity(PIECE);
        (&mut stream).take(PIECE as u64).read_to_end(&mut piece).await?;
        let text = Bytes::from(STANDARD.encode(&piece));
        Ok::<_, std::io::Error>((!piece.is_empty()).then_some((text, stream)))
    });
    let once = |bytes| futures_util::stream::once(std::future::ready(Ok(bytes)));
    let body = Body::from_stream(once(before).chain(encoded).chain(once(after)));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    // A weak tag, so that the response may be compressed.
    let tag = HeaderValue::from_str(&format!("W/\"{oid}\"")).expect("hexadecimal digits can stand in a header");
    headers.insert(header::ETAG, tag);
    Ok(response)
}

/// Text that the server generated.
pub(super) fn text(media_type: &'static str, bytes: Vec<u8>) -> Response {
    of_type(media_type, Body::from(bytes))
}

fn of_type(media_type: &'static str, body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX)),
    ];
    (headers, body).into_response()
}
