//! Webhooks and other outbound requests.

use abide_core::settings::value::TICK;
use abide_core::settings::{count, duration};
use abide_core::webhooks::Schedule;
use abide_outbound::{AllowList, OutboundLimits};
use std::time::Duration;

abide_core::settings! {
    /// Outbound requests.
    #[derive(Debug, Clone)]
    pub struct OutboundSettings in "outbound" {
        /// Hosts, IP addresses and networks that may be contacted although they are not public, e.g. ci.internal,10.0.0.0/8.
        [Common] allow: AllowList = "", AllowList::setting;
    }
    sections {
        limits: OutboundLimits;
    }
}

abide_core::settings! {
    /// Webhooks.
    #[derive(Debug, Clone)]
    pub struct WebhookSettings in "webhooks" {
        /// Maximum webhooks per repository.
        per_repo: i64 = "20", count(1..);
        /// Retention of deliveries, including queued ones.
        [Common] retention: Duration = "30d", duration(TICK..);
    }
    with {
        /// Webhooks that deliver concurrently.
        at_once: usize = 64;
        /// Deliveries of one webhook before other webhooks get their turn.
        in_a_row: usize = 50;
        /// Refs of one push that are delivered.
        refs_per_push: usize = 100;
        /// Commits per ref in a payload.
        commits: usize = 100;
        /// Size of a payload with commits. Beyond it, files and commits are omitted.
        payload_bytes: usize = 1 << 20;
    }
    sections {
        schedule: Schedule;
    }
}
