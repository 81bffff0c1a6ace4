//! A request body with a minimum rate.
//!
//! Only the time spent waiting for the client counts, not the time of the handler. A body may pause for
//! `server.body_timeout`, and must otherwise send at least [`RATE`] bytes per second.

use abide_core::patience::Patience;
use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Minimum bytes per second.
const RATE: u64 = 1024;

pub(super) struct Paced {
    inner: Incoming,
    patience: Patience,
    /// Set while the body waits for the client.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

/// A body that ends with an error when its client is too slow.
pub(super) fn paced(inner: Incoming, silence: Duration) -> Body {
    Body::new(Paced { inner, patience: Patience::new(silence, RATE), waiting: None })
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(context) {
            let after = this.waiting.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
            let bytes = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref().map(Bytes::len));
            this.patience.waited(after, bytes.unwrap_or(0) as u64);
            return Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)));
        }
        let patience = this.patience.left();
        let (_, timer) = this.waiting.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(tokio::time::sleep_until(now + patience)))
        });
        ready!(timer.as_mut().poll(context));
        let slow = io::Error::new(io::ErrorKind::TimedOut, "the request body arrives too slowly");
        Poll::Ready(Some(Err(axum::Error::new(slow))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
