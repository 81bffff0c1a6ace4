//! What every handler has at hand.

use abide_forge::Forge;
use std::sync::Arc;

/// The use cases, and how metrics are written down.
#[derive(Clone)]
pub struct App {
    /// The use cases.
    pub forge: Forge,
    /// Renders the metrics in Prometheus' text format.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
}

impl App {
    /// An address of ours, made absolute.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.forge.settings().public_url)
    }
}
