//! The commit that last changed each entry of a directory.
//!
//! The answer for each entry is that of `git log -1 -- <entry>` with git's default simplification: from a commit, go to
//! the **first parent in which the entry is the same** (mode and object); a commit that has no such parent is the one.
//! So a merge that took one side's version leads into that side, and a merge that made a version of its own is itself
//! the answer. No dates are involved: the answer for each entry is one path through the history.
//!
//! All entries are followed in one walk. Each keeps the same object all along its path, so only the directory of the
//! *parent* is ever read, and only where its id differs. An answer for an earlier commit shortens the walk to what came
//! since.

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

/// Which commit last changed each entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastCommits {
    /// By name; entries whose commit was not reached in time are not in it.
    pub entries: HashMap<BString, Oid>,
    /// Whether every entry was found.
    pub complete: bool,
}

/// An answer that was given before, for the same directory of an earlier commit.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The commit it was given for.
    pub commit: Oid,
    /// The answer, which may be incomplete.
    pub found: &'a LastCommits,
}

impl Reader {
    /// Finds the commit that last changed each entry of a directory, as far as the deadline allows.
    ///
    /// The answer depends on the arguments alone, so it may be kept for ever, and used for a later commit of the same
    /// branch: where the walk comes to the known commit, it takes what is known.
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
    /// From names to indexes.
    numbers: HashMap<&'a BString, u32>,
    known: Option<(Node, &'a LastCommits)>,
    found: Vec<Option<Oid>>,
    open: HashMap<Node, Place>,
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
        self.open.insert(start, Place { waiting: (0..count).collect(), trail });
        queue.push(order(history.look(start, &mut parents)?), start);
        // Descendants come before ancestors, so entries that parted at a merge go on together. Where clocks are wrong
        // and there is no graph a commit may come twice, which costs time and changes nothing.
        while let Some(node) = queue.pop() {
            if Instant::now() > deadline {
                return Ok(false);
            }
            let Some(mut place) = self.open.remove(&node) else { continue };
            self.take_known(node, &mut place);
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
                self.found[entry as usize] = Some(oid(&history.id(node)));
            }
        }
        Ok(true)
    }

    /// Answers what is known from before.
    fn take_known(&mut self, node: Node, place: &mut Place) {
        let Some((_, known)) = self.known.filter(|&(known, _)| known == node) else { return };
        let (entries, found) = (self.entries, &mut self.found);
        place.waiting.retain(|&index| {
            let answer = known.entries.get(&entries[index as usize].name);
            found[index as usize] = answer.copied();
            answer.is_none()
        });
    }

    /// Takes from the waiting entries those that are the same in the directory to which this trail leads.
    fn take_same(
        &mut self,
        objects: &mut Objects<'_>,
        place: &mut Place,
        trail: &Trail,
    ) -> Result<Vec<u32>, ReadError> {
        let Some(dir) = trail.end(&self.path) else { return Ok(Vec::new()) };
        let here = place.trail.end(&self.path);
        if here == Some(dir) {
            return Ok(std::mem::take(&mut place.waiting));
        }
        let neighbours = here == self.version.id();
        let changed = self.version.advance(objects, dir)?.filter(|_| neighbours);
        let (same, other) = match changed {
            Some(names) => self.without(std::mem::take(&mut place.waiting), &names),
            None => self.compare(&place.waiting),
        };
        place.waiting = other;
        Ok(same)
    }

    /// Parts the waiting entries that have these names from the others.
    fn without(&self, mut waiting: Vec<u32>, names: &[BString]) -> (Vec<u32>, Vec<u32>) {
        let mut parted = Vec::new();
        for name in names {
            let found = self.numbers.get(name).and_then(|index| waiting.binary_search(index).ok());
            parted.extend(found.map(|at| waiting.remove(at)));
        }
        parted.sort_unstable();
        (waiting, parted)
    }

    /// Parts the waiting entries into those that are the same in the current version and the others. Both are in git's
    /// order, so one pass is enough.
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
