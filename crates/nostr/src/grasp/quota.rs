//! Storage quotas of strangers: keys without an account that has a username.

use super::{Prefix, Refusal};

/// A share of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Percent of the disk.
    Percent(u64),
    /// A fixed size.
    Bytes(u64),
}

impl Share {
    /// The share in bytes for a disk of this size; `None` if the size is unknown.
    pub fn of(self, disk: Option<u64>) -> Option<u64> {
        match self {
            Self::Percent(percent) => {
                disk.map(|bytes| u64::try_from(u128::from(bytes) * u128::from(percent) / 100).unwrap_or(u64::MAX))
            }
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

/// Quotas of strangers. Configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Events per key, stored or in purgatory.
    pub key_events: u64,
    /// Bytes of events per key.
    pub key_bytes: u64,
    /// Repositories per key, served or in purgatory.
    pub key_repos: u64,
    /// Bytes of git data per key.
    pub key_repo_bytes: u64,
    /// Bytes per network per day.
    pub address_bytes_per_day: u64,
    /// Total bytes of all strangers.
    pub strangers_bytes: Share,
    /// Share of the disk, in percent, that strangers must leave free.
    pub strangers_free_percent: u64,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            key_events: 20_000,
            key_bytes: 64 << 20,
            key_repos: 20,
            key_repo_bytes: 1 << 30,
            address_bytes_per_day: 512 << 20,
            strangers_bytes: Share::Percent(20),
            strangers_free_percent: 15,
        }
    }
}

/// Current usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Events of the key.
    pub events: u64,
    /// Bytes of events of the key.
    pub bytes: u64,
    /// Repositories of the key.
    pub repos: u64,
    /// Bytes of git data of the key.
    pub repo_bytes: u64,
    /// Bytes from the sender's network today.
    pub address_today: u64,
}

/// Space left for all strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes used by all strangers and their limit; `None` if the disk size is unknown.
    pub strangers: Option<(u64, u64)>,
    /// Free share of the disk in percent, if it is below the strangers' reserve.
    pub reserve: Option<u64>,
}

impl Room {
    /// No limits.
    pub const PLENTY: Self = Self { strangers: None, reserve: None };

    /// The space left after storing this many bytes.
    pub fn after(self, bytes: u64) -> Self {
        Self { strangers: self.strangers.map(|(used, most)| (used.saturating_add(bytes), most)), ..self }
    }

    /// Whether strangers may store this many more bytes.
    fn admit(&self, quotas: &Quotas, bytes: u64) -> Result<(), Refusal> {
        if let Some(free) = self.reserve {
            let least = quotas.strangers_free_percent;
            return refuse(format!("{free} % of the disk are free, and below {least} % only accounts may write"));
        }
        match self.strangers {
            Some((used, most)) if used.saturating_add(bytes) > most => {
                refuse(format!("keys without an account have {used} of {most} bytes here"))
            }
            _ => Ok(()),
        }
    }
}

const WAY_OUT: &str = "link the key to an account on this site";

fn refuse(what: String) -> Result<(), Refusal> {
    Err(Refusal::new(Prefix::RateLimited, format!("quota: {what}; {WAY_OUT}")))
}

/// Whether a stranger may store another event of this size.
pub fn event(quotas: &Quotas, usage: &Usage, room: &Room, bytes: u64) -> Result<(), Refusal> {
    room.admit(quotas, bytes)?;
    let over = |used: u64, more: u64, most: u64| used.saturating_add(more) > most;
    if over(usage.events, 1, quotas.key_events) {
        return refuse(format!("this key has {} of {} events here", usage.events, quotas.key_events));
    }
    if over(usage.bytes, bytes, quotas.key_bytes) {
        return refuse(format!("this key has {} of {} bytes of events here", usage.bytes, quotas.key_bytes));
    }
    if over(usage.address_today, bytes, quotas.address_bytes_per_day) {
        let (used, most) = (usage.address_today, quotas.address_bytes_per_day);
        return refuse(format!("{used} of {most} bytes came from this address today"));
    }
    Ok(())
}

/// Whether to keep a stranger's deletion request, given usage before and after its execution. A request that frees at
/// least as much as it takes is kept even when the quota is used up.
pub fn deletion(quotas: &Quotas, before: &Usage, after: &Usage, room: &Room) -> Result<(), Refusal> {
    if after.events <= before.events && after.bytes <= before.bytes {
        return Ok(());
    }
    event(quotas, before, room, after.bytes.saturating_sub(before.bytes))
}

/// Whether a stranger may have another repository.
pub fn repo(quotas: &Quotas, usage: &Usage) -> Result<(), Refusal> {
    if usage.repos >= quotas.key_repos {
        return refuse(format!("this key has {} of {} repositories here", usage.repos, quotas.key_repos));
    }
    Ok(())
}

/// Bytes of git data that a stranger may still push.
pub fn pack_room(quotas: &Quotas, usage: &Usage, room: &Room) -> Result<u64, Refusal> {
    room.admit(quotas, 1)?;
    if usage.repo_bytes >= quotas.key_repo_bytes {
        let (used, most) = (usage.repo_bytes, quotas.key_repo_bytes);
        refuse(format!("this key has {used} of {most} bytes of git data here"))?;
    }
    if usage.address_today >= quotas.address_bytes_per_day {
        let (used, most) = (usage.address_today, quotas.address_bytes_per_day);
        refuse(format!("{used} of {most} bytes came from this address today"))?;
    }
    let strangers = room.strangers.map_or(u64::MAX, |(used, most)| most.saturating_sub(used));
    let of_key = quotas.key_repo_bytes - usage.repo_bytes;
    Ok(of_key.min(quotas.address_bytes_per_day - usage.address_today).min(strangers))
}

/// Whether a stranger may store this many pushed bytes of git data.
pub fn pack(quotas: &Quotas, usage: &Usage, room: &Room, bytes: u64) -> Result<(), Refusal> {
    let left = pack_room(quotas, usage, room)?;
    if bytes > left {
        return refuse(format!("the push has {bytes} bytes of git data, and {left} bytes are left"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quotas() -> Quotas {
        Quotas {
            key_events: 3,
            key_bytes: 100,
            key_repos: 2,
            key_repo_bytes: 1_000,
            address_bytes_per_day: 500,
            strangers_bytes: Share::Bytes(0),
            strangers_free_percent: 15,
        }
    }

    fn refused(judged: Result<(), Refusal>) -> String {
        let refusal = judged.unwrap_err();
        assert_eq!(refusal.prefix, Prefix::RateLimited);
        assert!(refusal.reason.starts_with("quota: ") && refusal.reason.contains("account"), "{refusal}");
        refusal.to_string()
    }

    #[test]
    fn each_quota_of_events_holds_alone_and_is_named_with_its_figure() {
        let judged = |usage: Usage, room: Room, bytes| event(&quotas(), &usage, &room, bytes);
        let none = Usage::default();
        assert_eq!(judged(Usage { events: 2, bytes: 90, ..none }, Room::PLENTY, 10), Ok(()));
        assert!(refused(judged(Usage { events: 3, ..none }, Room::PLENTY, 1)).contains("3 of 3 events"));
        assert!(refused(judged(Usage { bytes: 91, ..none }, Room::PLENTY, 10)).contains("91 of 100 bytes"));
        let used = Usage { address_today: 495, ..none };
        assert!(refused(judged(used, Room::PLENTY, 6)).contains("495 of 500 bytes came from this address"));
        let full = Room { strangers: Some((95, 100)), reserve: None };
        assert_eq!(judged(none, full, 5), Ok(()));
        assert!(refused(judged(none, full, 6)).contains("95 of 100 bytes"));
        let low = Room { strangers: None, reserve: Some(14) };
        assert!(refused(judged(none, low, 0)).contains("14 % of the disk are free, and below 15 %"));
    }

    #[test]
    fn a_deletion_that_frees_what_it_takes_is_kept_where_the_quota_is_used_up() {
        let usage = |events, bytes| Usage { events, bytes, ..Usage::default() };
        let judged = |before, after| deletion(&quotas(), &before, &after, &Room::PLENTY);
        assert_eq!(judged(usage(3, 100), usage(3, 100)), Ok(()));
        assert_eq!(judged(usage(3, 100), usage(2, 80)), Ok(()));
        assert!(refused(judged(usage(3, 100), usage(3, 101))).contains("3 of 3 events"));
        assert_eq!(judged(usage(1, 10), usage(2, 50)), Ok(()));
    }

    #[test]
    fn repositories_and_git_data_have_quotas_of_their_own() {
        let usage = |repos, repo_bytes, address_today| Usage { repos, repo_bytes, address_today, ..Usage::default() };
        assert_eq!(repo(&quotas(), &usage(1, 0, 0)), Ok(()));
        assert!(refused(repo(&quotas(), &usage(2, 0, 0))).contains("2 of 2 repositories"));
        let left = |usage: Usage, room| pack_room(&quotas(), &usage, &room);
        assert_eq!(left(usage(0, 0, 0), Room::PLENTY), Ok(500));
        assert_eq!(left(usage(0, 900, 0), Room::PLENTY), Ok(100));
        assert_eq!(left(usage(0, 0, 0), Room { strangers: Some((7, 10)), reserve: None }), Ok(3));
        for used in [usage(0, 1_000, 0), usage(0, 2_000, 0), usage(0, 0, 500)] {
            refused(left(used, Room::PLENTY).map(drop));
        }
        assert_eq!(pack(&quotas(), &usage(0, 900, 0), &Room::PLENTY, 100), Ok(()));
        assert!(refused(pack(&quotas(), &usage(0, 900, 0), &Room::PLENTY, 101)).contains("100 bytes are left"));
    }

    #[test]
    fn a_share_of_the_disk_is_bytes_or_a_percentage() {
        assert_eq!(Share::Percent(20).of(Some(1_000)), Some(200));
        assert_eq!(Share::Percent(20).of(Some(u64::MAX)), Some(u64::MAX / 5));
        assert_eq!((Share::Percent(20).of(None), Share::Bytes(7).of(None)), (None, Some(7)));
    }
}
