//! Settings of repositories governed by signed events.

use abide_core::account::Announce;
use abide_core::settings::{bytes, truth, word};
use abide_nostr::grasp::caps::Caps;
use abide_nostr::grasp::expiry::Expiry;
use abide_nostr::grasp::maintainers::{Bounds, Model};
use abide_nostr::grasp::quota::Quotas;
use abide_nostr::nip19::parse_npub;
use abide_nostr::{PublicKey, RelayLimits};
use std::collections::BTreeSet;
use std::sync::Arc;

abide_core::settings! {
    /// Settings of repositories governed by signed events.
    #[derive(Debug, Clone)]
    pub struct GraspSettings in "grasp" {
        /// Accept repositories over nostr (GRASP), governed by signed events.
        [Common] enabled: bool = "true", truth;
        /// Who may announce new repositories over nostr: open, linked (keys of named accounts) or off (only grasp.allow).
        /// Empty: open if signup.mode is open, otherwise linked.
        [Common] announce: Option<Announce> = "", announce;
        /// Keys that may always announce repositories: comma-separated npub1… keys.
        [Common] allow: BTreeSet<PublicKey> = "", keys;
        /// Keys that may never announce repositories: comma-separated npub1… keys.
        [Common] deny: BTreeSet<PublicKey> = "", keys;
        /// How a key becomes a maintainer: recursive (listed by one), or reciprocal (its own announcement lists one back).
        maintainers: Model = "recursive", word;
        /// Maximum size of commits pushed before their signed pull request, per IP address.
        unsigned_per_address: u64 = "1GiB", bytes(1..);
        /// Maximum size of all commits pushed before their signed pull request.
        unsigned_total: u64 = "10GiB", bytes(1..);
    }
    with {
        /// Bounds of the search for maintainers.
        maintainer_bounds: Bounds = Bounds::default();
        /// RelayLimits of accepted events: those of the relay.
        limits: Arc<RelayLimits> = Arc::default();
    }
    sections {
        /// How long entries wait in purgatory.
        expiry: Expiry;
        /// How much may wait in purgatory.
        caps: Caps;
        /// Storage quotas of strangers.
        quotas: Quotas;
    }
}

fn announce(text: &str) -> Result<Option<Announce>, String> {
    if text.is_empty() { Ok(None) } else { word(text).map(Some) }
}

fn keys(text: &str) -> Result<BTreeSet<PublicKey>, String> {
    let rule = || "it must be a comma-separated list of keys (npub1…)".to_owned();
    let parts = text.split(',').map(str::trim).filter(|_| !text.is_empty());
    parts.map(|part| parse_npub(part).map_err(|_| rule())).collect()
}
