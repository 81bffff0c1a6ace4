//! Connections beyond the limits: health checks are answered, all other requests are refused with 503.

use super::{ConnectionSlot, Peer};
use crate::slow::Patient;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tower::ServiceExt as _;

/// Maximum lifetime of such a connection.
const LIFE: Duration = Duration::from_secs(10);
/// Time for the head of its only request.
const HEAD: Duration = Duration::from_secs(3);

/// Whether a request is a health check or reads the metrics.
pub(super) fn is_health<B>(request: &Request<B>) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    reads && matches!(request.uri().path(), "/healthz" | "/readyz" | "/metrics")
}

/// Answers one request.
pub(super) async fn serve(stream: TcpStream, peer: Peer, router: Router) {
    let io = TokioIo::new(Patient::new(stream, LIFE));
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let router = router.clone();
        async move {
            if !is_health(&request) {
                return Ok(too_many());
            }
            let mut request = request.map(|_| Body::empty());
            request.extensions_mut().insert(peer);
            router.oneshot(request).await
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .keep_alive(false)
        .max_buf_size(16 * 1024)
        .serve_connection(io, service);
    if let Ok(Err(error)) = tokio::time::timeout(LIFE, connection).await {
        tracing::debug!(%error, "a connection over the limit ended early");
    }
}

/// Response to all other requests.
pub(super) fn too_many() -> Response {
    let message =
        "Too many open connections, from your IP address or in total. Close some, or try again in a few seconds.\n";
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "5"), (header::CONNECTION, "close")], message)
        .into_response()
}

/// Response body that keeps the request's slot until it is sent.
pub(super) struct Holding {
    body: Body,
    _held: ConnectionSlot,
}

impl Holding {
    pub(super) fn new(body: Body, held: ConnectionSlot) -> Self {
        Self { body, _held: held }
    }
}

impl HttpBody for Holding {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
