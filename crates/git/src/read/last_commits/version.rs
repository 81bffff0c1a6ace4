//! Successive versions of a large directory.
//!
//! Neighbouring versions share most of their bytes. Comparing bytes is much faster than comparing ten thousand names,
//! so only the entries between the common prefix and suffix are parsed.

use super::super::objects::Objects;
use crate::read::ReadError;
use gix::bstr::{BString, ByteSlice};
use gix::objs::TreeRefIter;
use gix::objs::tree::{EntryRef, name_order};
use gix::{ObjectId, hash};
use std::iter::Peekable;
use std::ops::Range;

/// If more than 1 in this many entries lies between prefix and suffix, all entries are compared.
const WORTHWHILE: usize = 2;
/// Bytes compared at once.
const STRIDE: usize = 1024;

/// The version of a directory read last.
#[derive(Default)]
pub(super) struct Version {
    id: Option<ObjectId>,
    data: Vec<u8>,
    /// Start offset of each entry.
    starts: Vec<u32>,
}

impl Version {
    pub fn id(&self) -> Option<ObjectId> {
        self.id
    }

    /// The entries, up to the first that does not parse.
    pub fn entries(&self) -> impl Iterator<Item = EntryRef<'_>> {
        parse(&self.data)
    }

    /// Moves to another version. Returns the names of previous entries that changed or are gone; `None` if too many.
    pub fn advance(&mut self, objects: &mut Objects<'_>, id: ObjectId) -> Result<Option<Vec<BString>>, ReadError> {
        let reader = objects.reader();
        let data = objects.tree(&id)?;
        let changed = self.changed(data);
        if changed.is_none() {
            self.starts.clear();
            scan(data, 0..data.len(), &mut self.starts)
                .ok_or_else(|| reader.broken(format!("tree {id} does not parse")))?;
        }
        self.id = Some(id);
        self.data.clear();
        self.data.extend_from_slice(data);
        Ok(changed)
    }

    /// Compares with the bytes of the next version, and updates the start offsets to it.
    fn changed(&mut self, next: &[u8]) -> Option<Vec<BString>> {
        let before = common(self.data.chunks(STRIDE), next.chunks(STRIDE), |a, b| {
            a.iter().zip(b).take_while(|(a, b)| a == b).count()
        });
        let room = self.data.len().min(next.len()) - before;
        let after = common(self.data.rchunks(STRIDE), next.rchunks(STRIDE), |a, b| {
            a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
        });
        let after = after.min(room);
        // Extend to whole entries: from the entry with the first difference to the first entry after the last one.
        let first = self.starts.partition_point(|&start| start as usize <= before).saturating_sub(1);
        let last = self.starts.partition_point(|&start| (start as usize) < self.data.len() - after).max(first);
        if (last - first) * WORTHWHILE > self.starts.len() {
            return None;
        }
        let at = |index: usize, starts: &[u32]| starts.get(index).map_or(self.data.len(), |&start| start as usize);
        let mine = at(first, &self.starts)..at(last, &self.starts);
        let theirs = mine.start..next.len() - (self.data.len() - mine.end);
        let mut middle = Vec::new();
        scan(next, theirs.clone(), &mut middle)?;
        let mut there = Sorted::new(parse(&next[theirs.clone()]));
        let changed = parse(&self.data[mine.clone()]).filter(|entry| !there.has(entry));
        let changed = changed.map(|entry| entry.filename.to_owned()).collect();
        let tail: Vec<u32> = self.starts[last..]
            .iter()
            .map(|&start| u32::try_from(start as usize - mine.end + theirs.end).expect("trees are at most 32 MiB"))
            .collect();
        self.starts.truncate(first);
        self.starts.extend(middle);
        self.starts.extend(tail);
        Some(changed)
    }
}

/// Entries in git's order, queried in the same order.
pub(super) struct Sorted<'a, I: Iterator<Item = EntryRef<'a>>>(Peekable<I>);

impl<'a, I: Iterator<Item = EntryRef<'a>>> Sorted<'a, I> {
    pub fn new(entries: I) -> Self {
        Self(entries.peekable())
    }

    /// Whether this entry is among them with the same mode and object.
    pub fn has(&mut self, wanted: &EntryRef<'_>) -> bool {
        let before = |entry: &EntryRef<'a>| {
            name_order(entry.filename, entry.mode.is_tree(), wanted.filename, wanted.mode.is_tree()).is_lt()
        };
        while self.0.next_if(before).is_some() {}
        self.0.peek().is_some_and(|found| {
            found.oid == wanted.oid && found.filename == wanted.filename && found.mode.value() == wanted.mode.value()
        })
    }
}

fn parse(data: &[u8]) -> impl Iterator<Item = EntryRef<'_>> {
    TreeRefIter::from_bytes(data, hash::Kind::Sha1).map_while(Result::ok)
}

/// Finds the start offsets of entries in a range; `None` if the range does not end at an entry boundary.
fn scan(data: &[u8], range: Range<usize>, starts: &mut Vec<u32>) -> Option<()> {
    let mut at = range.start;
    while at < range.end {
        starts.push(u32::try_from(at).ok()?);
        at += data[at..range.end].find_byte(0)? + 1 + hash::Kind::Sha1.len_in_bytes();
    }
    (at == range.end).then_some(())
}

/// Number of equal bytes: by chunk, then within the first chunk that differs.
fn common<'a>(
    mine: impl Iterator<Item = &'a [u8]>,
    theirs: impl Iterator<Item = &'a [u8]>,
    within: impl Fn(&[u8], &[u8]) -> usize,
) -> usize {
    let mut bytes = 0;
    for (mine, theirs) in mine.zip(theirs) {
        if mine != theirs {
            return bytes + within(mine, theirs);
        }
        bytes += mine.len();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Dir = BTreeMap<String, u8>;

    fn bytes(dir: &Dir) -> Vec<u8> {
        let entry = |(name, oid): (&String, &u8)| [b"100644 ", name.as_bytes(), b"\0", &[*oid; 20]].concat();
        dir.iter().flat_map(entry).collect()
    }

    proptest! {
        /// Names and ids from few distinct bytes, so that the common prefix and suffix end inside entries.
        #[test]
        fn what_changed_is_what_a_comparison_by_name_finds(
            base in prop::collection::btree_map("[01]{1,4}", 48..50_u8, 16..60),
            edits in prop::collection::vec((0..3_u8, "[01]{1,4}", 48..50_u8), 1..3),
        ) {
            let mut next = base.clone();
            for (what, name, oid) in edits {
                if what == 0 { next.remove(&name); } else { next.insert(name, oid); }
            }
            let (old, new) = (bytes(&base), bytes(&next));
            let mut starts = Vec::new();
            scan(&old, 0..old.len(), &mut starts).unwrap();
            let mut version = Version { id: None, data: old, starts };
            if let Some(changed) = version.changed(&new) {
                let differs = |(name, oid): &(&String, &u8)| next.get(*name) != Some(oid);
                let wanted: Vec<_> = base.iter().filter(differs).map(|(name, _)| BString::from(name.as_str())).collect();
                prop_assert_eq!(changed, wanted);
                let mut starts = Vec::new();
                scan(&new, 0..new.len(), &mut starts).unwrap();
                prop_assert_eq!(version.starts, starts);
            }
        }
    }
}
