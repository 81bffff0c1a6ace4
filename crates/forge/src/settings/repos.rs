//! Repositories: pushes, life cycle, browsing, disk space and background jobs.

use super::Rate;
use abide_core::settings::value::TICK;
use abide_core::settings::{bytes, count, duration};
use std::time::Duration;

abide_core::settings! {
    /// Free disk space.
    #[derive(Debug, Clone)]
    pub struct DiskSettings in "server" {
        /// Free disk space (blocks and inodes) below which all writes are refused, in percent.
        [Common] min_free_percent: u64 = "5", count(0..=100);
        /// Free disk space below which writes without an account are refused (open sign-up, nostr keys), in percent.
        [Common] stranger_free_percent: u64 = "15", count(0..=100);
    }
}

abide_core::settings! {
    /// Pushes, and leases of repositories.
    #[derive(Debug, Clone)]
    pub struct PushSettings in "git" {
        /// Maximum size of one push.
        [Common] max_push: u64 = "4GiB", bytes(..);
        /// Maximum refs per push.
        max_push_refs: usize = "50000", count(1..);
        /// Idle timeout of a git client.
        idle_timeout: Duration = "60s", duration(TICK..);
        /// Maximum unpacked size of a push: this, plus 500 bytes per byte sent.
        unpacked: u64 = "4GiB", bytes(..);
        /// Maximum unpacked size of a push without an account: this, plus 500 bytes per byte sent.
        stranger_unpacked: u64 = "512MiB", bytes(..);
        /// Maximum duration of receiving one push.
        push_timeout: Duration = "6h", duration(TICK..);
        /// Pushes with fewer objects (and at most 16 MiB) are stored as loose objects, others as packs.
        unpack_limit: u32 = "100", count(..);
        /// Time that a push waits for another push to the same repository.
        lease_wait: Duration = "30s", duration(..);
        /// Time after which another server may take over a repository from one that crashed during a push.
        lease_ttl: Duration = "30s", duration(TICK..);
    }
    with {
        /// Bytes per second that a git client must send or take while the server waits for it.
        min_rate: u64 = 1024;
        /// Unpacked bytes allowed in addition for each byte of the pack.
        unpacked_ratio: u64 = 500;
        /// Bytes of a refused push or fetch that are read, so that the client sees the error.
        drain_bytes: u64 = 64 << 20;
        /// Refs cached in memory, over all repositories.
        ref_cache: usize = 500_000;
    }
}

abide_core::settings! {
    /// Repositories per account.
    #[derive(Debug, Clone)]
    pub struct RepoSettings in "repos" {
        /// Maximum repositories per account.
        [Common] per_user: i64 = "1000", count(1..);
        /// Repositories and forks created per account per hour.
        created as create_limit_per_hour: Rate = "500", Rate::hourly;
    }
    with {
        /// Repositories scanned per search, most recently changed first.
        search_scan: i64 = 50_000;
    }
}

abide_core::settings! {
    /// Deletion, transfer and renames of repositories.
    #[derive(Debug, Clone)]
    pub struct LifecycleSettings in "lifecycle" {
        /// Grace period in which a deleted repository can be restored.
        [Common] grace: Duration = "7d", duration(..);
        /// Expiry of a transfer offer.
        transfer_ttl: Duration = "7d", duration(TICK..);
        /// Renames per repository in lifecycle.rename_window.
        rename_limit: usize = "5", count(..);
        /// Window for lifecycle.rename_limit.
        rename_window: Duration = "30d", duration(TICK..);
        /// Interval of the sweep that expires transfer offers and deletes repositories past their grace period.
        sweep_interval: Duration = "5m", duration(TICK..);
    }
}

abide_core::settings! {
    /// Bounds of browsing.
    #[derive(Debug, Clone)]
    pub struct Browsing in "browse" {
        /// Memory for cached directories, logs and comparisons.
        cache: u64 = "48MiB", bytes(..);
    }
    with {
        /// Directory entries shown.
        entries: usize = 20_000;
        /// Commits listed in a comparison.
        compare_commits: usize = 250;
        /// Commits visited per request.
        walk: usize = 1_000_000;
        /// Commits visited per walk where many walks make one page.
        short_walk: usize = 10_000;
        /// Time limit for finding the last commit of each file in a directory.
        last_commits_time: Duration = Duration::from_secs(2);
        /// Concurrent history walks and comparisons.
        heavy: usize = 4;
        /// Concurrent history walks and comparisons per IP address or account.
        heavy_each: usize = 2;
        /// Repositories whose pack indexes stay open.
        open_repos: usize = 128;
    }
}

abide_core::settings! {
    /// Background jobs.
    #[derive(Debug, Clone)]
    pub struct JobSettings in "jobs" {
        /// Maximum concurrent background jobs.
        workers: usize = "2", count(1..);
        /// Retention of ended jobs and pushes.
        history: Duration = "30d", duration(TICK..);
    }
    with {
        /// Polling interval for jobs and the event log.
        poll: Duration = Duration::from_secs(1);
    }
}
