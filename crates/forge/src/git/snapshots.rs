//! Refs without git processes: one snapshot per repository, valid for the generation that it was read under.
//!
//! The generation comes with the repository's row, which every request loads anyway, so a cached snapshot is correct on
//! every node. It is kept only if the generation was even (no ref was moving) and the same before and after the read.

use crate::blocking::blocking;
use crate::{Fault, Forge};
use abide_core::{RefName, RepoId};
use abide_git::{Head, Snapshot};
use abide_macros::boxed;
use abide_store::repos::{self, Repo};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Snapshots of many repositories, bounded by their total number of refs.
pub(crate) struct Snapshots {
    inner: Mutex<Cache>,
    max_refs: usize,
    /// One reader of a repository's refs at a time: whoever waited finds them.
    turns: Vec<tokio::sync::Mutex<()>>,
}

/// So many repositories may wait for each other by chance; readers of one always do.
const TURNS: usize = 64;

#[derive(Default)]
struct Cache {
    entries: HashMap<RepoId, Entry>,
    /// Snapshots that are too large to be kept, as long as somebody uses them.
    large: HashMap<RepoId, (i64, RefName, Weak<Snapshot>)>,
    refs: usize,
    tick: u64,
}

struct Entry {
    generation: i64,
    default_branch: RefName,
    snapshot: Arc<Snapshot>,
    used: u64,
}

/// Cost of an entry besides its refs.
const ENTRY_COST: usize = 8;

impl Snapshots {
    /// The one of this forge.
    pub(crate) fn of(forge: &Forge) -> &Self {
        forge.part()
    }

    pub(crate) fn new(max_refs: usize) -> Self {
        Self { inner: Mutex::default(), max_refs, turns: (0..TURNS).map(|_| Default::default()).collect() }
    }

    async fn turn(&self, repo: RepoId) -> tokio::sync::MutexGuard<'_, ()> {
        self.turns[repo.get() as usize % TURNS].lock().await
    }

    fn get(&self, repo: &Repo) -> Option<Arc<Snapshot>> {
        let mut cache = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        cache.tick += 1;
        let tick = cache.tick;
        if let Some((generation, default_branch, snapshot)) = cache.large.get(&repo.id)
            && (*generation, default_branch) == (repo.refs_generation, &repo.default_branch)
        {
            return snapshot.upgrade();
        }
        let entry = cache.entries.get_mut(&repo.id)?;
        (entry.generation == repo.refs_generation && entry.default_branch == repo.default_branch).then(|| {
            entry.used = tick;
            entry.snapshot.clone()
        })
    }

    fn put(&self, repo: &Repo, snapshot: Arc<Snapshot>) {
        let cost = snapshot.refs.len() + ENTRY_COST;
        let mut cache = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        cache.large.retain(|id, (_, _, snapshot)| *id != repo.id && snapshot.strong_count() > 0);
        if cost > self.max_refs {
            let large = (repo.refs_generation, repo.default_branch.clone(), Arc::downgrade(&snapshot));
            cache.large.insert(repo.id, large);
            return;
        }
        cache.tick += 1;
        let entry = Entry {
            generation: repo.refs_generation,
            default_branch: repo.default_branch.clone(),
            snapshot,
            used: cache.tick,
        };
        if let Some(old) = cache.entries.insert(repo.id, entry) {
            cache.refs -= old.snapshot.refs.len() + ENTRY_COST;
        }
        cache.refs += cost;
        while cache.refs > self.max_refs {
            let Some(oldest) = cache.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(id, _)| *id) else {
                break;
            };
            if let Some(gone) = cache.entries.remove(&oldest) {
                cache.refs -= gone.snapshot.refs.len() + ENTRY_COST;
            }
        }
    }
}

/// Refs, and whether they are certain to be of one moment. Cheap to clone.
#[derive(Clone)]
pub struct Refs {
    snapshot: Arc<Snapshot>,
    /// Their even generation; `None` if refs were moving meanwhile.
    pub generation: Option<i64>,
}

impl Refs {
    /// Refs of a repository without git data.
    pub(crate) fn nothing() -> Self {
        Self { snapshot: Arc::new(Snapshot::empty()), generation: None }
    }
}

impl Deref for Refs {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

/// The refs of a repository; none if its directory does not exist yet.
#[boxed]
pub async fn read(forge: &Forge, repo: &Repo) -> Result<Refs, Fault> {
    if let Some(snapshot) = Snapshots::of(forge).get(repo) {
        metrics::counter!("abide_ref_snapshots_total", "from" => "memory").increment(1);
        return Ok(Refs { snapshot, generation: Some(repo.refs_generation) });
    }
    let _turn = Snapshots::of(forge).turn(repo.id).await;
    if let Some(snapshot) = Snapshots::of(forge).get(repo) {
        metrics::counter!("abide_ref_snapshots_total", "from" => "memory").increment(1);
        return Ok(Refs { snapshot, generation: Some(repo.refs_generation) });
    }
    metrics::counter!("abide_ref_snapshots_total", "from" => "disk").increment(1);
    super::ensure_directory(forge, repo).await?;
    let dir = forge.layout().repo(repo.id);
    let read_from = dir.clone();
    let mut snapshot = blocking("reading refs", move || Snapshot::read(&read_from)).await??;
    let now = repos::ref_state(&mut *forge.store().read().await?, repo.id).await?;
    let wanted = Head::Symbolic(repo.default_branch.as_str().into());
    if snapshot.head != wanted {
        // HEAD follows the database; a crash between the two leaves it behind. A row that was read before the default
        // branch changed must not move HEAD back.
        if now.as_ref().is_some_and(|now| now.default_branch == repo.default_branch) {
            super::follow_head(forge, repo.id, &repo.default_branch).await;
        }
        snapshot.head = wanted;
    }
    let snapshot = Arc::new(snapshot);
    let steady = repo.refs_generation % 2 == 0 && now == Some(repo.ref_state());
    if steady {
        Snapshots::of(forge).put(repo, snapshot.clone());
    }
    Ok(Refs { snapshot, generation: steady.then_some(repo.refs_generation) })
}
