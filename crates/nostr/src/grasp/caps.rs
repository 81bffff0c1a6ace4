//! RelayLimits of purgatory entries.

use super::{Prefix, Refusal};
use abide_core::settings::{bytes, count};

abide_core::settings! {
    /// Most waiting entries.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Caps in "grasp" {
        /// Maximum entries in purgatory per nostr key.
        per_key: u64 = "100", count(1..);
        /// Maximum entries in purgatory per IP address.
        per_address: u64 = "500", count(1..);
        /// Maximum entries in purgatory.
        total as entries: u64 = "20000", count(1..);
        /// Maximum size of all events in purgatory.
        bytes as waiting_bytes: u64 = "512MiB", bytes(1..);
    }
}

/// Current counts of waiting entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Of the author.
    pub of_key: u64,
    /// From the sender's address.
    pub of_address: u64,
    /// In total.
    pub total: u64,
    /// Total bytes of events.
    pub bytes: u64,
}

/// Events that may wait with one announcement.
pub const ATTACHED_PER_REPO: u64 = 200;

/// Bytes of events that may wait with one announcement.
pub const ATTACHED_REPO_BYTES: u64 = 4 << 20;

/// Bytes of one author's events that may wait with announcements.
pub const ATTACHED_KEY_BYTES: u64 = 1 << 20;

/// Current usage of events that wait with announcements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Bytes of the author's events.
    pub key_bytes: u64,
    /// Events that wait with this announcement.
    pub of_repo: u64,
    /// Bytes of those events.
    pub repo_bytes: u64,
}

/// Whether an event of this size may wait with an announcement.
pub fn judge_attached(counts: &Attached, bytes: u64) -> Result<(), Refusal> {
    let full = counts.of_repo >= ATTACHED_PER_REPO || counts.repo_bytes + bytes > ATTACHED_REPO_BYTES;
    if full || counts.key_bytes + bytes > ATTACHED_KEY_BYTES {
        let reason = "too many events are pending for a repository without git data; publish again once the repository is served";
        return Err(Refusal::new(Prefix::RateLimited, reason));
    }
    Ok(())
}

/// Whether one more entry may wait. Replacing an entry does not count.
pub fn judge(caps: &Caps, counts: &Counts) -> Result<(), Refusal> {
    let refuse = |reason: &'static str| Err(Refusal::new(Prefix::RateLimited, reason));
    if counts.of_key >= caps.per_key {
        refuse("too many events of this key are waiting for git data; push the data, or wait until they expire")
    } else if counts.of_address >= caps.per_address {
        refuse("too many events from this IP address are waiting for git data; try again later")
    } else if counts.total >= caps.total || counts.bytes >= caps.bytes {
        refuse("too many events are waiting for git data; try again later")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_with_an_announcement_is_bounded_in_number_and_bytes() {
        let none = Attached { key_bytes: 0, of_repo: 0, repo_bytes: 0 };
        assert_eq!(judge_attached(&none, ATTACHED_KEY_BYTES), Ok(()));
        for full in [
            Attached { of_repo: ATTACHED_PER_REPO, ..none },
            Attached { repo_bytes: ATTACHED_REPO_BYTES, ..none },
            Attached { key_bytes: ATTACHED_KEY_BYTES, ..none },
        ] {
            assert_eq!(judge_attached(&full, 1).unwrap_err().prefix, Prefix::RateLimited);
        }
    }

    #[test]
    fn each_cap_holds_alone() {
        let caps = Caps { per_key: 1, per_address: 2, total: 3, bytes: 4 };
        let judged = |of_key, of_address, total, bytes| judge(&caps, &Counts { of_key, of_address, total, bytes });
        assert_eq!(judged(0, 1, 2, 3), Ok(()));
        for refused in [judged(1, 1, 2, 3), judged(0, 2, 2, 3), judged(0, 1, 3, 3), judged(0, 1, 2, 4)] {
            assert_eq!(refused.unwrap_err().prefix, Prefix::RateLimited);
        }
    }
}
