//! Lists the files that differ between two trees.

use super::super::objects::{Objects, oid};
use super::{Change, EntryKind, Side};
use crate::read::ReadError;
use gix::ObjectId;
use gix::bstr::{BStr, BString};
use gix::diff::tree::visit::Action;
use gix::diff::tree::{self, Recorder, Visit, recorder, visit};
use gix::objs::TreeRefIter;
use gix::objs::tree::EntryMode;

/// Records allowed per listed file: directories are recorded too.
const RECORDS_PER_FILE: usize = 4;
/// Total bytes of recorded paths: deep nesting multiplies them.
const PATH_BYTES: usize = 16 * 1024 * 1024;

/// The changed files by path, at most `limit`, and whether there are more.
pub(super) fn between(
    objects: &mut Objects<'_>,
    old: &ObjectId,
    new: &ObjectId,
    limit: usize,
) -> Result<(Vec<Change>, bool), ReadError> {
    if old == new {
        return Ok((Vec::new(), false));
    }
    let reader = objects.reader();
    let (old, new) = (objects.tree(old)?.to_vec(), objects.tree(new)?.to_vec());
    let iter = |data| TreeRefIter::from_bytes(data, gix::hash::Kind::Sha1);
    let mut delegate = Bounded {
        recorder: Recorder::default(),
        records: limit.saturating_mul(RECORDS_PER_FILE).saturating_add(1000),
        path_bytes: 0,
        seen: 0,
    };
    let walked = gix::diff::tree(iter(&old), iter(&new), tree::State::default(), &*objects, &mut delegate);
    let mut truncated = match walked {
        Ok(()) => false,
        Err(tree::Error::Cancelled) => true,
        Err(error) => return Err(reader.broken(error)),
    };
    let mut changes: Vec<_> = delegate.recorder.records.into_iter().flat_map(files).flatten().collect();
    changes.sort_by(|a, b| a.path().cmp(b.path()));
    truncated |= changes.len() > limit;
    changes.truncate(limit);
    Ok((changes, truncated))
}

/// gix's recorder with limits; by itself it has none.
struct Bounded {
    recorder: Recorder,
    records: usize,
    path_bytes: usize,
    seen: usize,
}

impl Visit for Bounded {
    fn pop_front_tracked_path_and_set_current(&mut self) {
        self.recorder.pop_front_tracked_path_and_set_current();
    }

    fn push_back_tracked_path_component(&mut self, component: &BStr) {
        self.recorder.push_back_tracked_path_component(component);
    }

    fn push_path_component(&mut self, component: &BStr) {
        self.recorder.push_path_component(component);
    }

    fn pop_path_component(&mut self) {
        self.recorder.pop_path_component();
    }

    fn visit(&mut self, change: visit::Change) -> Action {
        let action = self.recorder.visit(change);
        self.seen += 1;
        self.path_bytes += self.recorder.records.last().map_or(0, |record| path(record).len());
        if self.seen >= self.records || self.path_bytes >= PATH_BYTES { Action::Break(()) } else { action }
    }
}

fn path(record: &recorder::Change) -> &BString {
    match record {
        recorder::Change::Addition { path, .. }
        | recorder::Change::Deletion { path, .. }
        | recorder::Change::Modification { path, .. } => path,
    }
}

/// File changes of a record. A directory yields none: its files follow as records.
fn files(record: recorder::Change) -> [Option<Change>; 2] {
    let side = |path: &BString, mode: EntryMode, id: ObjectId| {
        let kind = EntryKind::from(mode);
        (kind != EntryKind::Directory).then(|| Side { path: path.clone(), kind, oid: oid(&id) })
    };
    match record {
        recorder::Change::Addition { entry_mode, oid, path, .. } => {
            [side(&path, entry_mode, oid).map(Change::Added), None]
        }
        recorder::Change::Deletion { entry_mode, oid, path, .. } => {
            [side(&path, entry_mode, oid).map(Change::Deleted), None]
        }
        recorder::Change::Modification { previous_entry_mode, previous_oid, entry_mode, oid, path } => {
            match (side(&path, previous_entry_mode, previous_oid), side(&path, entry_mode, oid)) {
                (Some(old), Some(new)) => [Some(Change::Modified(old, new)), None],
                (old, new) => [old.map(Change::Deleted), new.map(Change::Added)],
            }
        }
    }
}
