//! Caches between requests. All results are keyed by ids that determine them forever, and bounded by their size in
//! bytes: each kind has a share of one budget.

use super::history::Walked;
use super::newest::Dated;
use crate::{Browsing, Forge};
use abide_core::{Oid, RepoId};
use abide_git::read::blame::BlameRange;
use abide_git::read::{Commit, Count, Diff, Entry, FileLog, Listing, LogPage, Reader};
use abide_git::slots::Pool;
use abide_git::{Client, GitError, PoolSlot};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};

type PathKey = (RepoId, Oid, Vec<u8>);
type LogKey = (RepoId, Oid, Vec<u8>, usize, usize);
type Blamed = Arc<Vec<(BlameRange, Arc<Commit>)>>;

/// Expected entries per cache. Few enough that the cache is not split into shards: a result larger than a shard would
/// not be kept, and the result for a large directory is the most valuable one.
const FEW: usize = 32;

/// Number of locks for walks. Walks of different directories may share one by chance; those of one directory always do.
const TURNS: usize = 64;

/// Longest wait for a slot before the client gets "busy".
const QUEUE: Duration = Duration::from_secs(30);

/// Caches of browsing.
pub(crate) struct Shared {
    readers: Cache<(RepoId, i64), (Reader, Reader)>,
    pub(super) listings: Cache<PathKey, Arc<Listing>, Bytes>,
    pub(super) readmes: Cache<PathKey, Option<Entry>>,
    pub(super) last_changes: Cache<PathKey, Arc<Walked>, Bytes>,
    pub(super) newest_walk: Cache<(RepoId, Vec<u8>), Oid>,
    pub(super) logs: Cache<LogKey, Arc<LogPage>, Bytes>,
    pub(super) file_logs: Cache<LogKey, Arc<FileLog>, Bytes>,
    pub(super) dated: Cache<RepoId, Arc<Dated>, Bytes>,
    pub(super) diffs: Cache<(RepoId, Oid, Oid), Arc<Diff>, Bytes>,
    pub(super) blames: Cache<PathKey, Blamed, Bytes>,
    pub(super) counts: Cache<(RepoId, Oid), Count>,
    heavy: Pool,
    turns: Vec<Mutex<()>>,
}

impl Shared {
    /// The one of this forge.
    pub(crate) fn of(forge: &Forge) -> &Self {
        forge.part()
    }

    /// Creates caches within the budget of the settings.
    pub(crate) fn new(settings: &Browsing) -> Self {
        let share = |percent: u64| settings.cache / 100 * percent;
        Self {
            readers: Cache::new(settings.open_repos.max(1)),
            listings: Cache::with_weighter(FEW, share(25), Bytes),
            readmes: Cache::new(10_000),
            last_changes: Cache::with_weighter(FEW, share(25), Bytes),
            newest_walk: Cache::new(10_000),
            logs: Cache::with_weighter(FEW, share(8), Bytes),
            file_logs: Cache::with_weighter(FEW, share(7), Bytes),
            dated: Cache::with_weighter(FEW, share(5), Bytes),
            diffs: Cache::with_weighter(FEW, share(20), Bytes),
            blames: Cache::with_weighter(FEW, share(10), Bytes),
            counts: Cache::new(10_000),
            heavy: Pool::new("history queries", settings.heavy, settings.heavy_each),
            turns: (0..TURNS).map(|_| Mutex::new(())).collect(),
        }
    }

    /// The repository's objects, for work with and without a slot. A new generation opens them anew, which also finds what
    /// maintenance wrote since.
    pub(super) fn readers(&self, dir: PathBuf, repo: RepoId, generation: i64) -> Result<(Reader, Reader), GitError> {
        let open = || Ok((Reader::open(&dir)?, Reader::open_small(&dir)?));
        self.readers.get_or_insert_with(&(repo, generation), open)
    }

    /// Takes a slot for slow work.
    pub(crate) async fn heavy(&self, client: Client) -> Result<PoolSlot, GitError> {
        self.heavy.enter(client, QUEUE).await
    }

    /// Waits until no other request walks for the same directory.
    pub(super) async fn turn(&self, (repo, commit, dir): &PathKey) -> MutexGuard<'_, ()> {
        let mut sum = repo.get() as usize;
        for byte in commit.as_bytes().iter().chain(dir) {
            sum = sum.wrapping_mul(31).wrapping_add(usize::from(*byte));
        }
        self.turns[sum % TURNS].lock().await
    }
}

/// Weighs results by their approximate memory.
#[derive(Clone)]
pub(super) struct Bytes;

/// Memory of a map or list entry besides its text.
const PER_ITEM: u64 = 96;
/// Memory of a commit besides its text.
const PER_COMMIT: u64 = 320;

impl Weighter<PathKey, Arc<Listing>> for Bytes {
    fn weight(&self, key: &PathKey, listing: &Arc<Listing>) -> u64 {
        let entries: u64 = listing.entries.iter().map(|entry| PER_ITEM + entry.name.len() as u64).sum();
        PER_ITEM + key.2.len() as u64 + entries
    }
}

impl Weighter<PathKey, Arc<Walked>> for Bytes {
    fn weight(&self, key: &PathKey, walked: &Arc<Walked>) -> u64 {
        // Each name is in both maps; commits are mostly shared between entries.
        let entries: u64 = walked.changes.entries.keys().map(|name| 3 * PER_ITEM + 2 * name.len() as u64).sum();
        let commits: std::collections::HashSet<Oid> = walked.found.entries.values().copied().collect();
        PER_ITEM + key.2.len() as u64 + entries + commits.len() as u64 * PER_COMMIT
    }
}

impl Weighter<LogKey, Arc<LogPage>> for Bytes {
    fn weight(&self, key: &LogKey, page: &Arc<LogPage>) -> u64 {
        PER_ITEM + key.2.len() as u64 + page.commits.iter().map(commit).sum::<u64>()
    }
}

impl Weighter<LogKey, Arc<FileLog>> for Bytes {
    fn weight(&self, key: &LogKey, log: &Arc<FileLog>) -> u64 {
        let steps = log.steps.iter().map(|step| commit(&step.commit) + 2 * step.path.len() as u64);
        PER_ITEM + key.2.len() as u64 + steps.sum::<u64>()
    }
}

impl Weighter<RepoId, Arc<Dated>> for Bytes {
    fn weight(&self, _: &RepoId, dated: &Arc<Dated>) -> u64 {
        PER_ITEM + dated.times.len() as u64 * PER_ITEM
    }
}

impl Weighter<PathKey, Blamed> for Bytes {
    fn weight(&self, key: &PathKey, lines: &Blamed) -> u64 {
        PER_ITEM + key.2.len() as u64 + lines.len() as u64 * (PER_ITEM + PER_COMMIT / 4)
    }
}

impl Weighter<(RepoId, Oid, Oid), Arc<Diff>> for Bytes {
    fn weight(&self, _: &(RepoId, Oid, Oid), diff: &Arc<Diff>) -> u64 {
        use abide_git::read::diff::Content;
        let lines = |content: &Content| match content {
            Content::Text { hunks, .. } => {
                hunks.iter().flat_map(|hunk| &hunk.lines).map(|line| PER_ITEM + line.text.len() as u64).sum()
            }
            Content::Binary | Content::Omitted => 0,
        };
        PER_ITEM + diff.files.iter().map(|file| 4 * PER_ITEM + lines(&file.content)).sum::<u64>()
    }
}

fn commit(commit: &Commit) -> u64 {
    PER_COMMIT + (commit.subject.len() + commit.body.len() + commit.author.name.len()) as u64
}
