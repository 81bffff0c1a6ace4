//! A WebSocket whose memory is bounded while its client is idle.

use super::counted::Counted;
use crate::App;
use abide_core::admission::Network;
use abide_forge::relay::Relay;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::io::ErrorKind;
use tokio_tungstenite::WebSocketStream;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Error, Message};

/// Buffers of the library beyond this size are replaced, because it never shrinks them.
const LARGE: usize = 64 << 10;

/// Initial size of the library's read buffer, and the maximum of one read.
const READ: usize = 4 << 10;

type Stream = WebSocketStream<Counted<TokioIo<Upgraded>>>;

/// An open WebSocket.
pub(super) struct Socket {
    /// `None` only while the buffers are replaced.
    stream: Option<Stream>,
    config: WebSocketConfig,
    /// Whether a large message passed since the buffers were made.
    has_grown: bool,
}

/// Error that ends reading from a client.
pub(super) enum Broken {
    TooLong,
    /// The unfinished message takes too much memory or time; the text names the limit.
    Refused(String),
    /// Violation of the WebSocket protocol.
    Protocol,
}

impl Socket {
    pub(super) async fn new(app: &App, connection: Upgraded, network: Option<Network>) -> Self {
        // A message over the relay's limit gets an error; one over twice the limit ends the connection.
        let largest = Relay::of(&app.forge).settings().limits.message_bytes.saturating_mul(2);
        let config = WebSocketConfig::default()
            .max_message_size(Some(largest))
            .max_frame_size(Some(largest))
            .read_buffer_size(READ)
            .write_buffer_size(0);
        let stream = Counted::new(TokioIo::new(connection), network);
        let stream = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        Self { stream: Some(stream), config, has_grown: false }
    }

    /// The next message; `None` if the client disconnected. Cancel-safe.
    pub(super) async fn recv(&mut self) -> Option<Result<Message, Broken>> {
        match self.stream.as_mut()?.next().await? {
            Ok(message) => {
                self.has_grown |= message.len() > LARGE;
                Some(Ok(message))
            }
            Err(Error::Capacity(_)) => Some(Err(Broken::TooLong)),
            Err(Error::Io(error)) => match error.kind() {
                ErrorKind::QuotaExceeded | ErrorKind::TimedOut => Some(Err(Broken::Refused(error.to_string()))),
                _ => None,
            },
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => None,
            Err(_) => Some(Err(Broken::Protocol)),
        }
    }

    /// Queues a message and writes the ones before it.
    pub(super) async fn feed(&mut self, message: Message) -> Result<(), Error> {
        self.has_grown |= message.len() > LARGE;
        self.stream()?.feed(message).await
    }

    pub(super) async fn flush(&mut self) -> Result<(), Error> {
        self.stream()?.flush().await
    }

    pub(super) async fn send(&mut self, message: Message) -> Result<(), Error> {
        self.stream()?.send(message).await
    }

    fn stream(&mut self) -> Result<&mut Stream, Error> {
        self.stream.as_mut().ok_or(Error::AlreadyClosed)
    }

    /// Replaces buffers that a large message made grow. Call it after a flush: the library then has nothing to write, and
    /// between two messages it has nothing to read either.
    pub(super) async fn release_buffers(&mut self) {
        let is_idle = |stream: &mut Stream| stream.get_ref().is_between_messages();
        if !self.has_grown {
            return;
        }
        if let Some(stream) = self.stream.take_if(is_idle) {
            let stream = WebSocketStream::from_raw_socket(stream.into_inner(), Role::Server, Some(self.config)).await;
            self.stream = Some(stream);
            self.has_grown = false;
        }
    }
}
