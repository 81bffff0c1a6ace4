//! Changes of a commit, and comparisons of two commits.

use super::{CommitItem, Urls, in_path};
use crate::patch;
use abide_core::Oid;
use abide_forge::browse::{Change, Diff, FileChange};
use serde::Serialize;
use utoipa::ToSchema;

/// Number of added and deleted lines.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Stats {
    total: usize,
    additions: usize,
    deletions: usize,
}

impl From<&Diff> for Stats {
    fn from(diff: &Diff) -> Self {
        Self { total: diff.additions + diff.deletions, additions: diff.additions, deletions: diff.deletions }
    }
}

/// A changed file. `patch` is missing if the file is binary or the patch is too large.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ChangedFile {
    sha: Option<String>,
    filename: String,
    status: &'static str,
    additions: usize,
    deletions: usize,
    changes: usize,
    blob_url: String,
    raw_url: String,
    contents_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_filename: Option<String>,
}

impl ChangedFile {
    /// The files of a diff, with URLs at this commit.
    pub(crate) fn all(urls: &Urls, commit: Oid, diff: &Diff) -> Vec<Self> {
        diff.files.iter().map(|file| Self::of(urls, commit, file)).collect()
    }

    fn of(urls: &Urls, commit: Oid, file: &FileChange) -> Self {
        let status = match &file.change {
            Change::Added(_) => "added",
            Change::Deleted(_) => "removed",
            Change::Modified(..) => "modified",
            Change::Renamed(..) => "renamed",
        };
        let previous = match &file.change {
            Change::Renamed(old, _, _) => Some(old.path.to_string()),
            _ => None,
        };
        let side = file.change.after().or(file.change.before());
        let path = file.change.path();
        let encoded = in_path(path);
        Self {
            sha: side.map(|side| side.oid.to_string()),
            filename: path.to_string(),
            status,
            additions: file.additions,
            deletions: file.deletions,
            changes: file.additions + file.deletions,
            blob_url: urls.page(&format!("/blob/{commit}/{encoded}")),
            raw_url: urls.page(&format!("/raw/{commit}/{encoded}")),
            contents_url: urls.api(&format!("/contents/{encoded}?ref={commit}")),
            patch: patch::hunks(&file.content).map(|text| String::from_utf8_lossy(&text).into_owned()),
            previous_filename: previous,
        }
    }
}

/// Comparison of two commits.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Comparison {
    pub url: String,
    pub html_url: String,
    pub permalink_url: String,
    pub diff_url: String,
    pub patch_url: String,
    pub base_commit: CommitItem,
    pub merge_base_commit: CommitItem,
    /// `ahead`, `behind`, `diverged` or `identical`.
    pub status: &'static str,
    pub ahead_by: usize,
    pub behind_by: usize,
    pub total_commits: usize,
    /// The newest of them, oldest first.
    pub commits: Vec<CommitItem>,
    pub files: Vec<ChangedFile>,
}
