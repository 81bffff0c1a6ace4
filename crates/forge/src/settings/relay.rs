//! Settings of the relay.

use super::Rate;
use abide_core::settings::value::TICK;
use abide_core::settings::{count, duration, nonempty, text, truth, window};
use abide_nostr::RelayLimits;
use std::time::Duration;

abide_core::settings! {
    /// RelayLimits of the relay, and its description.
    #[derive(Debug, Clone)]
    pub struct RelaySettings in "relay" {
        /// Run a nostr relay at the public URL.
        [Common] enabled: bool = "true", truth;
        /// Name of the relay (NIP-11).
        [Common] name: String = "Abide", nonempty;
        /// Description of the relay (NIP-11).
        [Common] description: String = "Git repositories with nostr events around them.", text;
        /// Contact of the relay operator (NIP-11), e.g. mailto:admin@example.org.
        [Common] contact: String = "", text;
        /// Nostr public key of the relay operator (NIP-11), in hexadecimal.
        pubkey: String = "", hex_key;
        /// Text of repo_acceptance_criteria in NIP-11. Empty: a text that follows grasp.enabled and grasp.announce.
        acceptance: String = "", text;
        /// Text of curation in NIP-11. Empty: a text that follows grasp.deny.
        curation: String = "", text;
        /// Maximum concurrent relay connections.
        connections: usize = "2000", count(1..);
        /// Maximum concurrent relay connections per IP address.
        connections_per_ip: usize = "50", count(1..);
        /// Events published per IP address in relay.window.
        [Common] events_per_ip: i64 = "6000", count(1..);
        /// Window for relay.events_per_ip.
        window: Duration = "1m", window;
        /// Maximum new events queued per subscriber; beyond it, the subscriber is disconnected.
        outgoing: usize = "1000", count(1..);
        /// Maximum events counted per request (NIP-45).
        counted: i64 = "100000", count(1..);
        /// Interval of pings to relay clients.
        ping: Duration = "30s", duration(TICK..);
        /// Idle timeout of a relay connection.
        idle_timeout: Duration = "2m", duration(TICK..);
    }
    with {
        /// Addresses whose events are counted separately; all others share one count.
        tracked: usize = 100_000;
        /// Bytes of events in admission, over all connections; a quarter of it per network.
        queue_bytes: usize = 64 << 20;
        /// Events that are judged and committed together.
        batch: usize = 256;
        /// Announcements, states, PR events and deletions that are admitted in parallel.
        lanes: usize = 8;
        /// Ids of delivered events that are remembered, so that no event is delivered twice.
        remembered: usize = 50_000;
        /// Database queries that run at once.
        reads: usize = 6;
        /// Bytes of stored events that one read returns for one connection.
        page_bytes: usize = 1 << 20;
    }
    sections {
        /// RelayLimits of a connection and of its messages.
        limits: RelayLimits;
    }
}

impl RelaySettings {
    /// Limit of `relay.events_per_ip`.
    pub fn publishing(&self) -> Rate {
        Rate { times: self.events_per_ip, window: self.window }
    }
}

fn hex_key(text: &str) -> Result<String, String> {
    let digits = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    match text.is_empty() || (text.len() == 64 && digits) {
        true => Ok(text.to_owned()),
        false => Err("it must have 64 lowercase hexadecimal digits".into()),
    }
}
