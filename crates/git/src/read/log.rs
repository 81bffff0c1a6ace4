//! Commit log, newest first.

use super::history::{History, Marks, Node, Queue};
use super::objects::oid;
use super::{Commit, ReadError, Reader};
use abide_core::Oid;

/// Limit of commits walked per log page. A large history with a commit-graph takes a second for this many.
const FARTHEST: usize = 2_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    pub commits: Vec<Commit>,
    /// Whether older commits follow.
    pub more: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    pub commits: usize,
    /// Whether all commits were counted; `false` if counting stopped at the limit.
    pub exact: bool,
}

impl Reader {
    /// History of a commit in the order of `git log`: by committer time, newest first.
    pub fn log(&self, start: Oid, skip: usize, limit: usize) -> Result<LogPage, ReadError> {
        let mut history = self.history();
        let start = history.start(start)?;
        let (oids, more) = newest_first(&mut history, start, skip, limit, |_| true)?;
        Ok(LogPage { commits: self.commits(&oids)?, more })
    }

    /// Number of commits in a history, including the commit itself; stops at `cap`.
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

/// Walks from a commit as `git log` does, visiting only commits that `keep` accepts.
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
