//! Bytes of a repository, sent so that no browser takes them for one of our pages.

use super::error::ApiError;
use abide_core::Oid;
use abide_forge::browse::Browser;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use tokio_util::io::ReaderStream;

/// What is sent runs nothing and loads nothing, whatever it is.
const SANDBOX: &str = "default-src 'none'; sandbox";

/// A blob of any size, piece by piece.
pub(super) async fn stream(browser: &Browser, oid: Oid) -> Result<Response, ApiError> {
    let stream = browser.stream(oid).await?;
    let length = stream.size();
    let mut response = of_type("application/octet-stream", Body::from_stream(ReaderStream::new(stream)));
    let tag = HeaderValue::from_str(&format!("\"{oid}\"")).expect("hexadecimal digits can stand in a header");
    response.headers_mut().insert(header::ETAG, tag);
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}

/// Text that was made here.
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
