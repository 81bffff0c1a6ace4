//! Copies git's answer to a client. A separate task owns the process and its slot. It gives them up when the client
//! reads
//! too slowly, even if the reader is still held somewhere.

use crate::GitError;
use crate::child::Running;
use crate::pace::too_slow;
use abide_core::patience::Patience;
use bytes::{Buf, Bytes, BytesMut};
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, timeout};

/// Copy size; a pipe holds as much.
const PIECE: usize = 64 * 1024;

/// An answer to read to its end. Dropping it kills git.
#[derive(Debug)]
pub struct Pumped {
    piece: Bytes,
    pieces: mpsc::Receiver<Bytes>,
    pump: JoinHandle<io::Result<()>>,
    ended: bool,
}

/// Ends an answer from outside, even if its reader is still held.
#[derive(Debug)]
pub struct Cutter(AbortHandle);

impl Cutter {
    /// Kills git and the answer; its reader gets an error.
    pub fn cut(&self) {
        self.0.abort();
    }

    /// Returns once git has finished, checking at this interval.
    pub async fn ended(&self, look_every: Duration) {
        while !self.0.is_finished() {
            tokio::time::sleep(look_every).await;
        }
    }
}

impl Pumped {
    /// Handle that ends this answer.
    pub fn cutter(&self) -> Cutter {
        Cutter(self.pump.abort_handle())
    }
}

/// Everything that the pump task owns.
pub(crate) struct Pump<R, H> {
    pub running: Running,
    /// Slot and memory of the process.
    pub held: H,
    /// git's answer, or the rest of it.
    pub answer: R,
    /// Request bytes not yet sent to git.
    pub request: Option<(ChildStdin, Vec<u8>)>,
    pub patience: Patience,
    /// Hears how git failed.
    pub failed: Box<dyn FnOnce(&GitError) + Send>,
}

impl<R: AsyncRead + Unpin + Send + 'static, H: Send + 'static> Pump<R, H> {
    pub fn start(self) -> Pumped {
        let (sender, pieces) = mpsc::channel(1);
        let pump = tokio::spawn(self.run(sender));
        Pumped { piece: Bytes::new(), pieces, pump, ended: false }
    }

    async fn run(mut self, sender: mpsc::Sender<Bytes>) -> io::Result<()> {
        let request = self.request.take();
        let asking = async {
            if let Some((mut stdin, request)) = request {
                // If git stops reading, it also decides how the answer ends.
                let _ = stdin.write_all(&request).await;
            }
        };
        let (_, answered) = tokio::join!(asking, answer(self.answer, &sender, self.patience));
        if answered? == Answered::Whole {
            let judged = match self.running.wait().await {
                Ok(status) => self.running.judge(status).await,
                Err(error) => Err(error),
            };
            // git has reported its errors to the client as packets.
            if let Err(error) = judged {
                tracing::info!(%error, "git ended early");
                (self.failed)(&error);
                if matches!(error, GitError::UsedUp { .. }) {
                    return Err(io::Error::other(error));
                }
            }
        }
        drop(self.held);
        Ok(())
    }
}

#[derive(PartialEq, Eq)]
enum Answered {
    Whole,
    Unwanted,
}

async fn answer(
    mut from: impl AsyncRead + Unpin,
    to: &mpsc::Sender<Bytes>,
    mut patience: Patience,
) -> io::Result<Answered> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(PIECE);
        if from.read_buf(&mut buffer).await? == 0 {
            return Ok(Answered::Whole);
        }
        let piece = buffer.split().freeze();
        let since = Instant::now();
        match timeout(patience.left(), to.reserve()).await {
            Ok(Ok(room)) => {
                patience.waited(since.elapsed(), piece.len() as u64);
                room.send(piece);
            }
            Ok(Err(_)) => return Ok(Answered::Unwanted),
            Err(_) => return Err(too_slow(&patience)),
        }
    }
}

impl AsyncRead for Pumped {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.piece.is_empty() && !self.ended {
            match ready!(self.pieces.poll_recv(context)) {
                Some(piece) => self.piece = piece,
                // A pump error must reach the reader: a client must not take a partial answer for a whole one.
                None => {
                    let ended = ready!(Pin::new(&mut self.pump).poll(context));
                    self.ended = true;
                    ended.unwrap_or_else(|error| Err(io::Error::other(error)))?;
                }
            }
        }
        let length = out.remaining().min(self.piece.len());
        out.put_slice(&self.piece[..length]);
        self.piece.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl Drop for Pumped {
    fn drop(&mut self) {
        self.pump.abort();
    }
}
