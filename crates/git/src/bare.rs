//! Creation and removal of bare repositories.
//!
//! We write the five small files and rename the directory instead of running `git init`: a crash never leaves half a
//! repository at its final path.

use crate::durable::{remove_tree, sync_all, sync_dir, write_new};
use crate::error::blocking;
use crate::{GitError, Layout};
use abide_core::{RefName, RepoId, failpoint};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The whole config of a repository. Every other setting is passed with each git call.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";

/// Creates an empty bare repository, durable on return. An existing one (created before a crash) stays unchanged.
pub async fn init_bare(layout: &Layout, id: RepoId, default_branch: &RefName) -> Result<(), GitError> {
    let (draft, target) = (layout.draft(), layout.repo(id));
    let head = head_content(default_branch);
    blocking(move || make(&draft, &target, &head).map_err(GitError::io("create repository", &target))).await
}

/// Creates, if missing, the shared empty repository that stands in for repositories without git data.
pub async fn init_empty(layout: &Layout) -> Result<PathBuf, GitError> {
    let (draft, target) = (layout.draft(), layout.empty());
    let made = target.clone();
    blocking(move || {
        make(&draft, &target, "ref: refs/heads/main\n").map_err(GitError::io("create repository", &target))
    })
    .await?;
    Ok(made)
}

/// Creates the repository under `incoming/` and renames it. The sweep of incoming areas removes what a crash leaves
/// there.
fn make(draft: &Path, target: &Path, head: &str) -> io::Result<()> {
    if target.join("HEAD").exists() {
        return Ok(());
    }
    if let Some(areas) = draft.parent() {
        std::fs::create_dir_all(areas)?;
    }
    let result = fill_with(draft, head, || failpoint::hit(failpoint::DIRECTORY_HALF_MADE)).and_then(|()| {
        match install(draft, target) {
            // Another task created the same repository first; the two are equal.
            Err(_) if target.join("HEAD").exists() => remove_tree(draft),
            result => result,
        }
    });
    if result.is_err() {
        let _ = remove_tree(draft);
    }
    result
}

/// Renames a complete repository to its final path, durable on return.
pub(crate) fn install(draft: &Path, target: &Path) -> io::Result<()> {
    let shard = target.parent().expect("a repository is below a directory");
    std::fs::create_dir_all(shard)?;
    std::fs::rename(draft, target)?;
    sync_dir(shard)?;
    match shard.parent() {
        // The shard directory may be new, so its entry needs a flush too.
        Some(repos) if repos.ends_with("repos") => sync_dir(repos),
        _ => Ok(()),
    }
}

/// Writes the minimum that git accepts as a repository. Copies and the start-up probe use it too.
pub(crate) fn fill(dir: &Path, head: &str) -> io::Result<()> {
    fill_with(dir, head, || ())
}

/// As [`fill`], with a callback between the directories and the files, for the failpoint.
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

/// Points HEAD at a branch, which need not exist. Needs no lock: HEAD follows the database, and no git process of ours
/// writes it. Of several writers at once, the last one stays, and the next reader of the refs corrects a wrong value.
///
/// `HEAD.lock` is not used: git takes it when it moves the default branch, and one that a crash left behind would stop
/// every such push.
pub async fn set_head(layout: &Layout, id: RepoId, branch: &RefName) -> Result<(), GitError> {
    let (draft, repo, content) = (layout.draft(), layout.repo(id), head_content(branch));
    blocking(move || replace_head(&draft, &repo, &content).map_err(GitError::io("set HEAD of", &repo))).await
}

/// Writes a draft under `incoming/` and renames it. The sweep of incoming areas removes what a crash leaves there.
fn replace_head(draft: &Path, repo: &Path, content: &str) -> io::Result<()> {
    std::fs::create_dir_all(draft)?;
    let file = draft.join("HEAD");
    let replaced = write_new(&file, content.as_bytes()).and_then(|()| {
        failpoint::hit(failpoint::HEAD_DRAFTED);
        std::fs::rename(&file, repo.join("HEAD"))?;
        sync_dir(repo)
    });
    let removed = remove_tree(draft);
    replaced.and(removed)
}

/// Renames a repository to its grave. Repo ids are never reused, so an existing grave is the rest of an interrupted
/// removal
/// of this repository, and this removal finishes it.
fn bury(target: &Path, grave: &Path) -> io::Result<()> {
    match std::fs::rename(target, grave) {
        Ok(()) => sync_dir(target.parent().expect("a repository is below its shard"))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    failpoint::hit(failpoint::PURGE_BURIED);
    Ok(())
}

/// Removes a grave. Retries, because a maintenance git process may still create files in it.
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

/// Age from which a draft under `repos/` was left by a crash. A draft is complete within seconds.
const DRAFT_AGE: Duration = Duration::from_secs(600);

/// Whether a draft under `repos/` was left by a crash. Only earlier versions make drafts there; during an upgrade, a node
/// of such a version may be making a younger one. Drafts of this version are areas below `incoming/`.
pub fn is_abandoned(draft: &Path) -> bool {
    let changed = draft.metadata().and_then(|metadata| metadata.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > DRAFT_AGE))
}

/// Removes drafts that earlier versions left under `repos/` after a crash. Returns their number.
pub async fn remove_drafts(layout: &Layout) -> Result<u64, GitError> {
    let layout = layout.clone();
    blocking(move || {
        let mut drafts = layout.repo_dirs().map_err(GitError::io("list", &layout.repos()))?.drafts;
        drafts.retain(|draft| is_abandoned(draft));
        for draft in &drafts {
            remove_tree(draft).map_err(GitError::io("remove", draft))?;
        }
        Ok(drafts.len() as u64)
    })
    .await
}

/// Removes a repository permanently. Its path is free at once; after a crash, a second call removes the rest.
pub async fn remove_repo(layout: &Layout, id: RepoId) -> Result<(), GitError> {
    let (target, grave) = (layout.repo(id), layout.grave(id));
    blocking(move || {
        bury(&target, &grave).and_then(|()| clear(&grave)).map_err(GitError::io("remove repository", &target))
    })
    .await
}
