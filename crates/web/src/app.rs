//! State of every handler.

use abide_forge::Forge;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Use cases, metrics and the shutdown signal.
#[derive(Clone)]
pub struct App {
    pub forge: Forge,
    /// Renders the metrics in Prometheus' text format.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Cancelled when the server stops: open streams and sockets end.
    pub stop: CancellationToken,
}

impl App {
    /// `stop` is cancelled when the server shuts down.
    pub fn new(forge: Forge, metrics: Arc<dyn Fn() -> String + Send + Sync>, stop: CancellationToken) -> Self {
        Self { forge, metrics, stop }
    }

    /// Absolute URL of a path of this site.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.forge.settings().public_url)
    }
}
