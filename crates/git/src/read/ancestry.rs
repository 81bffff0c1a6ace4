//! Merge bases, ancestry and ahead/behind counts.
//!
//! Paints commits from both sides until the colours meet. Inside the commit-graph the order is by generation and the
//! result exact. Outside it the order is by time, and exact while clocks disagree by no more than a day.

use super::history::{Facts, History, Marks, Node, Queue};
use super::log::newest_first;
use super::objects::oid;
use super::{Commit, ReadError, Reader};
use abide_core::Oid;
use gix::commitgraph::GENERATION_NUMBER_INFINITY;

/// Reachable from the first commit.
const LEFT: u8 = 1;
/// Reachable from the second commit.
const RIGHT: u8 = 2;
/// Reachable from a common ancestor, so neither ahead nor behind.
const STALE: u8 = 4;
const BOTH: u8 = LEFT | RIGHT;
/// In the queue, which holds no commit twice.
const WAITING: u8 = 8;
/// Recorded as a common ancestor.
const COMMON: u8 = 16;

/// Clock skew in seconds up to which counts are exact.
const DISAGREEMENT: i64 = 24 * 60 * 60;

/// With more merge-base candidates than this, they are not compared with each other.
const CANDIDATES: usize = 16;

/// Distance between two histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AheadBehind {
    /// Commits of the head that the base lacks.
    pub ahead: usize,
    /// Commits of the base that the head lacks.
    pub behind: usize,
    /// Whether the walk finished; otherwise the counts are lower bounds.
    pub exact: bool,
}

impl Reader {
    /// Best common ancestor of two commits, the most recent if there are several; `None` if there is none.
    /// Fails with [`ReadError::TooFar`] after `cap` commits.
    pub fn merge_base(&self, a: Oid, b: Oid, cap: usize) -> Result<Option<Oid>, ReadError> {
        let mut history = self.history();
        let mut painting = Painting::begin(&mut history, a, b)?;
        if !painting.run(&mut history, cap)? {
            return Err(ReadError::TooFar);
        }
        best(&mut history, &painting, cap)
    }

    /// Whether `ancestor` is `descendant` or in its history. Fails with [`ReadError::TooFar`] after `cap` commits.
    pub fn is_ancestor(&self, ancestor: Oid, descendant: Oid, cap: usize) -> Result<bool, ReadError> {
        let mut history = self.history();
        let (ancestor, descendant) = (history.start(ancestor)?, history.start(descendant)?);
        reaches(&mut history, descendant, ancestor, cap)
    }

    /// Counts commits that only the head or only the base has, visiting at most `cap` commits.
    pub fn ahead_behind(&self, base: Oid, head: Oid, cap: usize) -> Result<AheadBehind, ReadError> {
        let mut history = self.history();
        let mut painting = Painting::begin(&mut history, base, head)?;
        let exact = painting.run(&mut history, cap)?;
        Ok(painting.ahead_behind(exact))
    }

    /// Commits of the head that the base lacks, newest first: at most `commits`, visiting at most `cap`. Without a
    /// base, the
    /// head's whole history.
    pub fn brought(&self, base: Option<Oid>, head: Oid, commits: usize, cap: usize) -> Result<Vec<Commit>, ReadError> {
        match base {
            Some(base) => self.commits(&self.relation(base, head, commits, cap)?.commits),
            None => Ok(self.log(head, 0, commits)?.commits),
        }
    }

    /// Everything a comparison needs, in one walk.
    pub(super) fn relation(&self, base: Oid, head: Oid, commits: usize, cap: usize) -> Result<Relation, ReadError> {
        let mut history = self.history();
        let mut painting = Painting::begin(&mut history, base, head)?;
        let exact = painting.run(&mut history, cap)?;
        if !exact && painting.common.is_empty() {
            return Err(ReadError::TooFar);
        }
        let start = history.start(head)?;
        let own = |node| painting.marks.get(node) & BOTH == RIGHT;
        Ok(Relation {
            commits: newest_first(&mut history, start, 0, commits, own)?.0,
            merge_base: best(&mut history, &painting, cap)?,
            distance: painting.ahead_behind(exact),
        })
    }
}

/// Relation of a head to its base.
pub(super) struct Relation {
    pub merge_base: Option<Oid>,
    pub distance: AheadBehind,
    /// The head's own commits, newest first.
    pub commits: Vec<Oid>,
}

/// Queue order: by generation, which is exact; by time where there is none.
fn key(facts: Facts) -> (u32, i64) {
    (facts.generation, facts.time)
}

struct Painting {
    marks: Marks,
    queue: Queue<(u32, i64)>,
    /// Queued commits that are not stale.
    lively: usize,
    /// Commits where the colours met, with their times.
    common: Vec<(Node, i64)>,
    /// Earliest time of a commit outside the graph that had one colour when visited.
    earliest: i64,
}

impl Painting {
    fn begin(history: &mut History<'_>, left: Oid, right: Oid) -> Result<Self, ReadError> {
        let (marks, queue) = (Marks::default(), Queue::new());
        let mut painting = Self { marks, queue, lively: 0, common: Vec::new(), earliest: i64::MAX };
        for (oid, mark) in [(left, LEFT), (right, RIGHT)] {
            let node = history.start(oid)?;
            painting.paint(history, node, mark)?;
        }
        Ok(painting)
    }

    /// Paints until only common commits are left. `false` if `cap` commits were not enough.
    fn run(&mut self, history: &mut History<'_>, cap: usize) -> Result<bool, ReadError> {
        let mut parents = Vec::new();
        let mut looked = 0;
        while self.lively > 0 || self.may_repaint() {
            if looked == cap {
                return Ok(false);
            }
            looked += 1;
            let Some(node) = self.queue.pop() else { break };
            self.marks.remove(node, WAITING);
            let mut colours = self.marks.get(node) & (BOTH | STALE);
            if colours & STALE == 0 {
                self.lively -= 1;
            }
            let facts = history.look(node, &mut parents)?;
            if colours & BOTH != BOTH && facts.generation == GENERATION_NUMBER_INFINITY {
                self.earliest = self.earliest.min(facts.time);
            }
            if colours == BOTH {
                if self.marks.add(node, COMMON) {
                    self.common.push((node, facts.time));
                }
                colours |= STALE;
            }
            for &parent in &parents {
                self.paint(history, parent, colours)?;
            }
        }
        Ok(true)
    }

    /// Whether a queued common commit may still reach commits painted as one side's own. Without generations, an
    /// ancestor may
    /// have been visited before its descendant.
    fn may_repaint(&self) -> bool {
        self.queue.peek().is_some_and(|&(generation, time)| {
            generation == GENERATION_NUMBER_INFINITY && time.saturating_add(DISAGREEMENT) >= self.earliest
        })
    }

    fn paint(&mut self, history: &mut History<'_>, node: Node, colours: u8) -> Result<(), ReadError> {
        let before = self.marks.get(node);
        if !self.marks.add(node, colours) {
            return Ok(());
        }
        let was_lively = before & WAITING != 0 && before & STALE == 0;
        let is_lively = (before | colours) & STALE == 0;
        if before & WAITING == 0 {
            self.marks.add(node, WAITING);
            self.queue.push(key(history.look(node, &mut Vec::new())?), node);
        }
        match (was_lively, is_lively) {
            (false, true) => self.lively += 1,
            (true, false) => self.lively -= 1,
            _ => (),
        }
        Ok(())
    }

    fn ahead_behind(&self, exact: bool) -> AheadBehind {
        let (mut ahead, mut behind) = (0, 0);
        for mark in self.marks.iter() {
            match mark & BOTH {
                LEFT => behind += 1,
                RIGHT => ahead += 1,
                _ => (),
            }
        }
        AheadBehind { ahead, behind, exact }
    }
}

/// Most recent common ancestor that is not an ancestor of another one.
fn best(history: &mut History<'_>, painting: &Painting, cap: usize) -> Result<Option<Oid>, ReadError> {
    let mut common: Vec<_> =
        painting.common.iter().copied().filter(|&(node, _)| painting.marks.get(node) & STALE == 0).collect();
    common.sort_by_key(|&(_, time)| std::cmp::Reverse(time));
    let nodes: Vec<Node> = common.iter().map(|&(node, _)| node).collect();
    let mut chosen = nodes.first().copied();
    if (2..=CANDIDATES).contains(&nodes.len()) {
        for &candidate in &nodes {
            let mut hidden = false;
            for &other in nodes.iter().filter(|&&other| other != candidate) {
                hidden = hidden || reaches(history, other, candidate, cap)?;
            }
            if !hidden {
                chosen = Some(candidate);
                break;
            }
        }
    }
    Ok(chosen.map(|node| oid(&history.id(node))))
}

/// Whether `target` is in the history of `from`. Exact, independent of clocks.
fn reaches(history: &mut History<'_>, from: Node, target: Node, cap: usize) -> Result<bool, ReadError> {
    let mut parents = Vec::new();
    let lowest = history.look(target, &mut parents)?.generation;
    let mut seen = Marks::default();
    let mut queue = Queue::new();
    seen.add(from, 1);
    queue.push(key(history.look(from, &mut parents)?), from);
    let mut looked = 0;
    while let Some(node) = queue.pop() {
        if node == target {
            return Ok(true);
        }
        if looked == cap {
            return Err(ReadError::TooFar);
        }
        looked += 1;
        history.look(node, &mut parents)?;
        for parent in std::mem::take(&mut parents) {
            if seen.add(parent, 1) {
                let facts = history.look(parent, &mut Vec::new())?;
                // A commit of no higher generation cannot reach the target. Without generations, walk on.
                if parent == target || facts.generation > lowest || facts.generation == GENERATION_NUMBER_INFINITY {
                    queue.push(key(facts), parent);
                }
            }
        }
    }
    Ok(false)
}
