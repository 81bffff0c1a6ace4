//! How a bare repository begins and ends.
//!
//! Made by hand rather than by `git init`: five small files, one rename, and never half there.

use crate::durable::{remove_tree, sync_all, sync_dir, write_new};
use crate::error::blocking;
use crate::{GitError, Layout};
use abide_core::{RefName, RepoId, failpoint};
use std::io;
use std::path::{Path, PathBuf};

/// All a repository may say about itself. Everything else comes with each call.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";

/// Makes an empty bare repository, durable when this returns. One that exists (made before a crash) is kept as it is.
pub async fn init_bare(layout: &Layout, id: RepoId, default_branch: &RefName) -> Result<(), GitError> {
    let (draft, target) = (layout.draft(), layout.repo(id));
    let head = head_content(default_branch);
    blocking(move || make(&draft, &target, &head).map_err(GitError::io("create repository", &target))).await
}

/// Makes the empty repository that is read in place of those that have nothing yet, if it is not there.
pub async fn init_empty(layout: &Layout) -> Result<PathBuf, GitError> {
    let (draft, target) = (layout.draft(), layout.empty());
    let made = target.clone();
    blocking(move || {
        make(&draft, &target, "ref: refs/heads/main\n").map_err(GitError::io("create repository", &target))
    })
    .await?;
    Ok(made)
}

/// Among the incoming areas, so that what a crash leaves is found and removed like any other.
fn make(draft: &Path, target: &Path, head: &str) -> io::Result<()> {
    if target.join("HEAD").exists() {
        return Ok(());
    }
    if let Some(areas) = draft.parent() {
        std::fs::create_dir_all(areas)?;
    }
    let result = fill_with(draft, head, || failpoint::hit(failpoint::DIRECTORY_HALF_MADE)).and_then(|()| {
        match place(draft, target) {
            // Somebody else was faster with the same one: theirs is as good.
            Err(_) if target.join("HEAD").exists() => remove_tree(draft),
            result => result,
        }
    });
    if result.is_err() {
        let _ = remove_tree(draft);
    }
    result
}

/// Moves a repository that is whole to its place, durable when this returns.
pub(crate) fn place(draft: &Path, target: &Path) -> io::Result<()> {
    let shard = target.parent().expect("a repository is below a directory");
    std::fs::create_dir_all(shard)?;
    std::fs::rename(draft, target)?;
    sync_dir(shard)?;
    match shard.parent() {
        // The shard may be new.
        Some(repos) if repos.ends_with("repos") => sync_dir(repos),
        _ => Ok(()),
    }
}

/// Writes what git itself needs to call a directory a repository; shared with copies and the probe at start.
pub(crate) fn fill(dir: &Path, head: &str) -> io::Result<()> {
    fill_with(dir, head, || ())
}

/// The same, with something to do while half of it is there.
fn fill_with(dir: &Path, head: &str, halfway: impl FnOnce()) -> io::Result<()> {
    const DIRS: [&str; 7] = ["", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags"];
    let dirs: Vec<_> = DIRS.iter().map(|name| dir.join(name)).collect();
    for path in &dirs {
        std::fs::create_dir(path)?;
    }
    halfway();
    write_new(&dir.join("config"), CONFIG.as_bytes())?;
    write_new(&dir.join("HEAD"), head.as_bytes())?;
    sync_all(&dirs)
}

pub(crate) fn head_content(branch: &RefName) -> String {
    format!("ref: {branch}\n")
}

/// Points HEAD at a branch, which need not exist. The caller holds the repository's lease.
pub async fn set_head(repo_dir: &Path, branch: &RefName) -> Result<(), GitError> {
    let (repo, content) = (repo_dir.to_owned(), head_content(branch));
    blocking(move || {
        // The same lock that git takes, so that no git process writes HEAD beside us.
        let lock = repo.join("HEAD.lock");
        write_new(&lock, content.as_bytes()).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => GitError::Locked(lock.clone()),
            _ => GitError::io("write", &lock)(error),
        })?;
        let moved = std::fs::rename(&lock, repo.join("HEAD")).and_then(|()| sync_dir(&repo));
        if moved.is_err() {
            let _ = std::fs::remove_file(&lock);
        }
        moved.map_err(GitError::io("set HEAD of", &repo))
    })
    .await
}

/// Takes a repository from its place. Ids are never given out twice, so what lies in its grave is of it alone: left by
/// a removal that was cut short, which this one finishes.
fn bury(target: &Path, grave: &Path) -> io::Result<()> {
    match std::fs::rename(target, grave) {
        Ok(()) => sync_dir(target.parent().expect("a repository is below its shard"))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    failpoint::hit(failpoint::PURGE_BURIED);
    Ok(())
}

/// Removes what is in a grave. A git that was tidying there may add to it for a moment.
fn clear(grave: &Path) -> io::Result<()> {
    const TRIES: usize = 20;
    for _ in 0..TRIES {
        match remove_tree(grave) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            result => return result,
        }
    }
    remove_tree(grave)
}

/// Removes what earlier versions were making among the repositories when a crash came. Returns how many there were.
pub async fn remove_drafts(layout: &Layout) -> Result<u64, GitError> {
    let layout = layout.clone();
    blocking(move || {
        let drafts = layout.repo_dirs().map_err(GitError::io("list", &layout.repos()))?.drafts;
        for draft in &drafts {
            remove_tree(draft).map_err(GitError::io("remove", draft))?;
        }
        Ok(drafts.len() as u64)
    })
    .await
}

/// Removes a repository for good. It is gone from its place at once; if a crash leaves some of it, calling this again
/// finishes it.
pub async fn remove_repo(layout: &Layout, id: RepoId) -> Result<(), GitError> {
    let (target, grave) = (layout.repo(id), layout.grave(id));
    blocking(move || {
        bury(&target, &grave).and_then(|()| clear(&grave)).map_err(GitError::io("remove repository", &target))
    })
    .await
}
