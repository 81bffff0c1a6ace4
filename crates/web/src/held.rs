//! Memory limits of responses: concurrent requests per network, and unread response bytes. Without them, a client that
//! requests much and reads nothing would fill the memory.

use crate::server::Peer;
use abide_core::admission::{ByteBudget, Bytes as Taken, Network};
use abide_forge::queues::NetworkQueues;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Concurrent GET requests per network. Browsers open six connections.
const AT_ONCE: usize = 8;
/// Time that a request waits for a slot of its network.
const PATIENCE: Duration = Duration::from_secs(20);
/// Smaller responses are not counted: the number of connections bounds them.
const SMALL: u64 = 64 << 10;
/// Unread bytes per network. A single response may be larger.
const EACH: u64 = 32 << 20;
/// Unread bytes of all networks together.
const ALL: u64 = 192 << 20;
/// Bytes per chunk.
const PIECE: usize = 64 << 10;

/// One for the process, because the memory is one.
static MADE: LazyLock<NetworkQueues> = LazyLock::new(|| NetworkQueues::new(AT_ONCE));
static HELD: LazyLock<ByteBudget<Network>> = LazyLock::new(|| ByteBudget::new(ALL, EACH));

/// Runs a request in a slot of its network, and counts the response until the client has read it. Only GET and HEAD
/// wait for a slot: the body of other requests arrives while the handler runs, possibly slowly. Responses of unknown
/// size are streams with small buffers and are not counted.
pub async fn hold(request: Request, next: Next) -> Response {
    let ip = request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    let network = Network::of(ip);
    let slot = match matches!(*request.method(), Method::GET | Method::HEAD) {
        true => match tokio::time::timeout(PATIENCE, MADE.enter(Some(network))).await {
            Ok(slot) => Some(slot),
            Err(_) => {
                return busy(
                    "Your IP address has too many requests at once. Wait for their responses, or try again later.\n",
                );
            }
        },
        false => None,
    };
    let response = next.run(request).await;
    drop(slot);
    let Some(bytes) = response.body().size_hint().exact().filter(|bytes| *bytes > SMALL) else { return response };
    let Some(taken) = HELD.take(network, bytes) else { return busy(UNREAD) };
    let (parts, inner) = response.into_parts();
    Response::from_parts(parts, Body::new(Held { inner, rest: Bytes::new(), _taken: taken }))
}

/// The text for a network that has its share of unread answers.
const UNREAD: &str = "Your IP address has too many unread responses. Read them, or try again later.\n";

/// A body of known size whose chunks are made when the client reads them. Its bytes are counted until it is sent.
pub fn pieces(
    ip: Option<IpAddr>,
    size: u64,
    pieces: impl Iterator<Item = Bytes> + Send + 'static,
) -> Result<Body, Box<Response>> {
    let network = Network::of(ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
    let taken = match size > SMALL {
        true => Some(HELD.take(network, size).ok_or_else(|| Box::new(busy(UNREAD)))?),
        false => None,
    };
    Ok(Body::new(Pieces { pieces: Box::new(pieces), left: size, _taken: taken }))
}

/// A body that is produced while it is sent.
struct Pieces {
    pieces: Box<dyn Iterator<Item = Bytes> + Send>,
    left: u64,
    _taken: Option<Taken<Network>>,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.next();
        self.left = self.left.saturating_sub(piece.as_ref().map_or(0, |piece| piece.len() as u64));
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

fn busy(text: &'static str) -> Response {
    let mut refused = (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    refused.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    refused
}

/// A body in chunks. The connection asks for the next chunk when it has room, so the body is dropped after its last
/// byte.
struct Held {
    inner: Body,
    rest: Bytes,
    _taken: Taken<Network>,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.inner.size_hint();
        let rest = self.rest.len() as u64;
        match hint.exact() {
            Some(exact) => hint.set_exact(exact + rest),
            None => hint.set_lower(hint.lower() + rest),
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_given_in_pieces_and_says_how_long_it_is() {
        let budget = ByteBudget::new(1 << 30, 1 << 30);
        let text = "x".repeat(3 * PIECE + 7);
        let taken = budget.take(Network::of([192, 0, 2, 1].into()), text.len() as u64).unwrap();
        let mut body = Held { inner: Body::from(text.clone()), rest: Bytes::new(), _taken: taken };
        assert_eq!(body.size_hint().exact(), Some(text.len() as u64));
        let first = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        assert_eq!(first.unwrap().unwrap().into_data().unwrap().len(), PIECE);
        assert_eq!(body.size_hint().exact(), Some((text.len() - PIECE) as u64));
        let rest = axum::body::to_bytes(Body::new(body), usize::MAX).await.unwrap();
        assert_eq!(rest.len(), text.len() - PIECE);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_has_so_many_answers_made_at_once_and_others_do_not_wait_for_it() {
        use axum::Router;
        use axum::routing::get;
        use tower::ServiceExt as _;
        let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
        let waits = {
            let gate = gate.clone();
            || async move { gate.acquire().await.map(drop).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR) }
        };
        let quick = || async { "here" };
        let router = Router::new().route("/slow", get(waits)).route("/quick", get(quick).post(quick));
        let router = router.layer(axum::middleware::from_fn(hold));
        let ask = |method: Method, path: &str, last: u8| {
            let peer = Peer([198, 51, 100, last].into());
            let request = Request::builder().method(method).uri(path).extension(peer).body(Body::empty()).unwrap();
            tokio::spawn(router.clone().oneshot(request))
        };
        let slow: Vec<_> = (0..AT_ONCE).map(|_| ask(Method::GET, "/slow", 1)).collect();
        tokio::task::yield_now().await;
        assert_eq!(ask(Method::GET, "/quick", 2).await.unwrap().unwrap().status(), StatusCode::OK);
        assert_eq!(ask(Method::POST, "/quick", 1).await.unwrap().unwrap().status(), StatusCode::OK);
        let refused = ask(Method::GET, "/quick", 1).await.unwrap().unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "the clock went on while it waited");
        gate.add_permits(AT_ONCE);
        for answer in slow {
            assert_eq!(answer.await.unwrap().unwrap().status(), StatusCode::OK);
        }
        assert_eq!(ask(Method::GET, "/quick", 1).await.unwrap().unwrap().status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn a_list_counts_before_it_is_made_and_until_it_was_sent() {
        let ip = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 77)));
        let made = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let list = |count: usize| {
            let made = made.clone();
            (0..count).map(move |_| {
                made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Bytes::from_static(&[b'x'; PIECE])
            })
        };
        let size = |count: usize| (count * PIECE) as u64;
        let large = pieces(ip, size(1000), list(1000)).unwrap();
        assert_eq!(large.size_hint().exact(), Some(size(1000)));
        let refused = pieces(ip, size(2), list(2)).unwrap_err();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(made.load(std::sync::atomic::Ordering::Relaxed), 0, "nothing is made before it is sent");
        drop(pieces(ip, 5, list(0)).expect("what is small is not counted"));
        drop(large);
        let body = pieces(ip, size(3), list(3)).unwrap();
        assert_eq!(axum::body::to_bytes(body, usize::MAX).await.unwrap().len(), 3 * PIECE);
    }
}
