//! Keeping a repository fast. Nothing here ever removes an object.

use crate::layout::entries;
use crate::{Git, GitError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// How thorough a maintenance run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Joins loose objects and small packs; cheap, for after some pushes.
    Light,
    /// Rewrites everything into one pack, with what no ref reaches kept apart in another.
    Full,
}

/// Repacks and refreshes what makes fetches fast (bitmap, commit-graph). May run beside pushes and fetches.
pub async fn maintain(git: &Git, repo_dir: &Path, level: Level) -> Result<(), GitError> {
    let _place = git.heavy_place().await?;
    let limit = git.limits().maintenance;
    clear_old_locks(repo_dir, limit).map_err(GitError::io("remove old locks in", repo_dir))?;
    let how: &[&str] = match level {
        Level::Light => &["--geometric=2"],
        // Never expired: an object that no ref reaches may be what a push in flight relies on.
        Level::Full => &["--cruft", "--cruft-expiration=never"],
    };
    let repack = git.call("repack", repo_dir).args(how);
    repack.args(["-d", "-l", "-q", "--write-midx", "--write-bitmap-index"]).run(&[], limit).await?;
    let graph = git.call("commit-graph", repo_dir);
    graph.args(["write", "--reachable", "--split", "--no-progress"]).run(&[], limit).await?;
    Ok(())
}

/// Locks of maintenance, below the repository.
const LOCKS: [&str; 3] = [
    "objects/pack/multi-pack-index.lock",
    "objects/info/commit-graph.lock",
    "objects/info/commit-graphs/commit-graph-chain.lock",
];

/// Removes locks of a maintenance run that was killed: git would refuse every later run. A lock that is older than the
/// longest run has no process any more.
fn clear_old_locks(repo_dir: &Path, longest: Duration) -> io::Result<()> {
    for path in LOCKS.map(|name| repo_dir.join(name)) {
        let made = match path.symlink_metadata() {
            Ok(metadata) => metadata.modified()?,
            Err(_) => continue,
        };
        if made.elapsed().is_ok_and(|age| age > longest) {
            tracing::info!(path = %path.display(), "removed a stale lock");
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Joins loose refs into one file, so that reading all of them is one read.
///
/// A writer of refs: the caller holds the repository's lease and moves its generation, as for a push.
pub async fn pack_refs(git: &Git, repo_dir: &Path) -> Result<(), GitError> {
    git.call("pack-refs", repo_dir).args(["--all", "--prune"]).run(&[], git.limits().quick).await.map(drop)
}

/// So many loose files are read as fast as what they could be joined to.
const FEW: usize = 100;

/// Whether there is so little in a repository that tidying it gains nothing: no pack, and few loose objects and refs.
/// Blocks.
pub fn is_small(repo_dir: &Path) -> Result<bool, GitError> {
    let objects = repo_dir.join("objects");
    let look = || -> io::Result<bool> {
        let mut left = FEW;
        Ok(entries(&objects.join("pack"))?.is_empty()
            && has_at_most(&mut left, &objects)?
            && has_at_most(&mut left, &repo_dir.join("refs"))?)
    };
    look().map_err(GitError::io("look into", repo_dir))
}

/// Takes the files below a directory from what is left, and tells whether there was enough.
fn has_at_most(left: &mut usize, dir: &Path) -> io::Result<bool> {
    for path in entries(dir)? {
        let enough = match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Ok(metadata) if metadata.is_dir() => has_at_most(left, &path)?,
            result => {
                result?;
                left.checked_sub(1).map(|less| *left = less).is_some()
            }
        };
        if !enough {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Bytes that a repository takes on disk; blocks. What vanishes while we look is not counted.
pub fn disk_usage(repo_dir: &Path) -> Result<u64, GitError> {
    usage(repo_dir).map_err(GitError::io("measure", repo_dir))
}

fn usage(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for path in entries(dir)? {
        let metadata = match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            result => result?,
        };
        bytes += metadata.blocks() * 512;
        if metadata.is_dir() {
            bytes += usage(&path)?;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_that_are_older_than_a_run_go_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        for name in LOCKS {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let there = || LOCKS.iter().filter(|name| dir.path().join(name).exists()).count();
        clear_old_locks(dir.path(), Duration::from_secs(3600)).unwrap();
        assert_eq!(there(), LOCKS.len());
        let old = std::fs::File::options().write(true).open(dir.path().join(LOCKS[0])).unwrap();
        old.set_modified(std::time::UNIX_EPOCH).unwrap();
        clear_old_locks(dir.path(), Duration::from_secs(3600)).unwrap();
        assert_eq!(there(), LOCKS.len() - 1);
    }
}
