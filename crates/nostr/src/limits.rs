//! RelayLimits of the relay protocol.

use abide_core::settings::{bytes, count};
use std::time::Duration;

abide_core::settings! {
    /// RelayLimits of a connection and its messages. Advertised in the relay information document.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RelayLimits in "relay" {
        /// Maximum size of one message to the relay.
        message_bytes: usize = "1MiB", bytes(1..);
        /// Maximum size of one event.
        event_bytes: usize = "256KiB", bytes(1..);
        /// Maximum subscriptions per connection.
        subscriptions: usize = "500", count(1..);
        /// Maximum filters per subscription.
        filters: usize = "20", count(1..);
        /// Maximum values in all filters of one connection.
        subscribed_values: usize = "50000", count(1..);
        /// Maximum events in all reconciliations (NIP-77) of one connection.
        reconciled_events: usize = "100000", count(1..);
    }
    with {
        /// Bytes of one state (kind 30618), which names every ref of a repository: 10,000 refs take 650 KiB. The default
        /// message minus the frame around its event.
        state_bytes: usize = (1 << 20) - 16;
        event_tags: usize = 20_000;
        /// Events and coordinates named by one deletion request.
        deletion_targets: usize = 500;
        /// Target repositories of one PR event.
        pr_event_repos: usize = 20;
        /// Bytes of a `d` tag that identifies a repository.
        identifier_bytes: usize = 1024;
        /// Characters of a subscription id.
        subscription_id_chars: usize = 64;
        /// Values of one filter, over all its lists.
        filter_values: usize = 5_000;
        /// Stored events returned per filter.
        filter_limit: usize = 500;
        /// Events of one connection that await admission.
        events_under_way: usize = 1_000;
        /// Counts of one connection in progress.
        counts_under_way: usize = 20;
        /// Event ids that a subscription remembers until its stored events are sent, to avoid duplicates.
        remembered_ids: usize = 20_000;
        /// Reconciliations (NIP-77) per connection.
        reconciliations: usize = 4;
        /// Bytes of one reconciliation answer, before hexadecimal encoding.
        reconciliation_frame: u64 = 60_000;
        /// How far `created_at` may be ahead of our clock.
        ahead: Duration = Duration::from_secs(15 * 60);
        /// Largest clock difference of a NIP-42 proof, in either direction.
        auth_window: Duration = Duration::from_secs(10 * 60);
    }
}

impl RelayLimits {
    /// Size limit of an event of this kind.
    pub fn bytes_of(&self, kind: u16) -> usize {
        match kind {
            crate::kinds::STATE => self.state_bytes,
            _ => self.event_bytes,
        }
    }
}
