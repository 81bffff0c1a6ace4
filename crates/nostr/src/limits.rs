//! How much of everything is taken.

use std::time::Duration;

/// The bounds of a connection and of what comes over it. Configuration; advertised in the relay's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Bytes of one event as it was sent. Real patches reach 150 KiB.
    pub event_bytes: usize,
    /// Bytes of one state (kind 30618), which names every ref of a repository: 10,000 refs take 650 KiB.
    pub state_bytes: usize,
    /// Tags of one event.
    pub event_tags: usize,
    /// Events and coordinates that one deletion request names.
    pub deletion_targets: usize,
    /// Repositories that one proposal is for.
    pub proposal_repos: usize,
    /// Bytes of a `d` tag of the kinds that name repositories.
    pub identifier_bytes: usize,
    /// Subscriptions of one connection.
    pub subscriptions: usize,
    /// Characters of a subscription's id.
    pub subscription_id_chars: usize,
    /// Filters of one REQ or COUNT.
    pub filters: usize,
    /// Values of one filter, all its lists together.
    pub filter_values: usize,
    /// Values of all filters that one connection listens by, as [`crate::Filter::weight`] counts them.
    pub subscribed_values: usize,
    /// Stored events that one filter returns.
    pub filter_limit: usize,
    /// Events of one connection that are being admitted.
    pub events_under_way: usize,
    /// Counts of one connection that are being taken.
    pub counts_under_way: usize,
    /// Event ids that one subscription remembers until its stored events are sent, so that none comes twice.
    pub remembered_ids: usize,
    /// Reconciliations (NIP-77) of one connection.
    pub reconciliations: usize,
    /// Events in one reconciliation.
    pub reconciled_events: usize,
    /// Bytes of one reconciliation answer, before it is written in hexadecimal.
    pub reconciliation_frame: u64,
    /// How far ahead of our clock an event may be dated.
    pub ahead: Duration,
    /// How old, or how far ahead, a proof of a key to the relay may be.
    pub auth_window: Duration,
}

impl Limits {
    /// Bytes of one event of this kind.
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
            // A message less the frame around its event.
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
