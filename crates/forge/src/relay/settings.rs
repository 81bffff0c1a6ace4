//! Limits of the relay, with their defaults.

use crate::Rate;
use abide_nostr::Limits;
use std::time::Duration;

/// What the relay takes, and what it says about itself.
#[derive(Debug, Clone)]
pub struct RelaySettings {
    /// Whether there is one.
    pub enabled: bool,
    /// The server's name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// How to reach the operator; may be empty.
    pub contact: String,
    /// The operator's key in hexadecimal; may be empty.
    pub pubkey: String,
    /// Whose repositories are taken, in a sentence; empty: what the settings of repositories come to.
    pub acceptance: String,
    /// What is left out by choice, in a sentence; empty: what the settings of repositories come to.
    pub curation: String,
    /// Bounds of a connection and of what comes over it.
    pub limits: Limits,
    /// Connections at once.
    pub connections: usize,
    /// Connections from one address.
    pub connections_per_ip: usize,
    /// Events from one address.
    pub events_per_ip: Rate,
    /// Addresses whose events are counted apart; all others share one count.
    pub tracked: usize,
    /// Bytes of events that are being admitted, over all connections.
    pub queue_bytes: usize,
    /// Events that are judged and committed together.
    pub batch: usize,
    /// Announcements, states, proposals and deletions that are being admitted at once.
    pub lanes: usize,
    /// New events that may wait for one reader, who is cut off beyond that.
    pub outgoing: usize,
    /// Ids of events that were passed on, so that none is twice.
    pub remembered: usize,
    /// Questions to the database at once.
    pub reads: usize,
    /// Bytes of stored events that are read at a time for one connection.
    pub page_bytes: usize,
    /// Events that are counted for each filter.
    pub counted: i64,
    /// How often a silent client is asked whether it is there.
    pub ping: Duration,
    /// A client that sends nothing for so long, not even an answer to that, is gone.
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
