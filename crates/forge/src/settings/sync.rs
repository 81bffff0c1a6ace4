//! Settings of fetching from other servers.

use abide_core::settings::value::TICK;
use abide_core::settings::{bytes, count, duration, truth};
use abide_core::sync::attempts::{Delays, Origin};
use abide_core::sync::window::DomainLimits;
use std::time::Duration;

abide_core::settings! {
    /// Fetching from other servers.
    #[derive(Debug, Clone)]
    pub struct SyncSettings in "sync" {
        /// Fetch missing git data from the clone URLs of signed events.
        [Common] enabled: bool = "true", truth;
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
        /// Fetches from one network address that one node runs concurrently.
        per_address: usize = 2;
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
    /// Delay before git data is fetched for an event that came this way; `None` if nothing is fetched.
    pub fn delay(&self, arrival: Origin) -> Option<Duration> {
        self.enabled.then(|| self.delays.of(arrival))
    }
}

const RUN: Duration = Duration::from_secs(600);
