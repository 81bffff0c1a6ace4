//! Limits of the relay protocol.

use std::time::Duration;

/// Limits of a connection and its messages. Configuration; advertised in the relay information document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Bytes of one event as sent. Real patches reach 150 KiB.
    pub event_bytes: usize,
    /// Bytes of one state (kind 30618), which names every ref of a repository: 10,000 refs take 650 KiB.
    pub state_bytes: usize,
    pub event_tags: usize,
    /// Events and coordinates named by one deletion request.
    pub deletion_targets: usize,
    /// Target repositories of one proposal.
    pub proposal_repos: usize,
    /// Bytes of a `d` tag that identifies a repository.
    pub identifier_bytes: usize,
    /// Subscriptions per connection.
    pub subscriptions: usize,
    /// Characters of a subscription id.
    pub subscription_id_chars: usize,
    /// Filters per REQ or COUNT.
    pub filters: usize,
    /// Values of one filter, over all its lists.
    pub filter_values: usize,
    /// Total weight of all subscribed filters of a connection, see [`crate::Filter::weight`].
    pub subscribed_values: usize,
    /// Stored events returned per filter.
    pub filter_limit: usize,
    /// Events of one connection that await admission.
    pub events_under_way: usize,
    /// Counts of one connection in progress.
    pub counts_under_way: usize,
    /// Event ids that a subscription remembers until its stored events are sent, to avoid duplicates.
    pub remembered_ids: usize,
    /// Reconciliations (NIP-77) per connection.
    pub reconciliations: usize,
    /// Events per reconciliation.
    pub reconciled_events: usize,
    /// Bytes of one reconciliation answer, before hexadecimal encoding.
    pub reconciliation_frame: u64,
    /// How far `created_at` may be ahead of our clock.
    pub ahead: Duration,
    /// Largest clock difference of a NIP-42 proof, in either direction.
    pub auth_window: Duration,
}

impl Limits {
    /// Size limit of an event of this kind.
    pub fn bytes_of(&self, kind: u16) -> usize {
        match kind {
            crate::kinds::STATE => self.state_bytes,
            _ => self.event_bytes,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 1 << 20,
            event_bytes: 256 << 10,
            // A message minus the frame around its event.
            state_bytes: (1 << 20) - 16,
            event_tags: 20_000,
            deletion_targets: 500,
            proposal_repos: 20,
            identifier_bytes: 1024,
            subscriptions: 500,
            subscription_id_chars: 64,
            filters: 20,
            filter_values: 5_000,
            subscribed_values: 50_000,
            filter_limit: 500,
            events_under_way: 1_000,
            counts_under_way: 20,
            remembered_ids: 20_000,
            reconciliations: 4,
            reconciled_events: 100_000,
            reconciliation_frame: 60_000,
            ahead: Duration::from_secs(15 * 60),
            auth_window: Duration::from_secs(10 * 60),
        }
    }
}
