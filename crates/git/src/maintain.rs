//! Repository maintenance. Nothing here removes an object.

use crate::layout::entries;
use crate::{Git, GitError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Thoroughness of a maintenance run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Merges loose objects and small packs; cheap, runs after some pushes.
    Light,
    /// Rewrites everything into one pack; unreachable objects go to a separate cruft pack.
    Full,
}

/// Owner of a repository, for the limits of its maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Account,
    /// A nostr key without an account.
    Stranger,
}

/// Repacks, and writes the bitmap and commit-graph that make fetches fast. Safe beside pushes and fetches.
///
/// [`GitError::Locked`]: a git process of a server that died may still be at work here. Its lock is removed once it is older
/// than the longest run.
pub async fn maintain(git: &Git, repo_dir: &Path, level: Level, owner: Owner) -> Result<(), GitError> {
    let _slot = git.heavy_slot().await?;
    let limit = git.limits().maintenance;
    clear_old_locks(repo_dir, limit)?;
    clear_old_drafts(repo_dir, limit).map_err(GitError::io("remove old temporary files in", repo_dir))?;
    let ration = git.maintenance_ration(owner);
    let how: &[&str] = match level {
        Level::Light => &["--geometric=2"],
        // No expiry: a push in progress may rely on an unreachable object.
        Level::Full => &["--cruft", "--cruft-expiration=never"],
    };
    let repack = git.call("repack", repo_dir).ration(ration).args(how);
    repack.args(["-d", "-l", "-q", "--write-midx", "--write-bitmap-index"]).run(&[], limit).await?;
    let graph = git.call("commit-graph", repo_dir).ration(ration);
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
/// longest run has no process any more; a younger one is [`GitError::Locked`].
fn clear_old_locks(repo_dir: &Path, longest: Duration) -> Result<(), GitError> {
    for path in LOCKS.map(|name| repo_dir.join(name)) {
        match is_older(&path, longest) {
            None => {}
            Some(false) => return Err(GitError::Locked(path)),
            Some(true) => {
                tracing::info!(path = %path.display(), "removed a stale lock");
                std::fs::remove_file(&path).map_err(GitError::io("remove stale lock", &path))?;
            }
        }
    }
    Ok(())
}

/// Removes unfinished packs of runs that were killed, for example by their limits: git never removes them.
fn clear_old_drafts(repo_dir: &Path, longest: Duration) -> io::Result<()> {
    for path in entries(&repo_dir.join("objects/pack"))? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if (name.starts_with("tmp_") || name.starts_with(".tmp-")) && is_older(&path, longest) == Some(true) {
            tracing::info!(path = %path.display(), "removed an unfinished pack");
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Whether a file is older than the longest run; `None` if it does not exist.
fn is_older(path: &Path, longest: Duration) -> Option<bool> {
    let made = path.symlink_metadata().and_then(|metadata| metadata.modified()).ok()?;
    Some(made.elapsed().is_ok_and(|age| age > longest))
}

/// Merges loose refs into `packed-refs`, so that one read returns all refs.
///
/// This writes refs: the caller holds the repository's lease and advances its generation, as for a push.
pub async fn pack_refs(git: &Git, repo_dir: &Path) -> Result<(), GitError> {
    git.call("pack-refs", repo_dir).args(["--all", "--prune"]).run(&[], git.limits().quick).await.map(drop)
}

/// Up to this many loose files, reading them is as fast as reading a pack.
const FEW: usize = 100;

/// Whether a repository is too small for maintenance to help: no pack, few loose objects and refs. Blocks.
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

/// Subtracts the files below a directory from `left`; `false` if there are more.
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

/// Disk usage of a repository in bytes. Blocks. Files that vanish meanwhile are not counted.
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
    fn locks_and_drafts_that_are_older_than_a_run_go_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        const DRAFTS: [&str; 2] = ["objects/pack/tmp_pack_abc", "objects/pack/.tmp-7-pack-abc.pack"];
        const KEPT: [&str; 2] = ["objects/pack/tmp_idx_young", "objects/pack/pack-abc.pack"];
        for name in LOCKS.iter().chain(&DRAFTS).chain(&KEPT) {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let there = |names: &[&str]| names.iter().filter(|name| dir.path().join(name).exists()).count();
        let age = |name: &str| {
            let old = std::fs::File::options().write(true).open(dir.path().join(name)).unwrap();
            old.set_modified(std::time::UNIX_EPOCH).unwrap();
        };
        let longest = Duration::from_secs(3600);
        age(LOCKS[0]);
        assert!(matches!(clear_old_locks(dir.path(), longest), Err(GitError::Locked(_))), "two others are young");
        assert_eq!(there(&LOCKS), LOCKS.len() - 1);
        LOCKS[1..].iter().for_each(|name| age(name));
        clear_old_locks(dir.path(), longest).unwrap();
        assert_eq!(there(&LOCKS), 0);

        clear_old_drafts(dir.path(), longest).unwrap();
        assert_eq!(there(&DRAFTS), 2);
        DRAFTS.iter().chain(&KEPT[1..]).for_each(|name| age(name));
        clear_old_drafts(dir.path(), longest).unwrap();
        assert_eq!((there(&DRAFTS), there(&KEPT)), (0, 2));
    }
}
