//! A connection that closes if its client reads too slowly.
//!
//! hyper limits the time of request headers, but not of reading a response. A client that stops reading would keep its
//! git process and memory forever. A client that blocks writes and reads less than a minimum rate is disconnected.

use abide_core::patience::Patience;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// Minimum rate of a client while a write waits for it, in bytes per second.
const MIN_RATE: u64 = 1024;

pub(crate) struct Patient {
    inner: TcpStream,
    patience: Patience,
    /// Set while a write waits for the client: start of the wait, and its timeout.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Patient {
    pub(crate) fn new(inner: TcpStream, limit: Duration) -> Self {
        Self { inner, patience: Patience::new(limit, MIN_RATE), waiting: None }
    }

    /// Counts the waiting time and the written bytes; `bytes` reads them from the result.
    fn timed<T>(
        &mut self,
        context: &mut Context<'_>,
        wrote: Poll<io::Result<T>>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(result) = wrote {
            let waited = self.waiting.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
            let taken = result.as_ref().map_or(0, bytes);
            self.patience.waited(waited, taken as u64);
            return Poll::Ready(result);
        }
        let left = self.patience.left();
        let (_, timer) = self.waiting.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(tokio::time::sleep_until(now + left)))
        });
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes too few bytes")))
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, out)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.timed(context, wrote, |taken| *taken)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.inner).poll_write_vectored(context, pieces);
        self.timed(context, wrote, |taken| *taken)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.timed(context, flushed, |()| 0)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// A connection whose buffers are full, and its other end.
    #[allow(clippy::disallowed_methods, reason = "the test is its own client")]
    async fn full() -> (Patient, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        while server.try_write(&[0; 64 << 10]).is_ok() {}
        (Patient::new(server, Duration::from_secs(60)), client)
    }

    #[tokio::test]
    async fn a_client_that_takes_a_byte_now_and_then_loses_its_connection() {
        let (mut server, mut client) = full().await;
        tokio::time::pause();
        let drips = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(10)).await;
                let _ = client.read(&mut [0; 1]).await;
            }
        });
        let error = server.write_all(&[0; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drips.abort();
    }

    #[tokio::test]
    async fn a_client_that_takes_all_is_sent_all() {
        let (mut server, mut client) = full().await;
        let takes = tokio::spawn(async move {
            let mut bytes = vec![0; 1 << 20];
            while client.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
        });
        server.write_all(&[0; 8 << 20]).await.unwrap();
        server.shutdown().await.unwrap();
        drop(server);
        takes.await.unwrap();
    }
}
