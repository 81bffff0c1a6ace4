//! Queries that walk the history: last change of each directory entry, logs, counts, blame.

use super::{BrowseError, Browser, Shared};
use abide_core::Oid;
use abide_git::bstr::BString;
use abide_git::read::blame::BlameRange;
use abide_git::read::{Commit, Count, FileLog, Known, LastCommits, LogPage};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Last commit of each entry of a directory.
#[derive(Clone, Debug, Default)]
pub struct LastChanges {
    /// By entry name; omits entries not found in time.
    pub entries: HashMap<BString, Arc<Commit>>,
    /// Whether every entry was found.
    pub complete: bool,
}

/// Cached result for a directory of one commit: the raw result, to shorten later walks, and the commits.
pub(super) struct Walked {
    pub found: LastCommits,
    pub changes: Arc<LastChanges>,
}

impl Browser {
    /// The last commit of each entry of a directory, as far as found within the time limit. The next request continues
    /// an incomplete walk.
    pub async fn last_changes(&self, commit: Oid, dir: &[u8]) -> Result<Arc<LastChanges>, BrowseError> {
        let shared = Shared::of(&self.forge);
        let key = (self.repo.id, commit, dir.to_vec());
        if let Some(walked) = shared.last_changes.get(&key)
            && walked.changes.complete
        {
            return Ok(walked.changes.clone());
        }
        // One walk per directory at a time: waiting requests find the result.
        let _turn = shared.turn(&key).await;
        let before = shared.last_changes.get(&key);
        if let Some(walked) = before.as_ref().filter(|walked| walked.changes.complete) {
            return Ok(walked.changes.clone());
        }
        let newest = (self.repo.id, key.2.clone());
        let earlier = shared.newest_walk.get(&newest).and_then(|earlier| {
            let walked = shared.last_changes.get(&(self.repo.id, earlier, newest.1.clone()))?;
            Some((earlier, walked))
        });
        let known = before.map(|walked| (commit, walked)).or(earlier);
        let (allowed, path) = (self.forge.settings().browse.last_commits_time, key.2.clone());
        let walked = self
            .read_heavy(move |reader| {
                let known = known.as_ref().map(|(commit, walked)| Known { commit: *commit, found: &walked.found });
                let found = reader.last_commits(commit, &path, known, Instant::now() + allowed)?;
                let mut distinct: Vec<Oid> = found.entries.values().copied().collect();
                distinct.sort_unstable();
                distinct.dedup();
                let commits = reader.commits(&distinct)?;
                let commits: HashMap<Oid, Arc<Commit>> =
                    commits.into_iter().map(|commit| (commit.oid, Arc::new(commit))).collect();
                let with_commit = |(name, oid): (&BString, &Oid)| Some((name.clone(), commits.get(oid)?.clone()));
                let entries = found.entries.iter().filter_map(with_commit).collect();
                let changes = Arc::new(LastChanges { entries, complete: found.complete });
                Ok(Arc::new(Walked { found, changes }))
            })
            .await?;
        shared.last_changes.insert(key, walked.clone());
        shared.newest_walk.insert(newest, commit);
        Ok(walked.changes.clone())
    }

    /// Commits from a start, newest first; with a path, those that changed it.
    pub async fn log(&self, start: Oid, path: &[u8], skip: usize, limit: usize) -> Result<Arc<LogPage>, BrowseError> {
        let key = (self.repo.id, start, path.to_vec(), skip, limit);
        Shared::of(&self.forge)
            .logs
            .get_or_insert_async(&key, async {
                let page = match path.is_empty() {
                    true => self.read_heavy(move |reader| reader.log(start, skip, limit)).await?,
                    false => self.reader.log_path(self.forge.git(), self.client, start, path, skip, limit).await?,
                };
                Ok(Arc::new(page))
            })
            .await
    }

    /// Commits that changed a file, newest first, following renames.
    pub async fn file_log(
        &self,
        start: Oid,
        path: &[u8],
        skip: usize,
        limit: usize,
    ) -> Result<Arc<FileLog>, BrowseError> {
        let key = (self.repo.id, start, path.to_vec(), skip, limit);
        Shared::of(&self.forge)
            .file_logs
            .get_or_insert_async(&key, async {
                Ok(Arc::new(self.reader.log_file(self.forge.git(), self.client, start, path, skip, limit).await?))
            })
            .await
    }

    /// Number of commits in the history of this one.
    pub async fn count(&self, start: Oid) -> Result<Count, BrowseError> {
        let cap = self.forge.settings().browse.walk;
        let key = (self.repo.id, start);
        Shared::of(&self.forge)
            .counts
            .get_or_insert_async(&key, async { self.read_heavy(move |reader| reader.count(start, cap)).await })
            .await
    }

    /// Commit of each line of a file, with the commits.
    pub async fn blame(&self, start: Oid, path: &[u8]) -> Result<Arc<Vec<(BlameRange, Arc<Commit>)>>, BrowseError> {
        let key = (self.repo.id, start, path.to_vec());
        Shared::of(&self.forge)
            .blames
            .get_or_insert_async(&key, async {
                let ranges = self.reader.blame(self.forge.git(), self.client, start, path).await?;
                let lines = self.read(move |reader| {
                    let mut seen: HashMap<Oid, Arc<Commit>> = HashMap::new();
                    let mut lines = Vec::with_capacity(ranges.len());
                    for range in &ranges {
                        let commit = match seen.get(&range.commit) {
                            Some(commit) => commit.clone(),
                            None => Arc::new(reader.short_commit(range.commit)?),
                        };
                        seen.insert(range.commit, commit.clone());
                        lines.push((*range, commit));
                    }
                    Ok(lines)
                });
                lines.await.map(Arc::new)
            })
            .await
    }
}
