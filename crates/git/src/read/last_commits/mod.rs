//! The commit that last changed each entry of a directory.
//!
//! The answer for each entry is that of `git log -1 -- <entry>` with git's default simplification: from a commit, go to
//! the **first parent in which the entry is the same** (mode and object); a commit that has no such parent is the one.
//! So a merge that took one side's version leads into that side, and a merge that made a version of its own is itself
//! the answer. No dates are involved: the answer for each entry is one path through the history.
//!
//! All entries are followed in one walk. Each keeps the same object all along its path, so only the directory of the
//! *parent* is ever read, and only where its id differs.

use super::history::{Facts, History, Node, Queue};
use super::objects::{Objects, oid};
use super::tree::{EntryKind, components};
use super::{ReadError, Reader};
use abide_core::Oid;
use gix::bstr::BString;
use gix::objs::TreeRefIter;
use gix::objs::tree::{EntryMode, EntryRef, name_order};
use gix::{ObjectId, hash};
use std::collections::HashMap;
use std::time::Instant;

/// Which commit last changed each entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastCommits {
    /// By name; entries whose commit was not reached in time are not in it.
    pub entries: HashMap<BString, Oid>,
    /// Whether every entry was found.
    pub complete: bool,
}

impl Reader {
    /// Finds the commit that last changed each entry of a directory, as far as the deadline allows.
    pub fn last_commits(&self, commit: Oid, dir: &[u8], deadline: Instant) -> Result<LastCommits, ReadError> {
        let mut history = self.history();
        let path: Vec<&[u8]> = components(dir).collect();
        let start = history.start(commit)?;
        let mut parents = Vec::new();
        let facts = history.look(start, &mut parents)?;
        let trail = Trail(Vec::new()).beside(&mut history.objects, facts.tree, &path)?;
        let Some(dir) = trail.end(&path) else { return Err(history.objects.why_not(commit, &path)) };
        let entries = entries(&mut history.objects, &dir)?;
        let mut walk = Walk { path, entries: &entries, found: vec![None; entries.len()], open: HashMap::new() };
        let complete = walk.run(&mut history, start, trail, deadline)?;
        let found = entries.iter().zip(walk.found);
        let entries = found.filter_map(|(entry, node)| Some((entry.name.clone(), oid(&history.id(node?))))).collect();
        Ok(LastCommits { entries, complete })
    }
}

/// An entry of the directory at the start; it is the same all along its path.
struct Followed {
    name: BString,
    mode: EntryMode,
    oid: ObjectId,
}

/// The directories from the root to the one in question, as far as they exist.
#[derive(Clone, PartialEq, Eq)]
struct Trail(Vec<ObjectId>);

impl Trail {
    /// The trail in another commit. Where the two meet, the rest is the same and need not be read.
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

/// Where some entries have been followed to.
struct Place {
    /// Indexes into the entries, ascending.
    waiting: Vec<u32>,
    trail: Trail,
}

struct Walk<'a> {
    path: Vec<&'a [u8]>,
    entries: &'a [Followed],
    found: Vec<Option<Node>>,
    open: HashMap<Node, Place>,
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
        self.open.insert(start, Place { waiting: (0..count).collect(), trail });
        queue.push(order(history.look(start, &mut parents)?), start);
        // Descendants come before ancestors, so entries that parted at a merge go on together. Where clocks are wrong
        // and there is no graph a commit may come twice, which costs time and changes nothing.
        while let Some(node) = queue.pop() {
            if Instant::now() > deadline {
                return Ok(false);
            }
            let Some(mut place) = self.open.remove(&node) else { continue };
            history.look(node, &mut parents)?;
            for &parent in &parents {
                if place.waiting.is_empty() {
                    break;
                }
                let facts = history.look(parent, &mut Vec::new())?;
                let trail = place.trail.beside(&mut history.objects, facts.tree, &self.path)?;
                let same = self.take_same(&mut history.objects, &mut place, &trail)?;
                if !same.is_empty() {
                    if !self.open.contains_key(&parent) {
                        queue.push(order(facts), parent);
                    }
                    self.arrive(parent, same, trail);
                }
            }
            for entry in place.waiting {
                self.found[entry as usize] = Some(node);
            }
        }
        Ok(true)
    }

    /// Takes from the waiting entries those that are the same in this directory.
    fn take_same(&self, objects: &mut Objects<'_>, place: &mut Place, trail: &Trail) -> Result<Vec<u32>, ReadError> {
        let Some(dir) = trail.end(&self.path) else { return Ok(Vec::new()) };
        if Some(dir) == place.trail.end(&self.path) {
            return Ok(std::mem::take(&mut place.waiting));
        }
        let data = objects.tree(&dir)?;
        let (mut same, mut other) = (Vec::with_capacity(place.waiting.len()), Vec::new());
        let mut theirs = TreeRefIter::from_bytes(data, hash::Kind::Sha1).map_while(Result::ok).peekable();
        for &index in &place.waiting {
            let mine = &self.entries[index as usize];
            // Both are in the order of git, so one pass over theirs is enough.
            let before = |entry: &EntryRef<'_>| {
                name_order(entry.filename, entry.mode.is_tree(), &mine.name, mine.mode.is_tree()).is_lt()
            };
            while theirs.next_if(before).is_some() {}
            let equal = theirs.peek().is_some_and(|entry| {
                entry.filename == mine.name && entry.mode.value() == mine.mode.value() && entry.oid == mine.oid
            });
            if equal { same.push(index) } else { other.push(index) }
        }
        place.waiting = other;
        Ok(same)
    }

    fn arrive(&mut self, node: Node, entries: Vec<u32>, trail: Trail) {
        let place = self.open.entry(node).or_insert(Place { waiting: Vec::new(), trail });
        let sorted = place.waiting.last() < entries.first();
        place.waiting.extend(entries);
        if !sorted {
            place.waiting.sort_unstable();
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
    /// Why this path is no directory.
    fn why_not(&mut self, commit: Oid, path: &[&[u8]]) -> ReadError {
        match self.directory(commit, &path.join(&b'/')) {
            Err(error) => error,
            Ok(_) => ReadError::NotFound,
        }
    }
}
