//! History of a file through its renames, as `git log --follow` shows it.
//!
//! `git rev-list` walks each path of the file, using the commit-graph and its path filters. Where a path begins, a
//! comparison in this process finds the previous path, and the walk continues there.

use super::path_log::addressable;
use super::{Commit, EntryKind, ReadError, Reader};
use crate::error::blocking;
use crate::runner::Reading;
use crate::{Client, Git};
use abide_core::Oid;
use gix::bstr::BString;

/// Longest page, in commits.
const LONGEST_PAGE: usize = 1000;
/// Renames followed per file.
const MOST_RENAMES: usize = 32;

/// A commit in the history of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStep {
    pub commit: Commit,
    /// Path of the file in this commit.
    pub path: BString,
    /// Kind of entry at that path; `None` if the commit deleted it.
    pub kind: Option<EntryKind>,
    /// Previous path, if the commit renamed the file.
    pub renamed_from: Option<BString>,
}

/// A page of a file's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLog {
    /// Newest first.
    pub steps: Vec<FileStep>,
    /// Whether older commits follow.
    pub more: bool,
}

/// A matching commit, and the file's path there.
struct Found {
    oid: Oid,
    path: BString,
    renamed_from: Option<BString>,
}

impl Reader {
    /// Commits that changed a file, or entries below a directory, newest first, following renames of the file. Bounded
    /// by the
    /// runner's limits. Cacheable forever: the arguments determine the result.
    pub async fn log_file(
        &self,
        git: &Git,
        client: Client,
        start: Oid,
        path: &[u8],
        skip: usize,
        limit: usize,
    ) -> Result<FileLog, ReadError> {
        let path = BString::from(addressable(path)?);
        let limit = limit.min(LONGEST_PAGE);
        let reading = git.reading(client).await?;
        let mut found = self.follow(&reading, start, path, skip, limit + 1).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let reader = self.clone();
        let steps =
            blocking(move || found.into_iter().map(|found| reader.step(found)).collect::<Result<Vec<_>, _>>()).await?;
        Ok(FileLog { steps, more })
    }

    async fn follow(
        &self,
        reading: &Reading<'_>,
        start: Oid,
        path: BString,
        mut skip: usize,
        wanted: usize,
    ) -> Result<Vec<Found>, ReadError> {
        let mut found: Vec<Found> = Vec::new();
        let (mut at, mut path) = (start, path);
        for _ in 0..=MOST_RENAMES {
            let oids = self.changed(reading, at, &path, skip, wanted - found.len()).await?;
            let oldest = match oids.last() {
                Some(&last) => last,
                // `skip` covers all commits of this path; their number says how many to skip on the next path.
                None if skip > 0 => match self.count_changed(reading, at, &path).await? {
                    0 => break,
                    count => {
                        skip -= count.min(skip);
                        let last = self.changed(reading, at, &path, count - 1, 1).await?;
                        *last.first().ok_or_else(|| self.broken("git rev-list counted more than it lists"))?
                    }
                },
                None => break,
            };
            if !oids.is_empty() {
                skip = 0;
            }
            found.extend(oids.into_iter().map(|oid| Found { oid, path: path.clone(), renamed_from: None }));
            if found.len() >= wanted {
                break;
            }
            let (reader, here) = (self.clone(), path.clone());
            let Some((parent, before)) = blocking(move || reader.renamed_from(oldest, &here)).await? else { break };
            if let Some(last) = found.last_mut().filter(|last| last.oid == oldest) {
                last.renamed_from = Some(before.clone());
            }
            (at, path) = (parent, before);
        }
        Ok(found)
    }

    fn step(&self, found: Found) -> Result<FileStep, ReadError> {
        let kind = match self.entry(found.oid, &found.path) {
            Ok(entry) => Some(entry.kind),
            Err(ReadError::NotFound | ReadError::NotADirectory) => None,
            Err(error) => return Err(error),
        };
        let commit = self.commit(found.oid)?;
        Ok(FileStep { commit, path: found.path, kind, renamed_from: found.renamed_from })
    }
}
