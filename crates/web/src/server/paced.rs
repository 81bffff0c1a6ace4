//! A request's body that must keep coming.
//!
//! Only the time that is spent waiting for the client counts, never the time that the server takes for what has come.
//! A body may be silent for a while, and must on average bring at least [`RATE`] bytes a second.

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Bytes a second that a body brings at least, once it has been waited for longer than it may be silent.
const RATE: u64 = 1024;

pub(super) struct Paced {
    inner: Incoming,
    pace: Pace,
    /// Set while the client is waited for.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

/// How long may still be waited for a body.
#[derive(Debug)]
struct Pace {
    silence: Duration,
    waited: Duration,
    bytes: u64,
}

impl Pace {
    /// The longest that the next bytes may take.
    fn patience(&self) -> Duration {
        let earned = self.silence + Duration::from_millis(self.bytes.saturating_mul(1000) / RATE);
        earned.saturating_sub(self.waited).min(self.silence)
    }

    fn came(&mut self, bytes: usize, after: Duration) {
        self.waited += after;
        self.bytes += bytes as u64;
    }
}

/// A body that ends with an error when its client is too slow.
pub(super) fn paced(inner: Incoming, silence: Duration) -> Body {
    Body::new(Paced { inner, pace: Pace { silence, waited: Duration::ZERO, bytes: 0 }, waiting: None })
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
            this.pace.came(bytes.unwrap_or(0), after);
            return Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)));
        }
        let patience = this.pace.patience();
        let (_, timer) = this.waiting.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(tokio::time::sleep_until(now + patience)))
        });
        ready!(timer.as_mut().poll(context));
        let slow = io::Error::new(io::ErrorKind::TimedOut, "the body of the request arrives too slowly");
        Poll::Ready(Some(Err(axum::Error::new(slow))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_body_may_be_silent_for_a_while_and_a_trickle_ends() {
        let mut pace = Pace { silence: 60 * SECOND, waited: Duration::ZERO, bytes: 0 };
        assert_eq!(pace.patience(), 60 * SECOND);
        pace.came(1, 59 * SECOND);
        assert!(pace.patience() < 2 * SECOND, "one byte a minute earns nothing");
        pace.came(64 * 1024, SECOND);
        assert_eq!(pace.patience(), 60 * SECOND, "and what came earns time again");
        for _ in 0..200 {
            pace.came(RATE as usize, SECOND);
        }
        assert_eq!(pace.patience(), 60 * SECOND, "the slowest rate that is enough");
    }
}
