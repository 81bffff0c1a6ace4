//! What every handler has at hand.

use crate::api::{ApiLimits, Meter, Streams};
use crate::show::rendered::Rendered;
use abide_forge::Forge;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The use cases, and how metrics are written down.
#[derive(Clone)]
pub struct App {
    /// The use cases.
    pub forge: Forge,
    /// Renders the metrics in Prometheus' text format.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Counts requests to the API.
    pub(crate) api: Arc<Meter>,
    /// What pages were made of before.
    pub(crate) rendered: Arc<Rendered>,
    /// Places for those who listen to events.
    pub(crate) streams: Streams,
    /// When it comes, those who listen are let go.
    pub(crate) stop: CancellationToken,
}

impl App {
    /// Puts the parts together. `stop` comes when the server is to end.
    pub fn new(
        forge: Forge,
        metrics: Arc<dyn Fn() -> String + Send + Sync>,
        limits: ApiLimits,
        stop: CancellationToken,
    ) -> Self {
        let streams = Streams::new(limits);
        let api = Arc::new(Meter::new(limits, forge.clock().clone()));
        Self { forge, metrics, api, rendered: Arc::new(Rendered::new()), streams, stop }
    }

    /// An address of ours, made absolute.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.forge.settings().public_url)
    }
}
