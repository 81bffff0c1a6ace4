//! Keeping a repository fast. Nothing here ever removes an object.

use crate::layout::entries;
use crate::{Git, GitError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

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

/// Joins loose refs into one file, so that reading all of them is one read.
///
/// A writer of refs: the caller holds the repository's lease and moves its generation, as for a push.
pub async fn pack_refs(git: &Git, repo_dir: &Path) -> Result<(), GitError> {
    git.call("pack-refs", repo_dir).args(["--all", "--prune"]).run(&[], git.limits().quick).await.map(drop)
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
