//! Opens a WebSocket to a relay.

use crate::dial::Connection;
use crate::gate::Slots;
use crate::relay::RelayUrl;
use crate::{Gate, GateError};
use std::net::IpAddr;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_tungstenite::{WebSocketStream, client_async_with_config, tungstenite};
use tungstenite::protocol::WebSocketConfig;

/// Initial size of the reading buffer, and the most that is read at once.
const READ: usize = 4 << 10;

/// Smallest limit of the writing buffer.
const WRITE: usize = 64 << 10;

/// A WebSocket to a relay. It holds a slot of the gate until it is dropped.
pub type Socket = WebSocketStream<Connection>;

/// Size limits of a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketLimits {
    /// Bytes of one message, in both directions. A longer one ends the connection.
    pub message: usize,
    /// Bytes of one received frame.
    pub frame: usize,
}

impl Gate {
    /// Opens a WebSocket, within [`OutboundLimits::total`](crate::OutboundLimits). Returns it with the address that the
    /// gate connected to. Does not follow redirects.
    pub async fn websocket(&self, relay: &RelayUrl, limits: SocketLimits) -> Result<(Socket, IpAddr), GateError> {
        let slot = self.slot(Slots::Sockets).await?;
        let total = self.limits().total;
        timeout(total, self.upgrade(relay, limits, slot)).await.unwrap_or(Err(GateError::TimedOut(total)))
    }

    async fn upgrade(
        &self,
        relay: &RelayUrl,
        limits: SocketLimits,
        slot: OwnedSemaphorePermit,
    ) -> Result<(Socket, IpAddr), GateError> {
        let config = WebSocketConfig::default()
            .max_message_size(Some(limits.message))
            .max_frame_size(Some(limits.frame))
            .read_buffer_size(READ)
            .write_buffer_size(0)
            .max_write_buffer_size(limits.message.max(WRITE));
        let connection = self.dial(relay.endpoint(), slot).await?;
        let peer = connection.peer();
        let opened = client_async_with_config(relay.as_str(), connection, Some(config)).await;
        let (socket, _) = opened.map_err(|error| GateError::Http(reason(&error)))?;
        Ok((socket, peer))
    }
}

fn reason(error: &tungstenite::Error) -> String {
    match error {
        tungstenite::Error::Http(response) => {
            format!("the relay answered with status {} instead of opening a WebSocket", response.status().as_u16())
        }
        error => format!("the WebSocket handshake failed: {error}"),
    }
}
