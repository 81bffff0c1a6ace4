//! The bytes of one channel: what the client asks for, what it sends, what it is told.

use crate::pace::{Flushes, Paced};
use abide_forge::git::ProtocolVersion;
use bytes::Bytes;
use futures_util::stream;
use russh::server::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use std::io;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::io::StreamReader;

/// SSH's number for standard error.
const STDERR: u32 = 1;

/// Packets that may wait between a channel and the git that reads them.
const INPUT_PACKETS: usize = 4;

/// Longer values of `GIT_PROTOCOL` are nobody's.
const MAX_PROTOCOL_LEN: usize = 256;

/// What a client wants of its channel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A shell, which there is none.
    Shell,
    /// A command.
    Exec {
        /// As it came.
        command: Vec<u8>,
        /// Which of git's protocols it would like.
        version: ProtocolVersion,
    },
}

/// Whether an environment variable is one we listen to.
pub(crate) fn wants_variable(name: &str) -> bool {
    name == "GIT_PROTOCOL"
}

/// Waits for the client to say what it wants; `None` if it goes away instead.
pub(crate) async fn request(read: &mut ChannelReadHalf) -> Option<Request> {
    let mut version = ProtocolVersion::default();
    loop {
        match read.wait().await? {
            ChannelMsg::SetEnv { variable_name, variable_value, .. }
                if wants_variable(&variable_name) && variable_value.len() <= MAX_PROTOCOL_LEN =>
            {
                version = ProtocolVersion::parse(&variable_value);
            }
            ChannelMsg::Exec { command, .. } => return Some(Request::Exec { command, version }),
            ChannelMsg::RequestShell { .. } => return Some(Request::Shell),
            ChannelMsg::Close => return None,
            // What is refused is answered in `handler.rs`; bytes that nobody asked for go nowhere.
            _ => {}
        }
    }
}

/// A pipe from [`pump`] to whoever reads what the client sends.
pub(crate) fn pipe() -> (mpsc::Sender<Bytes>, impl AsyncRead + Unpin + Send + 'static) {
    let (sender, mut receiver) = mpsc::channel(INPUT_PACKETS);
    let packets = stream::poll_fn(move |context| receiver.poll_recv(context).map(|packet| packet.map(io::Result::Ok)));
    (sender, StreamReader::new(packets))
}

/// Why nothing more comes from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// The channel or the connection was closed.
    Closed,
    /// The client sends, but what should read it has stood still for too long.
    Stuck,
}

/// Hands over what the client sends until it goes away. Its end of input closes the pipe and does not end this, so that
/// a client that goes away is noticed during a long answer.
pub(crate) async fn pump(read: &mut ChannelReadHalf, pipe: mpsc::Sender<Bytes>, patience: Duration) -> Gone {
    let mut pipe = Some(pipe);
    loop {
        match read.wait().await {
            None | Some(ChannelMsg::Close) => return Gone::Closed,
            Some(ChannelMsg::Eof) => pipe = None,
            Some(ChannelMsg::Data { data }) if !data.is_empty() => {
                let Some(open) = &pipe else { continue };
                match timeout(patience, open.send(data)).await {
                    Ok(Ok(())) => {}
                    // Whatever read it has heard enough.
                    Ok(Err(_)) => pipe = None,
                    Err(_) => return Gone::Stuck,
                }
            }
            Some(_) => {}
        }
    }
}

/// The client cannot be told anything more.
#[derive(Debug)]
pub(crate) struct Deaf;

/// The way back to the client. Every write waits for the client's window, and no longer than its patience.
pub(crate) struct Output {
    write: ChannelWriteHalf<Msg>,
    flushes: Flushes,
    patience: Duration,
}

impl Output {
    pub(crate) fn new(write: ChannelWriteHalf<Msg>, flushes: Flushes, patience: Duration) -> Self {
        Self { write, flushes, patience }
    }

    /// Bytes for git.
    pub(crate) async fn send(&self, bytes: Bytes) -> Result<(), Deaf> {
        self.within(self.write.data_bytes(bytes)).await
    }

    /// A line for the person, on standard error.
    pub(crate) async fn say(&self, text: &str) -> Result<(), Deaf> {
        self.within(self.write.extended_data_bytes(STDERR, format!("{text}\n"))).await
    }

    /// A writer of bytes for git. Whoever uses it brings a time limit.
    pub(crate) fn writer(&self) -> impl tokio::io::AsyncWrite + Unpin + Send + 'static {
        Paced::new(self.write.make_writer(), &self.flushes)
    }

    /// Ends the channel.
    pub(crate) async fn finish(&self, exit_status: u32) -> Result<(), Deaf> {
        self.within(async {
            self.write.eof().await?;
            self.write.exit_status(exit_status).await?;
            self.write.close().await
        })
        .await
    }

    /// Closes a channel that was never used.
    pub(crate) async fn close(&self) -> Result<(), Deaf> {
        self.within(self.write.close()).await
    }

    async fn within(&self, work: impl Future<Output = Result<(), russh::Error>>) -> Result<(), Deaf> {
        match timeout(self.patience, work).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Deaf),
        }
    }
}
