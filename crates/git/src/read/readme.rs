//! The file that introduces a directory.

use super::tree::EntryKind;
use super::{Entry, ReadError, Reader};
use abide_core::Oid;

/// What may follow `readme`, the preferred first.
const EXTENSIONS: [&[u8]; 5] = [b".md", b".markdown", b".rst", b".txt", b""];
/// The largest directory in which a README is looked for.
const ENTRIES: usize = 100_000;

impl Reader {
    /// The README of a directory, whatever the case of its name; `None` if it has none.
    pub fn readme(&self, treeish: Oid, dir: &[u8]) -> Result<Option<Entry>, ReadError> {
        let listing = self.tree(treeish, dir, ENTRIES)?;
        let files = listing.entries.into_iter().filter(|entry| entry.kind.is_blob());
        // The first of equal names wins, which is the one in capitals; a link comes after every file.
        let best = files
            .filter_map(|entry| Some(((entry.kind == EntryKind::Symlink, rank(&entry.name)?), entry)))
            .min_by_key(|&(rank, _)| rank);
        Ok(best.map(|(_, entry)| entry))
    }
}

fn rank(name: &[u8]) -> Option<usize> {
    let (stem, extension) = name.split_at_checked("readme".len())?;
    stem.eq_ignore_ascii_case(b"readme").then_some(())?;
    EXTENSIONS.iter().position(|known| extension.eq_ignore_ascii_case(known))
}
