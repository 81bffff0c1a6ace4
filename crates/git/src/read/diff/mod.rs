//! Diffs between commits.
//!
//! `changes` compares trees, `renames` pairs moved files, `moved` finds the old path of one file, `hunks` compares
//! files line by line.

mod changes;
mod hunks;
mod moved;
mod renames;

use super::blob::is_binary;
use super::clock::Clock;
use super::history::History;
use super::objects::{Objects, id};
use super::{AheadBehind, Commit, ReadError, Reader};
use abide_core::Oid;
use gix::bstr::BString;
use gix::{ObjectId, hash};
use std::time::Duration;

use hunks::Compared;

pub use super::tree::EntryKind;
pub use hunks::{Hunk, Line, LineKind};

/// Limits of a diff.
#[derive(Clone, Debug)]
pub struct DiffLimits {
    /// Files listed.
    pub files: usize,
    /// Lines kept per file, with context. Counts include the lines beyond.
    pub file_lines: usize,
    /// Largest file side that is compared.
    pub file_bytes: u64,
    /// Total bytes loaded for comparison; further files are only listed.
    pub total_bytes: u64,
    /// Largest number of deleted × added pairs compared for similarity. Above it, only exact renames are found; zero
    /// disables
    /// rename detection.
    pub rename_pairs: usize,
    /// Processor time. Afterwards no further directory is read and no further file compared.
    pub processor: Duration,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self {
            files: 300,
            file_lines: 3_000,
            file_bytes: 1024 * 1024,
            total_bytes: 16 * 1024 * 1024,
            rename_pairs: 10_000,
            processor: Duration::from_secs(2),
        }
    }
}

/// One side of a changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub path: BString,
    /// Never a directory.
    pub kind: EntryKind,
    pub oid: Oid,
}

/// Change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Added(Side),
    Deleted(Side),
    /// Content, mode or kind changed.
    Modified(Side, Side),
    /// The path changed; the similarity in percent.
    Renamed(Side, Side, u8),
}

impl Change {
    /// Old side.
    pub fn before(&self) -> Option<&Side> {
        match self {
            Self::Added(_) => None,
            Self::Deleted(old) | Self::Modified(old, _) | Self::Renamed(old, _, _) => Some(old),
        }
    }

    /// New side.
    pub fn after(&self) -> Option<&Side> {
        match self {
            Self::Deleted(_) => None,
            Self::Added(new) | Self::Modified(_, new) | Self::Renamed(_, new, _) => Some(new),
        }
    }

    /// Path in listings: the new path, or the old one of a deleted file.
    pub fn path(&self) -> &BString {
        let side = self.after().or(self.before());
        &side.expect("a change has at least one side").path
    }
}

/// Content change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Line diff. No hunks if only the mode or the path changed.
    Text {
        hunks: Vec<Hunk>,
        /// Whether the line limit cut the hunks.
        truncated: bool,
    },
    /// At least one side is binary.
    Binary,
    /// Too large, or beyond the byte limit of the diff: neither compared nor counted.
    Omitted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    pub change: Change,
    /// All added lines, also those beyond the limit.
    pub additions: usize,
    /// All deleted lines, also those beyond the limit.
    pub deletions: usize,
    pub content: Content,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// Changed files, by path.
    pub files: Vec<FileChange>,
    /// Whether more files changed than are listed.
    pub truncated: bool,
    /// Whether the processor time was spent: files may be missing, or listed without their lines.
    pub timed_out: bool,
    /// Lines added in the listed files.
    pub additions: usize,
    /// Lines deleted in the listed files.
    pub deletions: usize,
}

/// Comparison of a head with a base.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub merge_base: Oid,
    pub distance: AheadBehind,
    /// The head's own commits, newest first, at most the requested number.
    pub commits: Vec<Commit>,
    /// Diff from the merge base to the head.
    pub diff: Diff,
}

impl Reader {
    /// Changes of a commit against its first parent; against the empty tree if it has none.
    pub fn diff(&self, commit: Oid, limits: &DiffLimits) -> Result<Diff, ReadError> {
        let mut history = self.history();
        let mut parents = Vec::new();
        let node = history.start(commit)?;
        let new = history.look(node, &mut parents)?.tree;
        let old = match parents.first() {
            Some(&parent) => history.look(parent, &mut Vec::new())?.tree,
            None => ObjectId::empty_tree(hash::Kind::Sha1),
        };
        let History { mut objects, .. } = history;
        objects.diff(&old, &new, limits)
    }

    /// Changes between two commits, tags or trees.
    pub fn diff_trees(&self, old: Oid, new: Oid, limits: &DiffLimits) -> Result<Diff, ReadError> {
        let mut objects = self.objects();
        let (old, new) = (objects.root(old)?, objects.root(new)?);
        objects.diff(&old, &new, limits)
    }

    /// Commits and changes of the head since its merge base with `base`, with at most `commits` commits. Visits at most
    /// `cap`
    /// commits to find the merge base.
    pub fn compare(
        &self,
        base: Oid,
        head: Oid,
        commits: usize,
        cap: usize,
        limits: &DiffLimits,
    ) -> Result<Comparison, ReadError> {
        let relation = self.relation(base, head, commits, cap)?;
        let merge_base = relation.merge_base.ok_or(ReadError::Unrelated)?;
        Ok(Comparison {
            merge_base,
            distance: relation.distance,
            commits: self.commits(&relation.commits)?,
            diff: self.diff_trees(merge_base, head, limits)?,
        })
    }
}

/// Result of comparing the two sides of a file.
enum Sides {
    Compared(Compared),
    Content(Content),
}

impl Objects<'_> {
    fn diff(&mut self, old: &ObjectId, new: &ObjectId, limits: &DiffLimits) -> Result<Diff, ReadError> {
        let clock = Clock::start(limits.processor);
        let (changes, truncated) = changes::between(self, old, new, limits.files, &clock)?;
        let changes = if clock.is_over() { changes } else { renames::join(self, changes, limits)? };
        let mut diff = Diff { truncated, timed_out: clock.is_over(), ..Diff::default() };
        let mut budget = limits.total_bytes;
        for change in changes {
            if clock.is_over() {
                diff.timed_out = true;
                let content = Content::Omitted;
                diff.files.push(FileChange { change, additions: 0, deletions: 0, content });
                continue;
            }
            let file = self.file_change(change, limits, &mut budget)?;
            diff.additions += file.additions;
            diff.deletions += file.deletions;
            diff.files.push(file);
        }
        Ok(diff)
    }

    fn file_change(&mut self, change: Change, limits: &DiffLimits, budget: &mut u64) -> Result<FileChange, ReadError> {
        let compared = self.compare_sides(&change, limits, budget)?;
        let (additions, deletions, content) = match compared {
            Sides::Content(content) => (0, 0, content),
            Sides::Compared(Compared { additions, deletions, hunks, truncated }) => {
                (additions, deletions, Content::Text { hunks, truncated })
            }
        };
        Ok(FileChange { change, additions, deletions, content })
    }

    fn compare_sides(&mut self, change: &Change, limits: &DiffLimits, budget: &mut u64) -> Result<Sides, ReadError> {
        if let (Some(old), Some(new)) = (change.before(), change.after())
            && old.oid == new.oid
        {
            return Ok(Sides::Compared(Compared::default()));
        }
        let mut text = |side: Option<&Side>| match side {
            Some(side) => self.text(side, limits, budget),
            None => Ok(Some(Vec::new())),
        };
        let (Some(old), Some(new)) = (text(change.before())?, text(change.after())?) else {
            return Ok(Sides::Content(Content::Omitted));
        };
        if is_binary(&old) || is_binary(&new) {
            return Ok(Sides::Content(Content::Binary));
        }
        Ok(Sides::Compared(hunks::compare(&old, &new, limits.file_lines)))
    }

    /// Text of one side for the comparison; `None` if it is over a limit.
    fn text(&mut self, side: &Side, limits: &DiffLimits, budget: &mut u64) -> Result<Option<Vec<u8>>, ReadError> {
        if side.kind == EntryKind::Submodule {
            return Ok(Some(format!("Subproject commit {}\n", side.oid).into_bytes()));
        }
        let size = self.header(&id(side.oid))?.1;
        if size > limits.file_bytes || size > *budget {
            return Ok(None);
        }
        *budget -= size;
        Ok(Some(self.blob(&id(side.oid))?.to_vec()))
    }
}
