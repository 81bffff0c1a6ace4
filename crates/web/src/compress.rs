//! Compression of pages, JSON, stylesheet and script, if the client accepts gzip. Packs, event streams, pictures and
//! raw files are not compressed; they have other routes or content types.
//!
//! The size of a compressed response reveals whether text that an attacker put into it repeats a secret (BREACH). Form
//! tokens are therefore masked anew in every response, and responses that show a secret are not compressed.

use async_compression::Level;
use async_compression::tokio::bufread::GzipEncoder;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::TryStreamExt as _;
use hyper::body::Body as _;
use std::io;
use tokio_util::io::{ReaderStream, StreamReader};

/// Smaller responses fit into one packet uncompressed.
const SMALLEST: u64 = 1024;

/// Content types that compress well.
const KINDS: [&str; 6] =
    ["text/html", "text/css", "text/javascript", "application/json", "image/svg+xml", "application/atom+xml"];

/// Compresses a response.
pub async fn compress(request: Request, next: Next) -> Response {
    let wanted = *request.method() != Method::HEAD && takes_gzip(request.headers());
    let mut response = next.run(request).await;
    if !is_compressible(&response) {
        return response;
    }
    response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if !wanted {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    let plain = StreamReader::new(body.into_data_stream().map_err(io::Error::other));
    let packed = GzipEncoder::with_quality(plain, Level::Fastest);
    Response::from_parts(parts, Body::from_stream(ReaderStream::new(packed)))
}

/// A strong `ETag` promises equal bytes, and compression changes the bytes.
fn is_compressible(response: &Response) -> bool {
    let headers = response.headers();
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let kind = text(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let tag = text(header::ETAG);
    KINDS.contains(&kind.as_str())
        && response.body().size_hint().lower() >= SMALLEST
        && (tag.is_empty() || tag.starts_with("W/"))
        && !text(header::CACHE_CONTROL).contains("no-store")
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !headers.contains_key(header::CONTENT_RANGE)
}

/// Whether a client accepts gzip, by name or by `*`.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    let mut any = false;
    for coding in lines.flat_map(|line| line.split(',')) {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let refused = parts.any(|part| {
            let part = part.to_ascii_lowercase();
            part.strip_prefix("q=").is_some_and(|q| q.trim().parse::<f32>().is_ok_and(|q| q <= 0.0))
        });
        match name.as_str() {
            "gzip" | "x-gzip" => return !refused,
            "*" => any = !refused,
            _ => (),
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_taken_where_the_client_says_so() {
        let takes = |value: &str| {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_str(value).unwrap())]);
            takes_gzip(&headers)
        };
        for yes in ["gzip", "br, gzip;q=0.5", "GZIP", "*", "deflate, *;q=0.1", "identity;q=0, gzip"] {
            assert!(takes(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip; q=0.0, *", "*;q=0", "identity"] {
            assert!(!takes(no), "{no}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn only_text_without_secrets_is_compressible() {
        let answer = |headers: &[(&'static str, &'static str)], size: usize| {
            let mut response = Response::new(Body::from("x".repeat(size)));
            for (name, value) in headers {
                response.headers_mut().insert(*name, HeaderValue::from_static(value));
            }
            is_compressible(&response)
        };
        let html = ("content-type", "text/html; charset=utf-8");
        assert!(answer(&[html], 2000));
        assert!(answer(&[("content-type", "application/json"), ("etag", "W/\"a\"")], 2000));
        assert!(!answer(&[html], 100), "small");
        assert!(!answer(&[html, ("cache-control", "no-store")], 2000), "a secret");
        assert!(!answer(&[html, ("etag", "\"a\"")], 2000), "a strong tag");
        assert!(!answer(&[html, ("content-encoding", "gzip")], 2000), "twice");
        for kind in ["text/event-stream", "image/png", "application/x-git-upload-pack-result", "text/plain"] {
            assert!(!answer(&[("content-type", kind)], 2000), "{kind}");
        }
    }
}
