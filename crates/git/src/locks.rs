//! Removal of lock files that a crashed writer left behind.

use crate::GitError;
use crate::layout::entries;
use std::io;
use std::path::{Path, PathBuf};

/// Start of the names of loose objects that git is writing.
const PARTIAL_OBJECT: &str = "tmp_obj_";

/// Removes lock files and partial objects; returns their paths.
///
/// Only for the holder of the repository's lease after a crash, when none of our git processes can run here.
pub fn clear_stale_locks(repo_dir: &Path) -> Result<Vec<PathBuf>, GitError> {
    let stale = find(repo_dir).map_err(GitError::io("look for stale locks in", repo_dir))?;
    for path in &stale {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(GitError::io("remove stale lock", path)(error));
            }
            _ => tracing::info!(path = %path.display(), "removed a stale lock"),
        }
    }
    Ok(stale)
}

/// Whether a git process may be moving refs here: each holds a lock while it does. Blocks.
pub fn refs_are_locked(repo_dir: &Path) -> Result<bool, GitError> {
    Ok(stale_locks(repo_dir)?.iter().any(|path| !is_object(path)))
}

fn is_object(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PARTIAL_OBJECT))
}

/// Lock files and partial objects present now. Some may belong to a running writer.
pub fn stale_locks(repo_dir: &Path) -> Result<Vec<PathBuf>, GitError> {
    find(repo_dir).map_err(GitError::io("look for stale locks in", repo_dir))
}

fn find(repo: &Path) -> io::Result<Vec<PathBuf>> {
    let mut stale: Vec<PathBuf> = ["HEAD.lock", "packed-refs.lock", "packed-refs.new", "config.lock"]
        .iter()
        .map(|name| repo.join(name))
        .filter(|path| path.exists())
        .collect();
    below(&repo.join("refs"), &|name| name.ends_with(".lock"), &mut stale)?;
    for dir in entries(&repo.join("objects"))? {
        let loose = dir.file_name().is_some_and(|name| name.len() == 2);
        if loose {
            below(&dir, &|name| name.starts_with(PARTIAL_OBJECT), &mut stale)?;
        }
    }
    Ok(stale)
}

fn below(dir: &Path, wanted: &dyn Fn(&str) -> bool, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for path in entries(dir)? {
        // Maintenance may remove files between listing and reading them.
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if metadata.is_dir() {
            below(&path, wanted, found)?;
        } else if path.file_name().and_then(|name| name.to_str()).is_some_and(wanted) {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_go_and_everything_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let stale = ["HEAD.lock", "packed-refs.lock", "refs/heads/a/b.lock", "objects/ab/tmp_obj_x"];
        let kept = ["HEAD", "packed-refs", "refs/heads/a/b", "objects/ab/cdef", "objects/pack/tmp_pack_1"];
        for name in stale.iter().chain(&kept) {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        assert!(refs_are_locked(dir.path()).unwrap());
        assert_eq!(clear_stale_locks(dir.path()).unwrap().len(), stale.len());
        std::fs::write(dir.path().join("objects/ab/tmp_obj_y"), "").unwrap();
        assert!(!refs_are_locked(dir.path()).unwrap(), "an object is no lock");
        std::fs::remove_file(dir.path().join("objects/ab/tmp_obj_y")).unwrap();
        assert!(stale.iter().all(|name| !dir.path().join(name).exists()));
        assert!(kept.iter().all(|name| dir.path().join(name).exists()));
        assert!(clear_stale_locks(dir.path()).unwrap().is_empty());
    }
}
