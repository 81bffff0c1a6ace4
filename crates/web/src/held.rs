//! Answers that are held in memory until their client has taken them: how many bytes of them one address may have, and all
//! addresses together. A client that asks much and reads nothing would otherwise fill the memory with what it asked for.

use crate::server::Peer;
use abide_core::admission::Network;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

/// Smaller answers are bounded by the number of connections.
const SMALL: u64 = 64 << 10;
/// Bytes for one address. A single answer may be larger.
const EACH: u64 = 32 << 20;
/// Bytes for all addresses together.
const ALL: u64 = 192 << 20;
/// Bytes that the connection is given at once.
const PIECE: usize = 64 << 10;

/// One for the process, because the memory is one.
static HELD: LazyLock<Arc<Budget>> = LazyLock::new(|| Arc::new(Budget::new(EACH, ALL)));

/// Bytes in use, by address.
#[derive(Debug)]
struct Budget {
    each: u64,
    all: u64,
    used: Mutex<(u64, HashMap<Network, u64>)>,
}

impl Budget {
    fn new(each: u64, all: u64) -> Self {
        Self { each, all, used: Mutex::default() }
    }

    /// Takes bytes for an address; `None` if they are not to be had. An address that holds nothing may have more than its
    /// share, so that every answer can be sent to somebody.
    fn take(self: &Arc<Self>, network: Network, bytes: u64) -> Option<Taken> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, own) = (used.0, used.1.get(&network).copied().unwrap_or(0));
        let is_first = own == 0;
        if (all > 0 && all.saturating_add(bytes) > self.all) || (!is_first && own.saturating_add(bytes) > self.each) {
            return None;
        }
        used.0 += bytes;
        *used.1.entry(network).or_insert(0) += bytes;
        Some(Taken { budget: self.clone(), network, bytes })
    }
}

/// Bytes of a budget, until it is dropped.
#[derive(Debug)]
struct Taken {
    budget: Arc<Budget>,
    network: Network,
    bytes: u64,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut used = self.budget.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.0 -= self.bytes;
        match used.1.get_mut(&self.network) {
            Some(own) if *own > self.bytes => *own -= self.bytes,
            _ => _ = used.1.remove(&self.network),
        }
    }
}

/// Counts an answer as held until its client has taken it. Answers without a known size are streams, which hold little.
pub(crate) async fn hold(request: Request, next: Next) -> Response {
    let ip = request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    let response = next.run(request).await;
    let Some(bytes) = response.body().size_hint().exact().filter(|bytes| *bytes > SMALL) else { return response };
    let Some(taken) = HELD.take(Network::of(ip), bytes) else {
        let text = "Your address has too many answers that it has not read yet. Read them, or try again later.\n";
        let mut refused = (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
        refused.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        return refused;
    };
    let (parts, inner) = response.into_parts();
    Response::from_parts(parts, Body::new(Held { inner, rest: Bytes::new(), _taken: taken }))
}

/// A body in pieces: the connection asks for the next one when it has room, so the body lives as long as its bytes.
struct Held {
    inner: Body,
    rest: Bytes,
    _taken: Taken,
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

    fn network(last: u8) -> Network {
        Network::of([192, 0, 2, last].into())
    }

    #[test]
    fn an_address_has_its_share_and_one_answer_may_be_larger() {
        let budget = Arc::new(Budget::new(10, 100));
        let large = budget.take(network(1), 50).expect("the first answer of an address");
        assert!(budget.take(network(1), 1).is_none(), "it has had its share");
        let other = budget.take(network(2), 6).expect("somebody else has a share too");
        assert!(budget.take(network(2), 6).is_none());
        drop((large, other));
        assert_eq!(*budget.used.lock().unwrap(), (0, HashMap::new()));
    }

    #[test]
    fn all_addresses_together_have_no_more_than_there_is() {
        let budget = Arc::new(Budget::new(10, 25));
        let taken: Vec<_> = (0..5).map(|n| budget.take(network(n), 10)).collect();
        assert_eq!(taken.iter().flatten().count(), 2);
        drop(taken);
        assert!(budget.take(network(1), 1_000).is_some(), "an answer that is larger than all is sent alone");
    }

    #[tokio::test]
    async fn a_body_is_given_in_pieces_and_says_how_long_it_is() {
        let budget = Arc::new(Budget::new(1 << 30, 1 << 30));
        let text = "x".repeat(3 * PIECE + 7);
        let taken = budget.take(network(1), text.len() as u64).unwrap();
        let mut body = Held { inner: Body::from(text.clone()), rest: Bytes::new(), _taken: taken };
        assert_eq!(body.size_hint().exact(), Some(text.len() as u64));
        let first = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        assert_eq!(first.unwrap().unwrap().into_data().unwrap().len(), PIECE);
        assert_eq!(body.size_hint().exact(), Some((text.len() - PIECE) as u64));
        let rest = axum::body::to_bytes(Body::new(body), usize::MAX).await.unwrap();
        assert_eq!(rest.len(), text.len() - PIECE);
        assert_eq!(budget.used.lock().unwrap().0, 0);
    }
}
