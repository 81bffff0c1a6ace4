//! Commits, newest first.

use super::history::{History, Marks, Node, Queue};
use super::objects::oid;
use super::{Commit, ReadError, Reader};
use abide_core::Oid;

/// No page of a log walks over more commits than this. A large history with a commit-graph takes a second for it.
const FARTHEST: usize = 2_000_000;

/// Some commits of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The commits.
    pub commits: Vec<Commit>,
    /// Whether older ones follow.
    pub more: bool,
}

/// A number of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// How many were counted.
    pub commits: usize,
    /// Whether that is all of them, rather than as many as were allowed.
    pub exact: bool,
}

impl Reader {
    /// The history of a commit in the order of `git log`: by the committer's time, newest first.
    pub fn log(&self, start: Oid, skip: usize, limit: usize) -> Result<LogPage, ReadError> {
        let mut history = self.history();
        let start = history.start(start)?;
        let (oids, more) = newest_first(&mut history, start, skip, limit, |_| true)?;
        Ok(LogPage { commits: self.commits(&oids)?, more })
    }

    /// How many commits a commit's history has, itself included; counting stops at `cap`.
    pub fn count(&self, start: Oid, cap: usize) -> Result<Count, ReadError> {
        let mut history = self.history();
        let mut seen = Marks::default();
        let mut parents = Vec::new();
        let first = history.start(start)?;
        let mut open = vec![first];
        seen.add(first, 1);
        let mut commits = 0;
        while let Some(node) = open.pop() {
            if commits == cap {
                return Ok(Count { commits, exact: false });
            }
            commits += 1;
            history.look(node, &mut parents)?;
            open.extend(parents.iter().copied().filter(|&parent| seen.add(parent, 1)));
        }
        Ok(Count { commits, exact: true })
    }
}

/// Walks from a commit as `git log` does, into the commits that are to be kept and no others.
pub(super) fn newest_first(
    history: &mut History<'_>,
    start: Node,
    skip: usize,
    limit: usize,
    keep: impl Fn(Node) -> bool,
) -> Result<(Vec<Oid>, bool), ReadError> {
    let last = skip.checked_add(limit).filter(|&last| last <= FARTHEST).ok_or(ReadError::TooFar)?;
    let mut seen = Marks::default();
    let mut queue = Queue::new();
    let (mut parents, mut ignored) = (Vec::new(), Vec::new());
    let mut page = Vec::new();
    if keep(start) {
        seen.add(start, 1);
        queue.push(history.look(start, &mut ignored)?.time, start);
    }
    for number in 0..last {
        let Some(node) = queue.pop() else { break };
        if number >= skip {
            page.push(oid(&history.id(node)));
        }
        history.look(node, &mut parents)?;
        for &parent in &parents {
            if keep(parent) && seen.add(parent, 1) {
                queue.push(history.look(parent, &mut ignored)?.time, parent);
            }
        }
    }
    Ok((page, !queue.is_empty()))
}
