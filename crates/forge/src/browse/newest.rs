//! Branches and tags by time, newest first.
//!
//! Times are read from the objects once and kept with the order while no ref moves; afterwards only the times of moved
//! refs are read. The next request continues an incomplete read.

use super::refs::version_order;
use super::{BrowseError, Browser, RefPage, Shared, blocking};
use crate::Fault;
use abide_core::{Oid, RepoId};
use abide_git::snapshot::Snapshot;
use abide_git::{GitError, Reader, Ref};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Up to this many times are read without a heavy slot: a push moves a few refs, and the next page shows them.
const FEW: usize = 200;

/// Branches or tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefKind {
    Branch,
    Tag,
}

impl RefKind {
    /// Prefix of the full names.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Branch => "refs/heads/",
            Self::Tag => "refs/tags/",
        }
    }
}

/// Order of the refs of one moment. Numbers are indexes into the list of all refs.
pub(super) struct Dated {
    generation: Option<i64>,
    pub(super) times: HashMap<Oid, i64>,
    complete: bool,
    branches: Vec<u32>,
    tags: Vec<u32>,
}

impl Dated {
    fn of(&self, kind: RefKind) -> &[u32] {
        match kind {
            RefKind::Branch => &self.branches,
            RefKind::Tag => &self.tags,
        }
    }

    fn is_of(&self, generation: Option<i64>) -> bool {
        self.complete && generation.is_some() && self.generation == generation
    }
}

impl Browser {
    /// Branches or tags whose names contain `filter`, newest first; the default branch comes first.
    pub async fn newest(
        &self,
        kind: RefKind,
        filter: &str,
        skip: usize,
        limit: usize,
    ) -> Result<RefPage<Ref>, BrowseError> {
        let dated = self.dated().await?;
        let all = &self.refs.refs;
        let prefix = kind.prefix().len();
        let matching = |found: &&Ref| super::refs::contains(&found.name[prefix..], filter.as_bytes());
        let indices = dated.of(kind).iter();
        let mut found: Vec<&Ref> = indices.filter_map(|&at| all.get(at as usize)).filter(matching).collect();
        let default = self.repo.default_branch.as_str().as_bytes();
        if let Some(at) = found.iter().position(|found| found.name.as_slice() == default) {
            found[..=at].rotate_right(1);
        }
        let total = found.len();
        Ok(RefPage { items: found.into_iter().skip(skip).take(limit).cloned().collect(), total })
    }

    async fn dated(&self) -> Result<Arc<Dated>, BrowseError> {
        let shared = Shared::of(&self.forge);
        let generation = self.refs.generation;
        if let Some(dated) = shared.dated.get(&self.repo.id).filter(|dated| dated.is_of(generation)) {
            return Ok(dated);
        }
        // One request at a time reads the times of a repository: waiting requests find them.
        let _turn = shared.turn(&turn_key(self.repo.id)).await;
        let before = shared.dated.get(&self.repo.id);
        if let Some(dated) = before.as_ref().filter(|dated| dated.is_of(generation)) {
            return Ok(dated.clone());
        }
        let known: HashMap<Oid, i64> = match &before {
            Some(dated) => named(&self.refs).filter_map(|one| Some((one.oid, *dated.times.get(&one.oid)?))).collect(),
            None => HashMap::new(),
        };
        let few = named(&self.refs).filter(|found| !known.contains_key(&found.oid)).nth(FEW).is_none();
        let (refs, allowed) = (self.refs.clone(), self.forge.settings().browse.last_commits_time);
        let (so_far, until) = (known.clone(), Instant::now() + allowed);
        let read = move |reader: &Reader| {
            let unknown = named(&refs).filter(|found| !so_far.contains_key(&found.oid));
            let mut times = reader.ref_times(unknown, until);
            times.extend(&so_far);
            Ok(times)
        };
        let times = if few { self.read(read).await } else { self.read_heavy(read).await };
        let times = match times {
            // Under load, a page with an older order is better than none.
            Err(BrowseError::Fault(Fault::Git(GitError::Busy { .. }))) => known,
            times => times?,
        };
        let refs = self.refs.clone();
        let dated = blocking(move || Arc::new(sorted(&refs, times, generation))).await?;
        // While refs move, the order belongs to no single moment, and only its times are worth keeping.
        shared.dated.insert(self.repo.id, dated.clone());
        Ok(dated)
    }
}

fn turn_key(repo: RepoId) -> (RepoId, Oid, Vec<u8>) {
    (repo, Oid::ZERO, b"refs".to_vec())
}

fn named(refs: &Snapshot) -> impl Iterator<Item = &Ref> {
    refs.prefixed(RefKind::Branch.prefix().as_bytes()).chain(refs.prefixed(RefKind::Tag.prefix().as_bytes()))
}

fn sorted(refs: &Snapshot, times: HashMap<Oid, i64>, generation: Option<i64>) -> Dated {
    let order = |kind: RefKind| {
        let prefix = kind.prefix().as_bytes();
        let first = refs.refs.partition_point(|found| found.name.as_slice() < prefix);
        let count = refs.prefixed(prefix).count();
        let mut indices: Vec<usize> = (first..first + count).collect();
        indices.sort_by(|&a, &b| newer(&refs.refs[a], &refs.refs[b], &times));
        indices.into_iter().filter_map(|index| u32::try_from(index).ok()).collect()
    };
    let complete = named(refs).all(|found| times.contains_key(&found.oid));
    Dated { generation, complete, branches: order(RefKind::Branch), tags: order(RefKind::Tag), times }
}

/// Newer refs first; at the same time, the later version. Refs with an unknown time come last.
fn newer(a: &Ref, b: &Ref, times: &HashMap<Oid, i64>) -> Ordering {
    let time = |found: &Ref| times.get(&found.oid);
    time(b).cmp(&time(a)).then_with(|| version_order(&b.name, &a.name)).then_with(|| a.name.cmp(&b.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, digit: u8) -> Ref {
        let oid = Oid::from_hex(&[digit; 40]).expect("hexadecimal digits");
        Ref { name: name.into(), oid, peeled: None, symref: None }
    }

    #[test]
    fn refs_are_sorted_by_time_then_version_and_unknown_ones_are_last() {
        let refs = vec![
            named("refs/heads/a", b'1'),
            named("refs/heads/b", b'2'),
            named("refs/notes/x", b'2'),
            named("refs/tags/v1.10", b'3'),
            named("refs/tags/v1.9", b'3'),
            named("refs/tags/v2-unread", b'4'),
            named("refs/tags/v3", b'1'),
        ];
        let times = HashMap::from([(refs[0].oid, 10), (refs[1].oid, 20), (refs[3].oid, 30)]);
        let snapshot = Snapshot { refs, head: abide_git::snapshot::Head::Unset };
        let dated = sorted(&snapshot, times, Some(2));
        let names = |kind| dated.of(kind).iter().map(|&at| snapshot.refs[at as usize].name.to_string());
        assert_eq!(names(RefKind::Branch).collect::<Vec<_>>(), ["refs/heads/b", "refs/heads/a"]);
        let tags = ["refs/tags/v1.10", "refs/tags/v1.9", "refs/tags/v3", "refs/tags/v2-unread"];
        assert_eq!(names(RefKind::Tag).collect::<Vec<_>>(), tags);
        assert!(!dated.is_of(Some(2)), "it is not complete");
    }
}
