//! Storage quotas of strangers: keys without an account that has a username.

use super::{Prefix, Refusal};
use abide_core::settings::{bytes, count};

/// A share of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Percent of the disk.
    Percent(u64),
    /// A fixed size.
    Bytes(u64),
}

impl Share {
    /// `20%` of the disk, or a size.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.strip_suffix('%') {
            Some(percent) => count(0..=100)(percent.trim())
                .map(Self::Percent)
                .map_err(|_| "a share of the disk must be 0% to 100%".to_owned()),
            None => bytes(..)(text)
                .map(Self::Bytes)
                .map_err(|_| "it must be a share of the disk (20%) or a size (4GiB)".to_owned()),
        }
    }

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

abide_core::settings! {
    /// Quotas of strangers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Quotas in "quota" {
        /// Maximum events per nostr key without a user name here.
        key_events: u64 = "20000", count(1..);
        /// Maximum size of events per nostr key without a user name here.
        key_bytes: u64 = "64MiB", bytes(1..);
        /// Maximum repositories per nostr key without a user name here.
        key_repos: u64 = "20", count(1..);
        /// Maximum size of git data per nostr key without a user name here.
        [Common] key_repo_bytes: u64 = "1GiB", bytes(1..);
        /// Maximum bytes per day from one IP address (IPv6: /64 network) for nostr keys without a user name here.
        address_bytes_per_day: u64 = "512MiB", bytes(1..);
        /// Repositories announced per day from one IP address (IPv6: /64 network) by nostr keys without a user name here.
        address_repos_per_day: u64 = "200", count(1..);
        /// Maximum bytes of all nostr keys without a user name here, together: a size, or a share of the disk.
        [Common] strangers_bytes: Share = "20%", Share::parse;
        /// Maximum repositories of all nostr keys without a user name here, together.
        strangers_repos: u64 = "20000", count(1..);
    }
    with {
        /// Share of the disk, in percent, that strangers must leave free.
        strangers_free_percent: u64 = 15;
    }
}

/// Bytes that a repository takes however little is in it: nine directories and files of a block each, and what the system
/// notes of every one. They count as git data of its owner.
pub const REPOSITORY_BYTES: u64 = 64 << 10;

/// Refs of pull requests (`refs/nostr/…`) that strangers may make in one repository. Each is a line of about 115 bytes in
/// every listing of refs: all of them are 230 kB.
pub const REPO_REFS: u64 = 2_000;

/// Such refs of one key, in all repositories together: five pull requests for as many repositories as one may name.
pub const KEY_REFS: u64 = 100;

/// Such refs from one network in a day, because keys are free: whoever wants to fill a repository needs a week.
pub const ADDRESS_REFS_PER_DAY: u64 = 300;

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
    /// Repositories that were announced from there today.
    pub address_repos_today: u64,
}

/// Refs of pull requests by strangers that are there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refs {
    /// In the repository.
    pub of_repo: u64,
    /// Of the author, in all repositories.
    pub of_key: u64,
    /// From the sender's network today.
    pub address_today: u64,
}

/// Whether a stranger may make a ref in a repository, and so many in all.
pub fn pr_refs(refs: &Refs, more: u64) -> Result<(), Refusal> {
    if refs.of_repo >= REPO_REFS {
        let what = "refs of pull requests by keys without an account";
        return refuse(format!("the repository has {} of {REPO_REFS} {what}", refs.of_repo));
    }
    if refs.of_key.saturating_add(more) > KEY_REFS {
        return refuse(format!("this key has {} of {KEY_REFS} refs of pull requests here", refs.of_key));
    }
    if refs.address_today.saturating_add(more) > ADDRESS_REFS_PER_DAY {
        let used = refs.address_today;
        return refuse(format!(
            "{used} of {ADDRESS_REFS_PER_DAY} refs of pull requests came from this IP address today"
        ));
    }
    Ok(())
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
            return refuse(format!("{free}% of the disk is free; below {least}% only accounts may write"));
        }
        match self.strangers {
            Some((used, most)) if used.saturating_add(bytes) > most => {
                refuse(format!("keys without an account use {used} of {most} bytes"))
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
        return refuse(format!("this key has {} of {} events", usage.events, quotas.key_events));
    }
    if over(usage.bytes, bytes, quotas.key_bytes) {
        return refuse(format!("this key has {} of {} bytes of events", usage.bytes, quotas.key_bytes));
    }
    if over(usage.address_today, bytes, quotas.address_bytes_per_day) {
        let (used, most) = (usage.address_today, quotas.address_bytes_per_day);
        return refuse(format!("this IP address sent {used} of {most} bytes today"));
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

/// Whether a stranger may have another repository, where all strangers have `of_all`.
pub fn repo(quotas: &Quotas, usage: &Usage, of_all: u64) -> Result<(), Refusal> {
    if usage.repos >= quotas.key_repos {
        return refuse(format!("this key has {} of {} repositories", usage.repos, quotas.key_repos));
    }
    if usage.address_repos_today >= quotas.address_repos_per_day {
        let (used, most) = (usage.address_repos_today, quotas.address_repos_per_day);
        return refuse(format!("{used} of {most} repositories were announced from this IP address today"));
    }
    if of_all >= quotas.strangers_repos {
        let most = quotas.strangers_repos;
        return refuse(format!("keys without an account have {of_all} of {most} repositories here"));
    }
    Ok(())
}

/// Bytes of git data that a stranger may still push.
pub fn pack_room(quotas: &Quotas, usage: &Usage, room: &Room) -> Result<u64, Refusal> {
    room.admit(quotas, 1)?;
    if usage.repo_bytes >= quotas.key_repo_bytes {
        let (used, most) = (usage.repo_bytes, quotas.key_repo_bytes);
        refuse(format!("this key has {used} of {most} bytes of git data"))?;
    }
    if usage.address_today >= quotas.address_bytes_per_day {
        let (used, most) = (usage.address_today, quotas.address_bytes_per_day);
        refuse(format!("this IP address sent {used} of {most} bytes today"))?;
    }
    let strangers = room.strangers.map_or(u64::MAX, |(used, most)| most.saturating_sub(used));
    let of_key = quotas.key_repo_bytes - usage.repo_bytes;
    Ok(of_key.min(quotas.address_bytes_per_day - usage.address_today).min(strangers))
}

/// Whether a stranger may store this many pushed bytes of git data.
pub fn pack(quotas: &Quotas, usage: &Usage, room: &Room, bytes: u64) -> Result<(), Refusal> {
    let left = pack_room(quotas, usage, room)?;
    if bytes > left {
        return refuse(format!("the push has {bytes} bytes of git data, but only {left} bytes are left"));
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
            address_repos_per_day: 3,
            strangers_bytes: Share::Bytes(0),
            strangers_repos: 10,
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
        assert!(refused(judged(used, Room::PLENTY, 6)).contains("this IP address sent 495 of 500 bytes"));
        let full = Room { strangers: Some((95, 100)), reserve: None };
        assert_eq!(judged(none, full, 5), Ok(()));
        assert!(refused(judged(none, full, 6)).contains("95 of 100 bytes"));
        let low = Room { strangers: None, reserve: Some(14) };
        assert!(refused(judged(none, low, 0)).contains("14% of the disk is free; below 15%"));
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
        assert_eq!(repo(&quotas(), &usage(1, 0, 0), 9), Ok(()));
        assert!(refused(repo(&quotas(), &usage(2, 0, 0), 0)).contains("2 of 2 repositories"));
        let today = |announced| Usage { address_repos_today: announced, ..Usage::default() };
        assert_eq!(repo(&quotas(), &today(2), 0), Ok(()));
        assert!(
            refused(repo(&quotas(), &today(3), 0)).contains("3 of 3 repositories were announced from this IP address")
        );
        assert!(refused(repo(&quotas(), &today(0), 10)).contains("keys without an account have 10 of 10 repositories"));
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
    fn refs_of_pull_requests_are_bounded_for_the_repository_the_key_and_the_address() {
        let none = Refs::default();
        assert_eq!(pr_refs(&none, KEY_REFS), Ok(()));
        assert_eq!(pr_refs(&Refs { of_repo: REPO_REFS - 1, of_key: KEY_REFS - 1, ..none }, 1), Ok(()));
        let full = refused(pr_refs(&Refs { of_repo: REPO_REFS, ..none }, 1));
        assert!(full.contains("the repository has 2000 of 2000 refs"), "{full}");
        let full = refused(pr_refs(&Refs { of_key: KEY_REFS - 19, ..none }, 20));
        assert!(full.contains("this key has 81 of 100 refs"), "{full}");
        let used = Refs { address_today: ADDRESS_REFS_PER_DAY, ..none };
        assert!(refused(pr_refs(&used, 1)).contains("300 of 300 refs of pull requests came from this IP address"));
    }

    #[test]
    fn a_share_of_the_disk_is_bytes_or_a_percentage() {
        assert_eq!(Share::Percent(20).of(Some(1_000)), Some(200));
        assert_eq!(Share::Percent(20).of(Some(u64::MAX)), Some(u64::MAX / 5));
        assert_eq!((Share::Percent(20).of(None), Share::Bytes(7).of(None)), (None, Some(7)));
    }
}
