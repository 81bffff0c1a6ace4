//! Finds the previous path of a file that a commit renamed.

use super::super::clock::Clock;
use super::super::objects::id;
use super::{Change, DiffLimits, changes, renames};
use crate::read::{ReadError, Reader};
use abide_core::Oid;
use gix::bstr::BString;

/// Changed files examined per commit. A larger commit is a bulk import, not a rename.
const CHANGES: usize = 20_000;

impl Reader {
    /// The file's path in the commit's first parent, and that parent, if the commit renamed it. Copies do not count, as
    /// in
    /// diffs: a copy starts its own history.
    pub fn renamed_from(&self, commit: Oid, path: &[u8]) -> Result<Option<(Oid, BString)>, ReadError> {
        let commit = self.commit(commit)?;
        let Some(&parent) = commit.parents.first() else { return Ok(None) };
        let mut objects = self.objects();
        let (old, new) = (objects.root(parent)?, objects.root(commit.oid)?);
        let limits = DiffLimits::default();
        let clock = Clock::start(limits.processor);
        let (changed, _) = changes::between(&mut objects, &old, &new, CHANGES, &clock)?;
        let is_it = |change: &Change| matches!(change, Change::Added(side) if side.path == path);
        let Some(added) = changed.iter().find(|change| is_it(change)).and_then(Change::after).cloned() else {
            return Ok(None);
        };
        let size = objects.header(&id(added.oid))?.1;
        let mut candidates = Vec::new();
        for change in changed {
            // As for a commit that is too large: the history ends here.
            if clock.is_over() {
                return Ok(None);
            }
            let keep = match &change {
                // A file of less than half or more than twice the size cannot match, so skip loading it.
                Change::Deleted(side) if side.kind.is_blob() => {
                    let other = objects.header(&id(side.oid))?.1;
                    other <= size.saturating_mul(2) && size <= other.saturating_mul(2)
                }
                change => is_it(change),
            };
            if keep {
                candidates.push(change);
            }
        }
        let joined = renames::join(&mut objects, candidates, &limits)?;
        let source = joined.into_iter().find_map(|change| match change {
            Change::Renamed(old, new, _) if new.path == path => Some(old.path),
            _ => None,
        });
        Ok(source.map(|source| (parent, source)))
    }
}
