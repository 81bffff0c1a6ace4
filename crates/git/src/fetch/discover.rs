//! Asks a server what it offers.

use super::error::FetchError;
use super::offer::{Offer, Parser};
use super::remote::{Remote, RemoteRequest};
use super::reply::{Packets, ask};

/// Largest size of a list of refs.
pub(super) const MAX_LIST: usize = 16 << 20;

/// A repository on another server, with the server's offer.
pub struct Source<'r> {
    remote: &'r dyn Remote,
    offer: Offer,
}

impl<'r> Source<'r> {
    /// Asks a server for its offer. One of version 0 or 1 sends all its refs; more than 100,000, or 16 MiB of them, are
    /// an error.
    pub async fn discover(remote: &'r dyn Remote) -> Result<Self, FetchError> {
        let body = ask(remote, RemoteRequest::advertisement()).await?;
        let mut packets = Packets::new(body, "the advertisement", MAX_LIST);
        let mut parser = Parser::default();
        loop {
            if let Some(offer) = parser.packet(&packets.next().await?)? {
                return Ok(Self { remote, offer });
            }
        }
    }

    /// Offer of the server.
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    pub(super) fn remote(&self) -> &'r dyn Remote {
        self.remote
    }
}
