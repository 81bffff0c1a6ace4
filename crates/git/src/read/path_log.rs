//! History of one file or directory, from one `git rev-list`.

use super::tree::{components, trim};
use super::{LogPage, ReadError, Reader};
use crate::error::blocking;
use crate::runner::Reading;
use crate::{Client, Git};
use abide_core::Oid;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Longest page, in commits.
const LONGEST_PAGE: usize = 1000;

impl Reader {
    /// Commits that changed a path, as in `git log -- <path>`: newest first, history simplified. Bounded by the
    /// runner's limits.
    /// Cacheable forever: the arguments determine the result.
    pub async fn log_path(
        &self,
        git: &Git,
        client: Client,
        start: Oid,
        path: &[u8],
        skip: usize,
        limit: usize,
    ) -> Result<LogPage, ReadError> {
        let path = addressable(path)?;
        let limit = limit.min(LONGEST_PAGE);
        let reading = git.reading(client).await?;
        let mut oids = self.changed(&reading, start, path, skip, limit + 1).await?;
        let more = oids.len() > limit;
        oids.truncate(limit);
        let reader = self.clone();
        let commits = blocking(move || reader.commits(&oids)).await?;
        Ok(LogPage { commits, more })
    }

    /// Ids of commits that changed a path.
    pub(super) async fn changed(
        &self,
        reading: &Reading<'_>,
        start: Oid,
        path: &[u8],
        skip: usize,
        limit: usize,
    ) -> Result<Vec<Oid>, ReadError> {
        let (skip, count) = (format!("--skip={skip}"), format!("--max-count={limit}"));
        let output = self.rev_list(reading, &[&skip, &count], start, path).await?;
        let parsed: Option<Vec<Oid>> = output
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| Oid::from_hex(line).ok())
            .collect();
        parsed.ok_or_else(|| self.broken("git rev-list printed something that is no id"))
    }

    /// Number of commits that changed a path.
    pub(super) async fn count_changed(
        &self,
        reading: &Reading<'_>,
        start: Oid,
        path: &[u8],
    ) -> Result<usize, ReadError> {
        let output = self.rev_list(reading, &["--count"], start, path).await?;
        let count = std::str::from_utf8(&output).ok().and_then(|text| text.trim().parse().ok());
        count.ok_or_else(|| self.broken("git rev-list printed something that is no number"))
    }

    async fn rev_list(
        &self,
        reading: &Reading<'_>,
        options: &[&str],
        start: Oid,
        path: &[u8],
    ) -> Result<Vec<u8>, ReadError> {
        let output = reading
            .call("rev-list", self.repo_dir())
            .env("GIT_LITERAL_PATHSPECS", "1")
            .args(options)
            .args(["--end-of-options", &start.to_string(), "--"])
            .args([OsStr::from_bytes(path)])
            .run(&[], reading.limit())
            .await?;
        Ok(output)
    }
}

/// A path that git accepts. A path that no tree can contain is `NotFound` instead of a git error.
pub(super) fn addressable(path: &[u8]) -> Result<&[u8], ReadError> {
    let odd = |name: &[u8]| matches!(name, b"" | b"." | b"..") || name.contains(&0);
    if components(path).any(odd) || trim(path).is_empty() { Err(ReadError::NotFound) } else { Ok(trim(path)) }
}
