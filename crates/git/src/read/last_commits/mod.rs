//! Last commit that changed each entry of a directory.
//!
//! The result equals `git log -1 -- <entry>` with git's default simplification: from a commit, follow the **first
//! parent in which the entry is the same** (mode and object); a commit without such a parent is the result. A merge
//! that took one side's version leads into that side; a merge with a version of its own is itself the result. Dates
//! play no part: each entry's result is one path through the history.
//!
//! One walk follows all entries. Each keeps the same object along its path, so only the *parent's* directory is read,
//! and only where its id differs. A result for an earlier commit shortens the walk to the commits since.

mod version;

use super::history::{Facts, History, Node, Queue};
use super::objects::{Objects, id, oid};
use super::tree::{EntryKind, components};
use super::{ReadError, Reader};
use abide_core::Oid;
use gix::bstr::{BString, ByteSlice};
use gix::objs::TreeRefIter;
use gix::objs::tree::{EntryMode, EntryRef};
use gix::{ObjectId, hash};
use std::collections::HashMap;
use std::time::Instant;
use version::{Sorted, Version};

/// Last commit of each entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastCommits {
    /// By name; omits entries not found before the deadline.
    pub entries: HashMap<BString, Oid>,
    /// Whether every entry was found.
    pub complete: bool,
}

/// A previous result for the same directory at an earlier commit.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Commit of that result.
    pub commit: Oid,
    /// The result, possibly incomplete.
    pub found: &'a LastCommits,
}

impl Reader {
    /// Finds the last commit of each entry of a directory, until the deadline.
    ///
    /// The arguments determine the result, so it may be cached forever and passed as `known` for a later commit of the
    /// branch. When the walk reaches the known commit, it takes the known entries.
    pub fn last_commits(
        &self,
        commit: Oid,
        dir: &[u8],
        known: Option<Known<'_>>,
        deadline: Instant,
    ) -> Result<LastCommits, ReadError> {
        let mut history = self.history();
        let path: Vec<&[u8]> = components(dir).collect();
        let start = history.start(commit)?;
        let facts = history.look(start, &mut Vec::new())?;
        let trail = Trail(Vec::new()).beside(&mut history.objects, facts.tree, &path)?;
        let Some(dir) = trail.end(&path) else { return Err(history.objects.why_not(commit, &path)) };
        let entries = entries(&mut history.objects, &dir)?;
        let known = known.map(|known| (history.node(&id(known.commit)), known.found));
        let mut walk = Walk {
            path,
            entries: &entries,
            numbers: entries.iter().map(|entry| &entry.name).zip(0..).collect(),
            known,
            found: vec![None; entries.len()],
            open: HashMap::new(),
            version: Version::default(),
        };
        let complete = walk.run(&mut history, start, trail, deadline)?;
        let found = entries.iter().zip(walk.found);
        let entries = found.filter_map(|(entry, oid)| Some((entry.name.clone(), oid?))).collect();
        Ok(LastCommits { entries, complete })
    }
}

/// An entry of the starting directory; unchanged along its path.
struct Followed {
    name: BString,
    mode: EntryMode,
    oid: ObjectId,
}

/// Tree ids from the root to the directory, as far as they exist.
#[derive(Clone, PartialEq, Eq)]
struct Trail(Vec<ObjectId>);

impl Trail {
    /// The trail in another commit. Where a tree id is equal, the rest is equal and is not read.
    fn beside(&self, objects: &mut Objects<'_>, root: ObjectId, path: &[&[u8]]) -> Result<Self, ReadError> {
        let mut trail = vec![root];
        for (level, name) in path.iter().enumerate() {
            if self.0.get(level) == Some(&trail[level]) {
                trail.extend_from_slice(&self.0[level + 1..]);
                break;
            }
            match objects.child(&trail[level], name)? {
                Some((EntryKind::Directory, next)) => trail.push(next),
                _ => break,
            }
        }
        Ok(Self(trail))
    }

    /// The directory itself, if the commit has it.
    fn end(&self, path: &[&[u8]]) -> Option<ObjectId> {
        self.0.get(path.len()).copied()
    }
}

/// Entries that were followed to one commit.
struct Pending {
    /// Ascending indexes into the entries.
    waiting: Vec<u32>,
    trail: Trail,
}

struct Walk<'a> {
    path: Vec<&'a [u8]>,
    entries: &'a [Followed],
    /// Index by name.
    numbers: HashMap<&'a BString, u32>,
    known: Option<(Node, &'a LastCommits)>,
    found: Vec<Option<Oid>>,
    open: HashMap<Node, Pending>,
    version: Version,
}

impl Walk<'_> {
    /// Returns whether all entries were found before the deadline.
    fn run(
        &mut self,
        history: &mut History<'_>,
        start: Node,
        trail: Trail,
        deadline: Instant,
    ) -> Result<bool, ReadError> {
        let mut queue = Queue::new();
        let mut parents = Vec::new();
        let count = u32::try_from(self.entries.len()).expect("a tree of 32 MiB has fewer entries");
        self.open.insert(start, Pending { waiting: (0..count).collect(), trail });
        queue.push(order(history.look(start, &mut parents)?), start);
        // Descendants come before ancestors, so entries that split at a merge rejoin. Without a graph and with wrong
        // clocks, a
        // commit may be visited twice; that costs time but does not change the result.
        while let Some(node) = queue.pop() {
            if Instant::now() > deadline {
                return Ok(false);
            }
            let Some(mut pending) = self.open.remove(&node) else { continue };
            self.take_known(node, &mut pending);
            history.look(node, &mut parents)?;
            for &parent in &parents {
                if pending.waiting.is_empty() {
                    break;
                }
                let facts = history.look(parent, &mut Vec::new())?;
                let trail = pending.trail.beside(&mut history.objects, facts.tree, &self.path)?;
                let same = self.take_same(&mut history.objects, &mut pending, &trail)?;
                if !same.is_empty() {
                    if !self.open.contains_key(&parent) {
                        queue.push(order(facts), parent);
                    }
                    self.arrive(parent, same, trail);
                }
            }
            for entry in pending.waiting {
                self.found[entry as usize] = Some(oid(&history.id(node)));
            }
        }
        Ok(true)
    }

    /// Takes results from the known commit.
    fn take_known(&mut self, node: Node, pending: &mut Pending) {
        let Some((_, known)) = self.known.filter(|&(known, _)| known == node) else { return };
        let (entries, found) = (self.entries, &mut self.found);
        pending.waiting.retain(|&index| {
            let answer = known.entries.get(&entries[index as usize].name);
            found[index as usize] = answer.copied();
            answer.is_none()
        });
    }

    /// Removes and returns the waiting entries that are unchanged in the directory of this trail.
    fn take_same(
        &mut self,
        objects: &mut Objects<'_>,
        pending: &mut Pending,
        trail: &Trail,
    ) -> Result<Vec<u32>, ReadError> {
        let Some(dir) = trail.end(&self.path) else { return Ok(Vec::new()) };
        let here = pending.trail.end(&self.path);
        if here == Some(dir) {
            return Ok(std::mem::take(&mut pending.waiting));
        }
        let neighbours = here == self.version.id();
        let changed = self.version.advance(objects, dir)?.filter(|_| neighbours);
        let (same, other) = match changed {
            Some(names) => self.without(std::mem::take(&mut pending.waiting), &names),
            None => self.compare(&pending.waiting),
        };
        pending.waiting = other;
        Ok(same)
    }

    /// Splits the waiting entries into the others and those with these names.
    fn without(&self, mut waiting: Vec<u32>, names: &[BString]) -> (Vec<u32>, Vec<u32>) {
        let mut parted = Vec::new();
        for name in names {
            let found = self.numbers.get(name).and_then(|index| waiting.binary_search(index).ok());
            parted.extend(found.map(|at| waiting.remove(at)));
        }
        parted.sort_unstable();
        (waiting, parted)
    }

    /// Splits the waiting entries into unchanged and changed ones in the current version. Both lists are in git's
    /// order, so one
    /// pass suffices.
    fn compare(&self, waiting: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let (mut same, mut other) = (Vec::with_capacity(waiting.len()), Vec::new());
        let mut theirs = Sorted::new(self.version.entries());
        for &index in waiting {
            let mine = &self.entries[index as usize];
            let mine = EntryRef { mode: mine.mode, filename: mine.name.as_bstr(), oid: &mine.oid };
            if theirs.has(&mine) { same.push(index) } else { other.push(index) }
        }
        (same, other)
    }

    fn arrive(&mut self, node: Node, entries: Vec<u32>, trail: Trail) {
        let pending = self.open.entry(node).or_insert(Pending { waiting: Vec::new(), trail });
        let sorted = pending.waiting.last() < entries.first();
        pending.waiting.extend(entries);
        if !sorted {
            pending.waiting.sort_unstable();
        }
    }
}

fn order(facts: Facts) -> (u32, i64) {
    (facts.generation, facts.time)
}

fn entries(objects: &mut Objects<'_>, dir: &hash::oid) -> Result<Vec<Followed>, ReadError> {
    let reader = objects.reader();
    let data = objects.tree(dir)?;
    TreeRefIter::from_bytes(data, hash::Kind::Sha1)
        .map(|entry| {
            let entry = entry.map_err(|error| reader.broken(format!("tree {dir}: {error}")))?;
            Ok(Followed { name: entry.filename.to_owned(), mode: entry.mode, oid: entry.oid.to_owned() })
        })
        .collect()
}

impl Objects<'_> {
    /// Error for a path that is not a directory.
    fn why_not(&mut self, commit: Oid, path: &[&[u8]]) -> ReadError {
        match self.directory(commit, &path.join(&b'/')) {
            Err(error) => error,
            Ok(_) => ReadError::NotFound,
        }
    }
}
