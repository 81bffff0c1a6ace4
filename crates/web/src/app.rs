//! State of every handler.

use abide_forge::Forge;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The use cases, the metrics and the end of the server.
#[derive(Clone)]
pub struct App {
    /// The use cases.
    pub forge: Forge,
    /// Renders the metrics in Prometheus' text format.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Cancelled when the server stops: open streams and sockets end.
    pub stop: CancellationToken,
}

impl App {
    /// Puts the parts together. `stop` comes when the server is to end.
    pub fn new(forge: Forge, metrics: Arc<dyn Fn() -> String + Send + Sync>, stop: CancellationToken) -> Self {
        Self { forge, metrics, stop }
    }

    /// An address of ours, made absolute.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.forge.settings().public_url)
    }
}
