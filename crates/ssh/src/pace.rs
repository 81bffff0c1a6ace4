//! Limits the data in flight to a slow client.
//!
//! russh takes everything queued, up to megabytes, and does nothing else until the socket has taken it. To the writer
//! of those bytes, a slow client then looks like one that reads nothing. So a writer stays at most [`AHEAD`] bytes
//! ahead of the socket, and every wait is short for a client that makes progress.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use tokio::sync::watch;

/// Bytes that a writer may be ahead of the socket's last flush.
const AHEAD: usize = 128 * 1024;

/// Counts the complete flushes of a connection's socket.
pub(crate) type Flushes = watch::Sender<u64>;

/// A writer that waits for the socket.
pub(crate) struct Paced<W> {
    writer: W,
    flushes: watch::Receiver<u64>,
    /// Bytes written since the last flush of the socket.
    ahead: usize,
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<W> Paced<W> {
    pub(crate) fn new(writer: W, flushes: &Flushes) -> Self {
        Self { writer, flushes: flushes.subscribe(), ahead: 0, waiting: None }
    }

    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                ready!(waiting.as_mut().poll(context));
                self.waiting = None;
            }
            // A closed connection does not flush any more; the write below reports that.
            if self.flushes.has_changed().unwrap_or(true) {
                self.flushes.mark_unchanged();
                self.ahead = 0;
            }
            if self.ahead < AHEAD {
                return Poll::Ready(());
            }
            let mut flushes = self.flushes.clone();
            self.waiting = Some(Box::pin(async move {
                let _ = flushes.changed().await;
            }));
        }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Paced<W> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_turn(context));
        let written = ready!(Pin::new(&mut self.writer).poll_write(context, bytes))?;
        self.ahead += written;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt as _;
    use tokio::time::timeout;

    #[tokio::test(start_paused = true)]
    async fn a_writer_waits_for_the_socket_and_goes_on_when_it_was_flushed() {
        let flushes = Flushes::new(0);
        let mut paced = Paced::new(Vec::new(), &flushes);
        paced.write_all(&[0; AHEAD]).await.unwrap();
        let soon = Duration::from_secs(1);
        assert!(timeout(soon, paced.write_all(b"more")).await.is_err());
        flushes.send_modify(|count| *count += 1);
        timeout(soon, paced.write_all(&[0; AHEAD])).await.unwrap().unwrap();
        assert!(timeout(soon, paced.write_all(b"more")).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_gone_holds_up_nobody() {
        let flushes = Flushes::new(0);
        let mut paced = Paced::new(Vec::new(), &flushes);
        paced.write_all(&[0; AHEAD]).await.unwrap();
        drop(flushes);
        timeout(Duration::from_secs(1), paced.write_all(b"more")).await.unwrap().unwrap();
    }
}
