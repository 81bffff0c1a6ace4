//! Copying a repository, for forks.

use crate::durable::{sync_all, write_new};
use crate::error::blocking;
use crate::incoming::{Area, quoted};
use crate::{Git, GitError, Layout, Ref, bare};
use abide_core::{Oid, RefName, RepoId};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// A repository that is put together apart from the others. Dropping it removes it, unless it was placed.
#[derive(Debug)]
pub struct Draft {
    area: Area,
}

impl Draft {
    /// Makes an empty repository in an incoming area; the key is ours and unique.
    pub async fn create(layout: &Layout, key: &str, head: &RefName) -> Result<Self, GitError> {
        let draft = Self { area: Area::new(layout, key)? };
        let (area, repo, head) = (draft.area.path().to_owned(), draft.repo(), bare::head_content(head));
        let make =
            move || std::fs::create_dir(&area).and_then(|()| bare::fill(&repo, &head)).map_err(|error| (area, error));
        blocking(make).await.map_err(|(area, error)| GitError::io("create repository in", &area)(error))?;
        Ok(draft)
    }

    fn repo(&self) -> PathBuf {
        self.area.path().join("repo.git")
    }

    /// Gives it these refs of another repository and all that they reach, durable when this returns.
    pub async fn copy(&self, git: &Git, from_repo: &Path, refs: &[Ref]) -> Result<(), GitError> {
        let tips: Vec<Oid> = refs.iter().map(|found| found.oid).collect();
        let repo = self.repo();
        copy_objects(git, from_repo, &repo.join("objects"), &tips).await?;
        let packed = packed_refs(refs);
        let write = move || -> io::Result<()> {
            write_new(&repo.join("packed-refs"), &packed)?;
            sync_all(&[repo.join("objects"), repo])
        };
        let area = self.area.path().to_owned();
        blocking(write).await.map_err(GitError::io("write the refs of a copy in", &area))
    }

    /// Moves it to where the repository of that id belongs. The area stays until [`Draft::discard`].
    pub async fn place(&self, layout: &Layout, id: RepoId) -> Result<(), GitError> {
        let (draft, target) = (self.repo(), layout.repo(id));
        blocking(move || bare::place(&draft, &target).map_err(GitError::io("place repository", &target))).await
    }

    /// Removes the area, and with it the repository unless it was placed.
    pub async fn discard(self) -> Result<(), GitError> {
        self.area.remove().await
    }
}

/// The file that git keeps many refs in.
fn packed_refs(refs: &[Ref]) -> Vec<u8> {
    let mut sorted: Vec<&Ref> = refs.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut content = b"# pack-refs with: peeled fully-peeled sorted \n".to_vec();
    for found in sorted {
        content.extend_from_slice(format!("{} ", found.oid).as_bytes());
        content.extend_from_slice(&found.name);
        content.push(b'\n');
        if let Some(peeled) = found.peeled {
            content.extend_from_slice(format!("^{peeled}\n").as_bytes());
        }
    }
    content
}

/// Packs everything that these tips of `from_repo` reach into an object directory of another repository or of an
/// incoming area, durable when this returns. The copy stands alone: no alternates, no links.
///
/// The caller names the tips, so that what the reader may not see is not copied.
pub async fn copy_objects(git: &Git, from_repo: &Path, to_objects: &Path, tips: &[Oid]) -> Result<(), GitError> {
    let _place = git.heavy_place().await?;
    let mut input = String::with_capacity(tips.len() * 41);
    for tip in tips {
        writeln!(input, "{tip}").expect("writing to a string does not fail");
    }
    let packs = to_objects.join("pack");
    std::fs::create_dir_all(&packs).map_err(GitError::io("create", &packs))?;
    git.call("pack-objects", from_repo)
        // Temporary files are then made beside the result, and only a rename is left to do.
        .env("GIT_OBJECT_DIRECTORY", to_objects)
        .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&from_repo.join("objects")))
        .args(["--revs", "--delta-base-offset", "--non-empty", "-q"])
        .args([packs.join("pack")])
        .run(input.as_bytes(), git.limits().maintenance)
        .await?;
    blocking(move || sync_all(std::slice::from_ref(&packs)).map_err(GitError::io("flush", &packs))).await
}
