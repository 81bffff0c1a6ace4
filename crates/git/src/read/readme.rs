//! README of a directory.

use super::objects::oid;
use super::tree::EntryKind;
use super::{Entry, ReadError, Reader};
use abide_core::Oid;
use gix::hash;
use gix::objs::TreeRefIter;

/// Accepted endings after `readme`, in order of preference.
const EXTENSIONS: [&[u8]; 5] = [b".md", b".markdown", b".rst", b".txt", b""];
/// Largest directory searched for a README.
const ENTRIES: usize = 100_000;

impl Reader {
    /// README of a directory, in any letter case; `None` if there is none.
    pub fn readme(&self, treeish: Oid, dir: &[u8]) -> Result<Option<Entry>, ReadError> {
        let mut objects = self.objects();
        let dir = objects.directory(treeish, dir)?;
        let data = objects.tree(&dir)?;
        let mut best: Option<((bool, usize), Entry)> = None;
        for entry in TreeRefIter::from_bytes(data, hash::Kind::Sha1).take(ENTRIES) {
            let entry = entry.map_err(|error| self.broken(format!("tree {dir}: {error}")))?;
            let kind = EntryKind::from(entry.mode);
            let Some(rank) = rank(entry.filename).filter(|_| kind.is_blob()) else { continue };
            // The first of equal names wins, which is the one in capitals; a link comes after every file.
            let rank = (kind == EntryKind::Symlink, rank);
            if best.as_ref().is_none_or(|(found, _)| rank < *found) {
                best = Some((rank, Entry { name: entry.filename.to_owned(), kind, oid: oid(entry.oid), size: None }));
            }
        }
        Ok(best.map(|(_, entry)| entry))
    }
}

fn rank(name: &[u8]) -> Option<usize> {
    let (stem, extension) = name.split_at_checked("readme".len())?;
    stem.eq_ignore_ascii_case(b"readme").then_some(())?;
    EXTENSIONS.iter().position(|known| extension.eq_ignore_ascii_case(known))
}
