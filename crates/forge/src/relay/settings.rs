//! Limits of the relay, with their defaults.

use crate::Rate;
use abide_nostr::Limits;
use std::time::Duration;

/// Limits of the relay, and its description.
#[derive(Debug, Clone)]
pub struct RelaySettings {
    /// Whether the relay runs.
    pub enabled: bool,
    /// Name of the server.
    pub name: String,
    pub description: String,
    /// Contact of the operator; may be empty.
    pub contact: String,
    /// The operator's key in hexadecimal; may be empty.
    pub pubkey: String,
    /// One sentence about accepted repositories. If empty, the text follows from the GRASP settings.
    pub acceptance: String,
    /// One sentence about excluded content. If empty, the text follows from the GRASP settings.
    pub curation: String,
    /// Limits of a connection and of its messages.
    pub limits: Limits,
    /// Open connections.
    pub connections: usize,
    /// Open connections from one address.
    pub connections_per_ip: usize,
    /// Rate of events from one address.
    pub events_per_ip: Rate,
    /// Addresses whose events are counted separately; all others share one count.
    pub tracked: usize,
    /// Bytes of events in admission, over all connections.
    pub queue_bytes: usize,
    /// Events that are judged and committed together.
    pub batch: usize,
    /// Announcements, states, proposals and deletions that are admitted in parallel.
    pub lanes: usize,
    /// New events that may wait for one reader; a reader with more is disconnected.
    pub outgoing: usize,
    /// Ids of delivered events that are remembered, so that no event is delivered twice.
    pub remembered: usize,
    /// Database queries that run at once.
    pub reads: usize,
    /// Bytes of stored events that one read returns for one connection.
    pub page_bytes: usize,
    /// Maximum count for each filter.
    pub counted: i64,
    /// Interval of pings to a silent client.
    pub ping: Duration,
    /// A client that sends nothing for this long, not even a pong, is disconnected.
    pub idle_timeout: Duration,
}

impl Default for RelaySettings {
    fn default() -> Self {
        Self {
            enabled: true,
            name: "Abide".into(),
            description: "Git repositories with nostr events around them.".into(),
            contact: String::new(),
            pubkey: String::new(),
            acceptance: String::new(),
            curation: String::new(),
            limits: Limits::default(),
            connections: 2_000,
            connections_per_ip: 50,
            events_per_ip: Rate { times: 6_000, window: Duration::from_secs(60) },
            tracked: 100_000,
            queue_bytes: 64 << 20,
            batch: 256,
            lanes: 8,
            outgoing: 1_000,
            remembered: 50_000,
            reads: 6,
            page_bytes: 1 << 20,
            counted: 100_000,
            ping: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(120),
        }
    }
}
