//! How much may wait at once.

use super::{Prefix, Refusal};

/// How many entries may wait. Configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Of one key.
    pub per_key: u64,
    /// From one address of the network.
    pub per_address: u64,
    /// Altogether.
    pub total: u64,
    /// Bytes of events altogether.
    pub bytes: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self { per_key: 100, per_address: 500, total: 20_000, bytes: 512 << 20 }
    }
}

/// How many wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Of the author's.
    pub of_key: u64,
    /// From the sender's address.
    pub of_address: u64,
    /// Altogether.
    pub total: u64,
    /// Bytes of events altogether.
    pub bytes: u64,
}

/// Events that wait with one announcement.
pub const ATTACHED_PER_REPO: u64 = 200;

/// Bytes of events that wait with one announcement.
pub const ATTACHED_REPO_BYTES: u64 = 4 << 20;

/// Bytes of one author's events that wait with announcements.
pub const ATTACHED_KEY_BYTES: u64 = 1 << 20;

/// What waits with announcements already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Bytes of the author's.
    pub key_bytes: u64,
    /// Events that wait with the announcement.
    pub of_repo: u64,
    /// Their bytes.
    pub repo_bytes: u64,
}

/// Whether an event of so many bytes may wait with an announcement.
pub fn judge_attached(counts: &Attached, bytes: u64) -> Result<(), Refusal> {
    let full = counts.of_repo >= ATTACHED_PER_REPO || counts.repo_bytes + bytes > ATTACHED_REPO_BYTES;
    if full || counts.key_bytes + bytes > ATTACHED_KEY_BYTES {
        let reason = "too many events are pending for a repository without git data; publish again once the repository is served";
        return Err(Refusal::new(Prefix::RateLimited, reason));
    }
    Ok(())
}

/// Whether one more may wait. What takes the place of a waiting entry is not one more.
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
