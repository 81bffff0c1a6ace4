//! The bytes of one channel: the client's request, its input, and our output.

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

/// SSH's data type code for standard error.
const STDERR: u32 = 1;

/// Packets queued between a channel and the git that reads them.
const INPUT_PACKETS: usize = 4;

/// Longest accepted value of `GIT_PROTOCOL`.
const MAX_PROTOCOL_LEN: usize = 256;

/// Request of a client on its channel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A shell, which we do not offer.
    Shell,
    Exec {
        /// As received.
        command: Vec<u8>,
        /// Requested git protocol version.
        version: ProtocolVersion,
    },
}

/// Whether we use this environment variable.
pub(crate) fn wants_variable(name: &str) -> bool {
    name == "GIT_PROTOCOL"
}

/// Waits for the client's request; `None` if it closes the channel instead.
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
            // `handler.rs` answers refused requests; unexpected data is dropped.
            _ => {}
        }
    }
}

/// A pipe from [`pump`] to the reader of the client's input.
pub(crate) fn pipe() -> (mpsc::Sender<Bytes>, impl AsyncRead + Unpin + Send + 'static) {
    let (sender, mut receiver) = mpsc::channel(INPUT_PACKETS);
    let packets = stream::poll_fn(move |context| receiver.poll_recv(context).map(|packet| packet.map(io::Result::Ok)));
    (sender, StreamReader::new(packets))
}

/// Reason why the client's input ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// The channel or the connection was closed.
    Closed,
    /// The client sends, but its reader has not read for too long.
    Stuck,
}

/// Forwards the client's input until the client leaves. End of input closes the pipe but not this loop, so that a
/// client that leaves is noticed during a long answer.
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
                    // The reader stopped reading.
                    Ok(Err(_)) => pipe = None,
                    Err(_) => return Gone::Stuck,
                }
            }
            Some(_) => {}
        }
    }
}

/// The client accepts no more output.
#[derive(Debug)]
pub(crate) struct Deaf;

/// Output to the client. Every write waits for the client's window, at most for the configured patience.
pub(crate) struct Output {
    write: ChannelWriteHalf<Msg>,
    flushes: Flushes,
    patience: Duration,
}

impl Output {
    pub(crate) fn new(write: ChannelWriteHalf<Msg>, flushes: Flushes, patience: Duration) -> Self {
        Self { write, flushes, patience }
    }

    /// Sends bytes to git.
    pub(crate) async fn send(&self, bytes: Bytes) -> Result<(), Deaf> {
        self.within(self.write.data_bytes(bytes)).await
    }

    /// Prints a line for the user on standard error.
    pub(crate) async fn say(&self, text: &str) -> Result<(), Deaf> {
        self.within(self.write.extended_data_bytes(STDERR, format!("{text}\n"))).await
    }

    /// A writer to git. The caller must apply a time limit.
    pub(crate) fn writer(&self) -> impl tokio::io::AsyncWrite + Unpin + Send + 'static {
        Paced::new(self.write.make_writer(), &self.flushes)
    }

    /// Ends the channel with an exit status.
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
