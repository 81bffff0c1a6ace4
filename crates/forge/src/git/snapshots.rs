//! Refs without git processes: one snapshot per repository, valid for the generation that it was read under.
//!
//! The generation comes with the repository's row, which every request loads anyway, so a cached snapshot is correct on
//! every node. It is kept only if the generation was even (no ref was moving) and the same before and after the read.

use crate::blocking::blocking;
use crate::{Fault, Forge};
use abide_core::RepoId;
use abide_git::{Head, Snapshot};
use abide_macros::boxed;
use abide_store::repos::{self, RefState, Repo};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Snapshots of many repositories, bounded by their total number of refs.
pub(crate) struct Snapshots {
    kept: Cache<RepoId, Kept, RefCount>,
    /// Snapshots that are too large for the cache, shared for as long as a request uses them.
    large: Mutex<HashMap<RepoId, (RefState, Weak<Snapshot>)>>,
    /// One reader of a repository's refs at a time: requests that waited find them in memory.
    turns: Vec<tokio::sync::Mutex<()>>,
}

/// Number of locks for reading. Two repositories may share one by chance.
const TURNS: usize = 64;

/// Usual cost of an entry. The cache remembers half as many evicted entries as it could hold of these.
const USUAL: usize = 16;

#[derive(Clone)]
struct Kept {
    state: RefState,
    snapshot: Arc<Snapshot>,
}

/// Cost of an entry besides its refs.
const ENTRY_COST: u64 = 8;

/// Weighs a snapshot by its refs.
#[derive(Clone)]
struct RefCount;

impl Weighter<RepoId, Kept> for RefCount {
    fn weight(&self, _: &RepoId, kept: &Kept) -> u64 {
        kept.snapshot.refs.len() as u64 + ENTRY_COST
    }
}

impl Snapshots {
    /// The one of this forge.
    pub(crate) fn of(forge: &Forge) -> &Self {
        forge.part()
    }

    pub(crate) fn new(max_refs: usize) -> Self {
        let options = OptionsBuilder::new()
            // A snapshot that is larger than its shard would not be kept.
            .shards(1)
            .estimated_items_capacity(max_refs / USUAL)
            .weight_capacity(max_refs as u64)
            .build()
            .expect("both capacities are set");
        let kept = Cache::with_options(options, RefCount, DefaultHashBuilder::default(), DefaultLifecycle::default());
        Self { kept, large: Mutex::default(), turns: (0..TURNS).map(|_| Default::default()).collect() }
    }

    async fn turn(&self, repo: RepoId) -> tokio::sync::MutexGuard<'_, ()> {
        self.turns[repo.get() as usize % TURNS].lock().await
    }

    /// The snapshot of exactly this state.
    fn get(&self, repo: RepoId, state: &RefState) -> Option<Arc<Snapshot>> {
        if let Some(kept) = self.kept.get(&repo) {
            return (kept.state == *state).then_some(kept.snapshot);
        }
        let large = self.large.lock().unwrap_or_else(PoisonError::into_inner);
        large.get(&repo).filter(|(known, _)| known == state).and_then(|(_, snapshot)| snapshot.upgrade())
    }

    /// Replaces the snapshot of another state.
    fn put(&self, repo: RepoId, state: RefState, snapshot: &Arc<Snapshot>) {
        let mut large = self.large.lock().unwrap_or_else(PoisonError::into_inner);
        large.retain(|id, (_, snapshot)| *id != repo && snapshot.strong_count() > 0);
        self.kept.insert(repo, Kept { state: state.clone(), snapshot: snapshot.clone() });
        // The cache refuses a snapshot of more than 97 % of its budget.
        if self.kept.peek(&repo).is_none() {
            large.insert(repo, (state, Arc::downgrade(snapshot)));
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
    let state = repo.ref_state();
    if let Some(snapshot) = Snapshots::of(forge).get(repo.id, &state) {
        metrics::counter!("abide_ref_snapshots_total", "from" => "memory").increment(1);
        return Ok(Refs { snapshot, generation: Some(repo.refs_generation) });
    }
    let _turn = Snapshots::of(forge).turn(repo.id).await;
    if let Some(snapshot) = Snapshots::of(forge).get(repo.id, &state) {
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
    let steady = repo.refs_generation % 2 == 0 && now.as_ref() == Some(&state);
    if steady {
        Snapshots::of(forge).put(repo.id, state, &snapshot);
    }
    Ok(Refs { snapshot, generation: steady.then_some(repo.refs_generation) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_git::Ref;

    fn state(generation: i64) -> RefState {
        RefState { generation, default_branch: "refs/heads/main".parse().unwrap() }
    }

    fn snapshot(refs: usize) -> Arc<Snapshot> {
        let oid = "1".repeat(40).parse().unwrap();
        let one = |n: usize| Ref { name: format!("refs/heads/{n}").into(), oid, peeled: None, symref: None };
        Arc::new(Snapshot { refs: (0..refs).map(one).collect(), head: Head::Unset })
    }

    #[test]
    fn a_snapshot_is_found_under_its_generation_and_default_branch_only() {
        let (snapshots, repo) = (Snapshots::new(1000), RepoId::new(1));
        snapshots.put(repo, state(2), &snapshot(3));
        assert_eq!(snapshots.get(repo, &state(2)).unwrap().refs.len(), 3);
        let renamed = RefState { default_branch: "refs/heads/trunk".parse().unwrap(), ..state(2) };
        assert_eq!(snapshots.get(repo, &renamed), None);
        assert_eq!(snapshots.get(repo, &state(4)), None);
        snapshots.put(repo, state(4), &snapshot(5));
        assert_eq!(snapshots.get(repo, &state(2)), None, "replaced");
        assert_eq!(snapshots.get(repo, &state(4)).unwrap().refs.len(), 5);
    }

    #[test]
    fn snapshots_stay_within_their_budget() {
        let snapshots = Snapshots::new(1000);
        for id in 1..=100 {
            snapshots.put(RepoId::new(id), state(2), &snapshot(42));
            let found = (1..=id).filter(|id| snapshots.get(RepoId::new(*id), &state(2)).is_some()).count();
            assert!(found <= 20, "{found} snapshots of 42 refs and the cost of an entry");
        }
        let found = (1..=100).filter(|id| snapshots.get(RepoId::new(*id), &state(2)).is_some()).count();
        assert!(found >= 19, "the budget is used: {found}");
    }

    #[test]
    fn repositories_that_are_read_again_replace_those_that_are_not() {
        let snapshots = Snapshots::new(1000);
        let repos = |ids: std::ops::RangeInclusive<i64>| ids.map(RepoId::new);
        for repo in repos(1..=20) {
            snapshots.put(repo, state(2), &snapshot(42));
        }
        for _ in 0..10 {
            for repo in repos(101..=110) {
                if snapshots.get(repo, &state(2)).is_none() {
                    snapshots.put(repo, state(2), &snapshot(42));
                }
            }
        }
        let found = repos(101..=110).filter(|repo| snapshots.get(*repo, &state(2)).is_some()).count();
        assert!(found >= 9, "{found} of 10");
    }

    #[test]
    fn a_snapshot_above_the_budget_is_shared_while_it_is_used() {
        let (snapshots, repo) = (Snapshots::new(1000), RepoId::new(1));
        snapshots.put(repo, state(2), &snapshot(960));
        assert!(snapshots.get(repo, &state(2)).is_some());
        let large = snapshot(1000);
        snapshots.put(repo, state(4), &large);
        assert_eq!(snapshots.get(repo, &state(2)), None, "the smaller one leaves the budget");
        assert!(snapshots.get(repo, &state(4)).is_some());
        drop(large);
        assert_eq!(snapshots.get(repo, &state(4)), None);
    }
}
