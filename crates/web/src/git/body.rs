//! Bodies as streams of bytes, both ways. Nothing is collected.

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

/// How much is read from git at a time.
const PIECE: usize = 64 * 1024;

type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// The body of a request, unpacked if it is packed. Whoever reads it has limits on what comes out.
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

/// An answer that git makes while it is sent.
pub(super) fn from_reader(reader: impl AsyncRead + Send + 'static) -> Body {
    Body::from_stream(ReaderStream::with_capacity(reader, PIECE))
}

/// An answer that comes piece by piece, the first of which is there. Dropping it informs the sender that the client is
/// gone.
pub(super) fn from_channel(first: Option<Bytes>, pieces: mpsc::Receiver<Bytes>) -> Body {
    let rest = stream::unfold(pieces, |mut pieces| async {
        let piece = pieces.recv().await?;
        Some((piece, pieces))
    });
    Body::from_stream(stream::iter(first).chain(rest).map(Ok::<_, Infallible>))
}
