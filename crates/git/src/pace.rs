//! A reader that fails when its peer is too slow.

use abide_core::patience::Patience;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Error for a peer below the minimum rate.
pub fn too_slow(patience: &Patience) -> io::Error {
    let text = format!(
        "slower than {} bytes per second for {} s; check the connection and try again",
        patience.bytes_per_second().max(1),
        patience.full().as_secs()
    );
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// A reader with a minimum rate. Only the time in which a read is pending counts.
#[derive(Debug)]
pub struct Paced<R> {
    reader: R,
    patience: Patience,
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<R> Paced<R> {
    pub fn new(reader: R, patience: Patience) -> Self {
        Self { reader, patience, waiting: None }
    }

    /// Begins anew with another patience, where the other end has done what was asked of it.
    pub fn renew(&mut self, patience: Patience) {
        self.patience = patience;
        self.waiting = None;
    }

    /// The reader without patience.
    pub fn into_inner(self) -> R {
        self.reader
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Paced<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = out.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut this.reader).poll_read(context, out) {
            let waited = this.waiting.take().map(|(since, _)| since.elapsed()).unwrap_or_default();
            this.patience.waited(waited, (out.filled().len() - before) as u64);
            return Poll::Ready(read);
        }
        let left = this.patience.left();
        let (_, sleep) = this.waiting.get_or_insert_with(|| {
            let since = Instant::now();
            (since, Box::pin(sleep_until(since + left)))
        });
        match sleep.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(too_slow(&this.patience))),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const FULL: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_drips_is_given_up_like_a_silent_one() {
        let (mut client, ours) = tokio::io::duplex(64);
        let dripping = tokio::spawn(async move {
            while client.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(30)).await;
            }
        });
        let mut read = Vec::new();
        let error = Paced::new(ours, Patience::new(FULL, 1024)).read_to_end(&mut read).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(read.len() <= 3, "{}", read.len());
        dripping.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_nobody_reads_does_not_count() {
        let (mut client, ours) = tokio::io::duplex(64);
        let mut paced = Paced::new(ours, Patience::new(FULL, 1024));
        for _ in 0..5 {
            client.write_all(b"x").await.unwrap();
            tokio::time::sleep(10 * FULL).await;
            assert_eq!(paced.read_u8().await.unwrap(), b'x');
        }
    }
}
