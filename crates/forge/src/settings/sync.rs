//! Settings of fetching from other servers.

use abide_core::settings::value::{TICK, list};
use abide_core::settings::{bytes, count, duration, truth};
use abide_core::sync::attempts::{Delays, Origin};
use abide_core::sync::window::DomainLimits;
use abide_outbound::RelayUrl;
use std::time::Duration;

abide_core::settings! {
    /// Fetching from other servers.
    #[derive(Debug, Clone)]
    pub struct SyncSettings in "sync" {
        /// Fetch missing git data from the clone URLs of signed events.
        [Common] enabled: bool = "true", truth;
        /// Follow the relays that announcements name, and admit their events.
        follow: bool = "true", truth;
        /// Relays that are followed for all repositories, separated by commas.
        relays: Vec<RelayUrl> = "", relays;
        /// Maximum relays that one node follows.
        relays_at_once: usize = "32", count(1..=200);
        /// Maximum relays that all nodes follow.
        max_relays: i64 = "200", count(1..=10_000);
        /// Maximum size of one pack fetched from another server.
        max_pack: u64 = "1GiB", bytes(1..);
        /// Maximum identifiers for which git data is fetched concurrently, per node.
        at_once: usize = "4", count(1..=64);
        /// Maximum silence of a server during a fetch.
        idle_timeout: Duration = "5m", duration(TICK..=RUN);
    }
    with {
        /// Time after which a run ends and is queued again.
        run: Duration = RUN;
        /// Interval of looking for due identifiers.
        tick: Duration = Duration::from_millis(500);
        /// Budget of the key that names a URL, per hour: attempts, MiB and seconds.
        key_attempts: i64 = 240;
        key_mebibytes: i64 = 4_096;
        key_seconds: i64 = 1_800;
    }
    sections {
        delays: Delays;
        domains: DomainLimits;
    }
}

impl SyncSettings {
    /// Whether other relays are followed.
    pub fn follows(&self) -> bool {
        self.enabled && self.follow
    }

    /// Delay before git data is fetched for an event that came this way; `None` if nothing is fetched.
    pub fn delay(&self, arrival: Origin) -> Option<Duration> {
        self.enabled.then(|| self.delays.of(arrival))
    }
}

/// Parses relay URLs.
fn relays(text: &str) -> Result<Vec<RelayUrl>, String> {
    list(text).map(|url| url.parse().map_err(|rule| format!("{url:?} {rule}"))).collect()
}

const RUN: Duration = Duration::from_secs(600);
