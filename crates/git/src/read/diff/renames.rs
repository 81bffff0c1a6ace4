//! Rename detection: pairs a deleted and an added file with equal or at least 50 % similar content.
//!
//! The measure is git's: the bytes of the old file's lines (or 64-byte chunks) that also occur in the new file, in any
//! order, relative to the larger file.

use super::super::objects::{Objects, id};
use super::{Change, DiffLimits, EntryKind, Side};
use crate::read::ReadError;
use abide_core::Oid;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Minimum similarity in percent.
const ENOUGH: u64 = 50;
/// Longest chunk compared as one unit.
const PIECE: usize = 64;

/// Replaces pairs of deleted and added files with renames.
pub(super) fn join(
    objects: &mut Objects<'_>,
    changes: Vec<Change>,
    limits: &DiffLimits,
) -> Result<Vec<Change>, ReadError> {
    if limits.rename_pairs == 0 {
        return Ok(changes);
    }
    let mut moves = Moves::new(&changes);
    moves.exact(&changes);
    moves.similar(objects, &changes, limits)?;
    Ok(moves.apply(changes))
}

/// Changes without a partner, and pairs found. Numbers are indexes into the changes.
struct Moves {
    deleted: Vec<usize>,
    added: Vec<usize>,
    /// Added file → deleted file and similarity in percent.
    found: HashMap<usize, (usize, u8)>,
}

impl Moves {
    fn new(changes: &[Change]) -> Self {
        let all = |wanted: fn(&Change) -> bool| {
            changes.iter().enumerate().filter(|(_, change)| wanted(change)).map(|(index, _)| index).collect()
        };
        Self {
            deleted: all(|change| matches!(change, Change::Deleted(_))),
            added: all(|change| matches!(change, Change::Added(_))),
            found: HashMap::new(),
        }
    }

    fn join(&mut self, deleted: usize, added: usize, score: u8) {
        self.found.insert(added, (deleted, score));
        self.deleted.retain(|&index| index != deleted);
        self.added.retain(|&index| index != added);
    }

    /// Pairs equal content. Among several candidates, prefers the same file name, then the first.
    fn exact(&mut self, changes: &[Change]) {
        let mut by_oid: HashMap<Oid, Vec<usize>> = HashMap::new();
        for &index in &self.deleted {
            by_oid.entry(side(&changes[index]).oid).or_default().push(index);
        }
        for added in self.added.clone() {
            let new = side(&changes[added]);
            let Some(candidates) = by_oid.get_mut(&new.oid) else { continue };
            candidates.retain(|&index| self.deleted.contains(&index));
            let fits = |&&index: &&usize| same_sort(side(&changes[index]).kind, new.kind);
            let named = |&&index: &&usize| base_name(side(&changes[index])) == base_name(new);
            let fitting = || candidates.iter().filter(fits);
            if let Some(&deleted) = fitting().find(named).or_else(|| fitting().next()) {
                self.join(deleted, added, 100);
            }
        }
    }

    /// Pairs similar content, most similar pairs first.
    fn similar(&mut self, objects: &mut Objects<'_>, changes: &[Change], limits: &DiffLimits) -> Result<(), ReadError> {
        if self.deleted.len().saturating_mul(self.added.len()) > limits.rename_pairs {
            return Ok(());
        }
        let mut budget = limits.total_bytes;
        let mut prints: HashMap<usize, Print> = HashMap::new();
        for &index in self.deleted.iter().chain(&self.added) {
            let file = side(&changes[index]);
            let size = if is_file(file.kind) { objects.header(&id(file.oid))?.1 } else { 0 };
            // Empty files match nothing; large files are too expensive to compare.
            if size > 0 && size <= limits.file_bytes && size <= budget {
                budget -= size;
                prints.insert(index, Print::of(objects.blob(&id(file.oid))?));
            }
        }
        let mut pairs = Vec::new();
        for &added in &self.added {
            for &deleted in &self.deleted {
                let (Some(old), Some(new)) = (prints.get(&deleted), prints.get(&added)) else { continue };
                let score = old.likeness(new);
                if score >= ENOUGH {
                    let named = base_name(side(&changes[deleted])) == base_name(side(&changes[added]));
                    pairs.push((score, named, added, deleted));
                }
            }
        }
        pairs.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then((a.2, a.3).cmp(&(b.2, b.3))));
        for (score, _, added, deleted) in pairs {
            if self.added.contains(&added) && self.deleted.contains(&deleted) {
                self.join(deleted, added, u8::try_from(score).unwrap_or(100));
            }
        }
        Ok(())
    }

    fn apply(self, changes: Vec<Change>) -> Vec<Change> {
        let gone: Vec<usize> = self.found.values().map(|&(deleted, _)| deleted).collect();
        let old = |index: usize| side(&changes[index]).clone();
        let joined = |(index, change): (usize, &Change)| match (change, self.found.get(&index)) {
            (Change::Added(new), Some(&(deleted, score))) => Some(Change::Renamed(old(deleted), new.clone(), score)),
            _ if gone.contains(&index) => None,
            _ => Some(change.clone()),
        };
        changes.iter().enumerate().filter_map(joined).collect()
    }
}

fn side(change: &Change) -> &Side {
    change.after().or(change.before()).expect("a change has at least one side")
}

fn is_file(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::File | EntryKind::Executable)
}

/// A rename may change the executable bit, but not turn a file into a link.
fn same_sort(old: EntryKind, new: EntryKind) -> bool {
    old == new || is_file(old) && is_file(new)
}

fn base_name(side: &Side) -> &[u8] {
    side.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Bytes of each distinct chunk in a file.
struct Print {
    pieces: HashMap<u64, u64>,
    size: u64,
}

impl Print {
    fn of(data: &[u8]) -> Self {
        let mut pieces = HashMap::new();
        for piece in data.split_inclusive(|&byte| byte == b'\n').flat_map(|line| line.chunks(PIECE)) {
            let mut hasher = DefaultHasher::new();
            piece.hash(&mut hasher);
            *pieces.entry(hasher.finish()).or_default() += piece.len() as u64;
        }
        Self { pieces, size: data.len() as u64 }
    }

    /// Common bytes in percent of the larger file.
    fn likeness(&self, other: &Self) -> u64 {
        let larger = self.size.max(other.size);
        if self.size.min(other.size) * 100 < larger * ENOUGH {
            return 0;
        }
        let common: u64 = self
            .pieces
            .iter()
            .map(|(piece, &bytes)| other.pieces.get(piece).map_or(0, |&others| bytes.min(others)))
            .sum();
        common * 100 / larger
    }
}
