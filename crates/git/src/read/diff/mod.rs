//! What changed between two commits.
//!
//! `changes` compares directories, `renames` joins what was only moved, `moved` asks that for one file, `hunks` compares
//! files line by line.

mod changes;
mod hunks;
mod moved;
mod renames;

use super::blob::is_binary;
use super::history::History;
use super::objects::{Objects, id};
use super::{AheadBehind, Commit, ReadError, Reader};
use abide_core::Oid;
use gix::bstr::BString;
use gix::{ObjectId, hash};

use hunks::Compared;

pub use super::tree::EntryKind;
pub use hunks::{Hunk, Line, LineKind};

/// How much of a difference is computed and kept.
#[derive(Clone, Debug)]
pub struct DiffLimits {
    /// Files listed.
    pub files: usize,
    /// Lines kept per file, context included. Counts go on behind them.
    pub file_lines: usize,
    /// The size up to which each side of a file is compared.
    pub file_bytes: u64,
    /// All that is loaded to be compared; files behind it are listed only.
    pub total_bytes: u64,
    /// How many pairs of deleted and added files are compared to find renames. With more, only exact ones are found;
    /// zero leaves all of them as they are.
    pub rename_pairs: usize,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self {
            files: 300,
            file_lines: 3_000,
            file_bytes: 1024 * 1024,
            total_bytes: 16 * 1024 * 1024,
            rename_pairs: 10_000,
        }
    }
}

/// One side of a changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// Its path.
    pub path: BString,
    /// What it is; never a directory.
    pub kind: EntryKind,
    /// Its object.
    pub oid: Oid,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added(Side),
    /// It is gone.
    Deleted(Side),
    /// Its content, mode or kind is another.
    Modified(Side, Side),
    /// It has another path, and so many hundredths of it are the same.
    Renamed(Side, Side, u8),
}

impl Change {
    /// The file before.
    pub fn before(&self) -> Option<&Side> {
        match self {
            Self::Added(_) => None,
            Self::Deleted(old) | Self::Modified(old, _) | Self::Renamed(old, _, _) => Some(old),
        }
    }

    /// The file after.
    pub fn after(&self) -> Option<&Side> {
        match self {
            Self::Deleted(_) => None,
            Self::Added(new) | Self::Modified(_, new) | Self::Renamed(_, new, _) => Some(new),
        }
    }

    /// The path under which it is listed: the new one, unless it is gone.
    pub fn path(&self) -> &BString {
        let side = self.after().or(self.before());
        &side.expect("a change has at least one side").path
    }
}

/// How the content of a file differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Line by line. No hunks if only the mode or the path changed.
    Text {
        /// The changed places with three lines around them.
        hunks: Vec<Hunk>,
        /// Whether there are more than the limit allowed.
        truncated: bool,
    },
    /// At least one side is binary.
    Binary,
    /// Too large, or behind the limit of the whole difference: not compared, and not counted.
    Omitted,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// What became of it.
    pub change: Change,
    /// Lines added, all of them.
    pub additions: usize,
    /// Lines deleted, all of them.
    pub deletions: usize,
    /// How its content differs.
    pub content: Content,
}

/// What changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The changed files, by path.
    pub files: Vec<FileChange>,
    /// Whether more files changed than are listed.
    pub truncated: bool,
    /// Lines added in the listed files.
    pub additions: usize,
    /// Lines deleted in the listed files.
    pub deletions: usize,
}

/// What a head brings over a base.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Where the two parted.
    pub merge_base: Oid,
    /// How far they are apart.
    pub distance: AheadBehind,
    /// The head's own commits, newest first, as many as were asked for.
    pub commits: Vec<Commit>,
    /// What changed since the two parted.
    pub diff: Diff,
}

impl Reader {
    /// What a commit changed against its first parent; everything, if it has none.
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

    /// What changed between two commits, tags or trees, whatever lies between them.
    pub fn diff_trees(&self, old: Oid, new: Oid, limits: &DiffLimits) -> Result<Diff, ReadError> {
        let mut objects = self.objects();
        let (old, new) = (objects.root(old)?, objects.root(new)?);
        objects.diff(&old, &new, limits)
    }

    /// What the head brings over the base since they parted, with at most `commits` of its commits. At most `cap`
    /// commits are looked at to find that place.
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

/// What comes of comparing the sides of a file.
enum Sides {
    Compared(Compared),
    Content(Content),
}

impl Objects<'_> {
    fn diff(&mut self, old: &ObjectId, new: &ObjectId, limits: &DiffLimits) -> Result<Diff, ReadError> {
        let (changes, truncated) = changes::between(self, old, new, limits.files)?;
        let changes = renames::join(self, changes, limits)?;
        let mut diff = Diff { truncated, ..Diff::default() };
        let mut budget = limits.total_bytes;
        for change in changes {
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

    /// What stands for a side in the comparison; `None` if it is too much.
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
