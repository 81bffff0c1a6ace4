//! Moves objects from an incoming area into the repository.

use super::Incoming;
use crate::GitError;
use crate::durable::sync_all;
use crate::error::blocking;
use crate::layout::entries;
use abide_core::failpoint;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

impl Incoming {
    /// Moves the objects into a repository, durable on return. Only a proof may call this, see
    /// [`Connected::migrate`](super::Connected::migrate).
    pub(super) async fn migrate_into(&self, repo: &Path) -> Result<(), GitError> {
        let (from, to) = (self.objects(), repo.join("objects"));
        blocking(move || migrate(&from, &to).map_err(GitError::io("move objects into", &to))).await
    }
}

fn migrate(from: &Path, to: &Path) -> io::Result<()> {
    let mut touched = BTreeSet::new();
    for dir in entries(from)? {
        let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let target = to.join(name);
        if name == "pack" {
            move_packs(&dir, &target, &mut touched)?;
        } else if name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            move_loose(&dir, &target, to, &mut touched)?;
        }
        // The repository needs nothing else from the area (info/, temporary files).
    }
    let touched: Vec<PathBuf> = touched.into_iter().collect();
    sync_all(&touched)
}

/// git sees a pack as soon as its `.idx` exists, so the index is linked last.
fn move_packs(from: &Path, to: &Path, touched: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    let is_index = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "idx");
    let (indexes, others): (Vec<_>, Vec<_>) =
        entries(from)?.into_iter().filter(|path| file_name(path).starts_with("pack-")).partition(is_index);
    if indexes.is_empty() {
        return Ok(());
    }
    touched.insert(to.to_owned());
    for path in &others {
        give(path, &to.join(file_name(path)))?;
    }
    failpoint::hit(failpoint::PUSH_PACK_WITHOUT_INDEX);
    indexes.iter().try_for_each(|path| give(path, &to.join(file_name(path))))
}

fn move_loose(from: &Path, to: &Path, parent: &Path, touched: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    let objects: Vec<_> = entries(from)?.into_iter().filter(|path| file_name(path).len() == 38).collect();
    if objects.is_empty() {
        return Ok(());
    }
    match std::fs::create_dir(to) {
        Ok(()) => drop(touched.insert(parent.to_owned())),
        // An interrupted call may have created the directory without flushing its entry.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => drop(touched.insert(parent.to_owned())),
        Err(error) => return Err(error),
    }
    touched.insert(to.to_owned());
    objects.iter().try_for_each(|path| give(path, &to.join(file_name(path))))
}

/// Hard-links a file. Never replaces an existing one: the name is the hash of the content, and the older copy was
/// verified
/// first.
fn give(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Filesystem without hard links. The caller's lease keeps others from creating the file between check and
        // rename.
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
            if to.exists() { Ok(()) } else { std::fs::rename(from, to) }
        }
        result => result,
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
