//! Request and response bodies as streams; none is collected in memory.

use super::{Service, answer};
use async_compression::tokio::bufread::GzipDecoder;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use std::convert::Infallible;
use std::io;
use tokio::io::{AsyncRead, BufReader};
use tokio::sync::mpsc;
use tokio_util::io::{ReaderStream, StreamReader};

/// Bytes per read from git.
const PIECE: usize = 64 * 1024;

type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// The request body, with gzip decoded. The reader limits the decoded size.
pub(super) fn reader(request: Request, service: Service) -> Result<Reader, Box<Response>> {
    let text = |name| request.headers().get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
    let expected = format!("application/x-{}-request", service.name());
    if text(header::CONTENT_TYPE) != Some(expected.as_str()) {
        let rule = format!("The Content-Type of this request must be {expected}.");
        return Err(Box::new(answer::unsupported(&rule)));
    }
    let gzip = match text(header::CONTENT_ENCODING) {
        None | Some("identity") => false,
        Some("gzip" | "x-gzip") => true,
        Some(_) => return Err(Box::new(answer::unsupported("Unsupported Content-Encoding: use gzip or none."))),
    };
    let raw = StreamReader::new(request.into_body().into_data_stream().map_err(io::Error::other));
    Ok(if gzip { Box::new(GzipDecoder::new(BufReader::new(raw))) } else { Box::new(raw) })
}

/// A response that git produces while it is sent.
pub(super) fn from_reader(reader: impl AsyncRead + Send + 'static) -> Body {
    Body::from_stream(ReaderStream::with_capacity(reader, PIECE))
}

/// A streamed response with its first chunk. Dropping it closes the channel, so the sender notices that the client
/// disconnected.
pub(super) fn from_channel(first: Option<Bytes>, pieces: mpsc::Receiver<Bytes>) -> Body {
    let rest = stream::unfold(pieces, |mut pieces| async {
        let piece = pieces.recv().await?;
        Some((piece, pieces))
    });
    Body::from_stream(stream::iter(first).chain(rest).map(Ok::<_, Infallible>))
}
