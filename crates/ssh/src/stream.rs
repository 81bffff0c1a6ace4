//! A client socket that can be cut from outside.

use crate::pace::Flushes;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A stream that fails in both directions once its token is cancelled. russh runs a connection in its own task, which
/// cannot be aborted; this ends it.
pub(crate) struct Cuttable<S> {
    stream: S,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    flushes: Flushes,
}

impl<S> Cuttable<S> {
    pub(crate) fn new(stream: S, cut: CancellationToken, flushes: Flushes) -> Self {
        Self { stream, cut: Box::pin(cut.cancelled_owned()), flushes }
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.cut.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionAborted.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Cuttable<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, out)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Cuttable<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.flushes.send_modify(|count| *count = count.wrapping_add(1));
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn a_cut_ends_a_read_that_waits_and_every_later_write() {
        let (near, _far) = tokio::io::duplex(64);
        let cut = CancellationToken::new();
        let mut stream = Cuttable::new(near, cut.clone(), Flushes::new(0));
        stream.write_all(b"before").await.unwrap();
        let mut byte = [0];
        let (read, ()) = tokio::join!(stream.read(&mut byte), async { cut.cancel() });
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        assert_eq!(stream.write(b"after").await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }
}
