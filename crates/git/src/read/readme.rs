//! README of a directory.

use super::tree::EntryKind;
use super::{Entry, ReadError, Reader};
use abide_core::Oid;

/// Accepted endings after `readme`, in order of preference.
const EXTENSIONS: [&[u8]; 5] = [b".md", b".markdown", b".rst", b".txt", b""];
/// Largest directory searched for a README.
const ENTRIES: usize = 100_000;

impl Reader {
    /// README of a directory, in any letter case; `None` if there is none.
    pub fn readme(&self, treeish: Oid, dir: &[u8]) -> Result<Option<Entry>, ReadError> {
        let listing = self.tree(treeish, dir, ENTRIES)?;
        let files = listing.entries.into_iter().filter(|entry| entry.kind.is_blob());
        // Among equal ranks the first wins, which is the one in capitals. Symbolic links rank after files.
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
