//! Lists the files that differ between two trees.

use super::super::clock::Clock;
use super::super::objects::{Objects, oid as our_oid};
use super::{Change, EntryKind, Side};
use crate::read::ReadError;
use gix::ObjectId;
use gix::bstr::{BStr, BString};
use gix::diff::tree::visit::Action;
use gix::diff::tree::{self, Recorder, Visit, recorder, visit};
use gix::hash::oid;
use gix::objs::tree::EntryMode;
use gix::objs::{Data, Find, TreeRefIter};

/// Records allowed per listed file: directories are recorded too.
const RECORDS_PER_FILE: usize = 4;
/// Total bytes of recorded paths: deep nesting multiplies them.
const PATH_BYTES: usize = 16 * 1024 * 1024;
/// Visits between two looks at the clock, which is a system call.
const VISITS: usize = 64;

/// The changed files by path, at most `limit`, and whether there are more.
pub(super) fn between(
    objects: &mut Objects<'_>,
    old: &ObjectId,
    new: &ObjectId,
    limit: usize,
    clock: &Clock,
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
        clock,
    };
    let timed = Timed { objects, clock };
    let walked = gix::diff::tree(iter(&old), iter(&new), tree::State::default(), &timed, &mut delegate);
    let mut truncated = match walked {
        Ok(()) => false,
        Err(tree::Error::Cancelled) => true,
        Err(_) if clock.is_over() => true,
        Err(error) => return Err(reader.broken(error)),
    };
    let mut changes: Vec<_> = delegate.recorder.records.into_iter().flat_map(files).flatten().collect();
    changes.sort_by(|a, b| a.path().cmp(b.path()));
    truncated |= changes.len() > limit;
    changes.truncate(limit);
    Ok((changes, truncated))
}

/// Reads directories until the time is spent. Equal entries are skipped without a visit, so the visitor alone would not
/// notice it.
struct Timed<'a, 'o> {
    objects: &'a Objects<'o>,
    clock: &'a Clock,
}

impl Find for Timed<'_, '_> {
    fn try_find<'a>(&self, id: &oid, buffer: &'a mut Vec<u8>) -> gix::error::Result<Option<Data<'a>>> {
        if self.clock.is_over() {
            return Err(gix::error::Error::from_error(ReadError::TooLarge));
        }
        self.objects.try_find(id, buffer)
    }
}

/// gix's recorder with limits; by itself it has none.
struct Bounded<'a> {
    recorder: Recorder,
    records: usize,
    path_bytes: usize,
    seen: usize,
    clock: &'a Clock,
}

impl Visit for Bounded<'_> {
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
        let full = self.seen >= self.records || self.path_bytes >= PATH_BYTES;
        let spent = self.seen.is_multiple_of(VISITS) && self.clock.is_over();
        if full || spent { Action::Break(()) } else { action }
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
        (kind != EntryKind::Directory).then(|| Side { path: path.clone(), kind, oid: our_oid(&id) })
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
