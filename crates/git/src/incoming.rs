//! The area where a push's objects wait until its refs may move.
//!
//! `<data>/incoming/<key>/objects` is an object directory that borrows the repository's. Nothing in the repository
//! changes until [`Connected::migrate`]; a slow, hostile or vanished client costs a directory that is removed again.

mod area;
mod connect;
mod migrate;
mod scan;
mod unpack;

use crate::durable::sync_dir;
use crate::error::blocking;
use crate::layout::entries;
use crate::runner::Call;
use crate::{Client, Git, GitError, Layout};
use abide_core::RepoId;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(crate) use area::Area;
pub use connect::Connected;
pub use scan::{Flaw, scan_pack};
pub use unpack::{PackOutcome, TOLERATED_FSCK};

/// Objects of one push, apart from the repository and not proved complete: [`Incoming::connect`] makes them something
/// that a repository takes. Dropping it removes them, unless they were migrated: then only the area goes.
#[derive(Debug)]
pub struct Incoming {
    git: Git,
    area: Area,
    repo: PathBuf,
    client: Client,
    /// The repository it borrows from is the one that is always empty.
    alone: bool,
    /// Somebody else decides when the area goes.
    lent: bool,
}

impl Incoming {
    /// Makes an empty area for a push to this repository. The key is ours (a push id), unique among all pushes.
    pub async fn create(git: &Git, layout: &Layout, repo: RepoId, key: &str) -> Result<Self, GitError> {
        Self::create_beside(git, layout, layout.repo(repo), key).await
    }

    /// As [`Incoming::create`], borrowing the objects of the repository in this directory.
    pub async fn create_beside(git: &Git, layout: &Layout, repo: PathBuf, key: &str) -> Result<Self, GitError> {
        let alone = repo == layout.empty();
        let area = Area::new(layout, key)?;
        let made = Self { git: git.clone(), area, repo, client: Client::SERVER, alone, lent: false };
        let objects = made.objects();
        blocking(move || {
            let info = objects.join("info");
            std::fs::create_dir_all(&info).map_err(GitError::io("create", &info))?;
            let pack = objects.join("pack");
            std::fs::create_dir_all(&pack).map_err(GitError::io("create", &pack))
        })
        .await?;
        Ok(made)
    }

    /// The objects that were kept under this key, in view of this repository. Neither dropping nor discarding it removes
    /// them: several repositories may be given what one area holds.
    pub fn reopen(git: &Git, layout: &Layout, repo: PathBuf, key: &str) -> Result<Self, GitError> {
        let mut area = Area::new(layout, key)?;
        area.leave();
        let alone = repo == layout.empty();
        Ok(Self { git: git.clone(), area, repo, client: Client::SERVER, alone, lent: true })
    }

    /// The same, with the work counted as this client's.
    pub fn of(self, client: Client) -> Self {
        Self { client, ..self }
    }

    /// Keeps the objects under another key, durable when this returns: dropping it no longer removes them.
    pub async fn keep(mut self, layout: &Layout, key: &str) -> Result<(), GitError> {
        let mut target = Area::new(layout, key)?;
        target.leave();
        let (from, to, root) = (self.area.path().to_owned(), target.path().to_owned(), layout.incoming_root());
        blocking(move || {
            std::fs::rename(&from, &to).and_then(|()| sync_dir(&root)).map_err(GitError::io("keep objects in", &to))
        })
        .await?;
        self.area.leave();
        Ok(())
    }

    /// Where the objects wait.
    pub fn objects(&self) -> PathBuf {
        self.area.path().join("objects")
    }

    /// Whose work it is.
    pub(crate) fn client(&self) -> Client {
        self.client
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    pub(crate) fn repo_objects(&self) -> PathBuf {
        self.repo.join("objects")
    }

    /// A call that sees the repository with the waiting objects, writes only here, and may not move refs.
    pub(crate) fn call(&self, what: &'static str, settings: &[(&str, &str)]) -> Call<'_> {
        self.git
            .call_with(what, &self.repo, settings)
            .env("GIT_OBJECT_DIRECTORY", self.objects())
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&self.repo_objects()))
            .env("GIT_QUARANTINE_PATH", self.objects())
    }

    /// Removes the area, and with it every object that was not migrated, unless it is lent.
    pub async fn discard(self) -> Result<(), GitError> {
        if self.lent { Ok(()) } else { self.area.remove().await }
    }
}

/// Removes the area of a push that is over, if it is still there.
pub async fn remove_incoming(layout: &Layout, key: &str) -> Result<(), GitError> {
    Area::new(layout, key)?.remove().await
}

/// The keys of all areas, for the sweep.
pub fn list_incoming(layout: &Layout) -> Result<Vec<String>, GitError> {
    let root = layout.incoming_root();
    let paths = entries(&root).map_err(GitError::io("list", &root))?;
    Ok(paths.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
}

/// A path as one element of a colon-separated list, the way git reads it.
pub(crate) fn quoted(path: &Path) -> OsString {
    let mut quoted = vec![b'"'];
    for &byte in OsStr::as_bytes(path.as_os_str()) {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            b'\n' => quoted.extend(b"\\n"),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_colons_and_quotes_stay_one_path() {
        assert_eq!(quoted(Path::new("/a:b")), "\"/a:b\"");
        assert_eq!(quoted(Path::new("/a\"b\\c")), "\"/a\\\"b\\\\c\"");
    }
}
