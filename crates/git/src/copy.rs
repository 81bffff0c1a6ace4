//! Copying a repository, for forks, and parts of one, for those that share commits.

use crate::durable::{sync_all, write_new};
use crate::error::blocking;
use crate::incoming::{Area, Connected, Incoming, quoted};
use crate::runner::Call;
use crate::{Git, GitError, Layout, Ref, bare};
use abide_core::{Oid, RefName, RepoId};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// Packs everything that these tips of `from_repo` reach into an object directory of another repository, durable when
/// this returns. The copy stands alone: no alternates, no links. git fails at the first object that is missing.
///
/// The caller names the tips, so that what the reader may not see is not copied.
pub(crate) async fn copy_objects(git: &Git, from_repo: &Path, to_objects: &Path, tips: &[Oid]) -> Result<(), GitError> {
    let _place = git.heavy_place().await?;
    let call = copying(git.call("pack-objects", from_repo), from_repo, to_objects);
    pack_into(call, to_objects, tips, &[], git.limits().maintenance).await
}

/// A call that reads from a repository and writes to another object directory. Temporary files are made beside the
/// result, and only a rename is left to do.
fn copying<'a>(call: Call<'a>, from_repo: &Path, to_objects: &Path) -> Call<'a> {
    call.env("GIT_OBJECT_DIRECTORY", to_objects)
        .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&from_repo.join("objects")))
}

/// Settings that keep packing within the memory of a client without an account.
const STRANGERS_PACKING: &[(&str, &str)] = &[
    ("pack.threads", "1"),
    ("pack.windowMemory", "16m"),
    ("pack.deltaCacheSize", "16m"),
    ("core.deltaBaseCacheLimit", "16m"),
];

impl Incoming {
    /// Everything that these tips of another repository reach, for whichever repository takes it.
    pub async fn copied(self, from_repo: &Path, tips: &[Oid]) -> Result<Connected, GitError> {
        if self.client().is_stranger() {
            let _place = self.git().unpack_place(self.client()).await?;
            let call = self.git().call_with("pack-objects", from_repo, STRANGERS_PACKING);
            let call = copying(call.ration(self.git().ration_of(self.client())), from_repo, &self.objects());
            pack_into(call, &self.objects(), tips, &[], self.git().limits().check).await?;
        } else {
            copy_objects(self.git(), from_repo, &self.objects(), tips).await?;
        }
        Ok(Connected::closed(self, tips.iter().copied()))
    }

    /// Bytes on disk of what [`Incoming::fill`] would pack. Nothing is written.
    pub async fn weigh(&self, from: &[PathBuf], tips: &[Oid], known: &[Oid]) -> Result<u64, GitError> {
        let _place = self.git().unpack_place(self.client()).await?;
        let call = self.borrowing("rev-list", from).args(["--objects", "--disk-usage", "--stdin"]);
        let output = call.run(revisions(tips, known).as_bytes(), self.git().limits().check).await?;
        Ok(String::from_utf8_lossy(&output).trim().parse().unwrap_or(u64::MAX))
    }

    /// A call that sees these object directories beside the area and the repository.
    fn borrowing(&self, what: &'static str, from: &[PathBuf]) -> Call<'_> {
        let mut alternates = quoted(&self.repo_objects());
        for directory in from {
            alternates.push(":");
            alternates.push(quoted(directory));
        }
        let settings = if self.client().is_stranger() { STRANGERS_PACKING } else { &[] };
        let call = self.call(what, settings).ration(self.git().ration_of(self.client()));
        call.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternates)
    }

    /// Packs into this area what the tips reach in the given object directories, without what `known` commits of the
    /// repository reach. Durable when this returns; whether it is complete here is for [`Incoming::connect`] to find.
    pub async fn fill(&self, from: &[PathBuf], tips: &[Oid], known: &[Oid]) -> Result<(), GitError> {
        let _place = self.git().unpack_place(self.client()).await?;
        let call = self.borrowing("pack-objects", from);
        let limits = self.git().limits();
        let longest = if self.client().is_stranger() { limits.check } else { limits.maintenance };
        pack_into(call, &self.objects(), tips, known, longest).await
    }
}

/// Tips, and what they are wanted without, as git reads them.
fn revisions(tips: &[Oid], known: &[Oid]) -> String {
    let mut input = String::with_capacity((tips.len() + known.len()) * 42);
    for tip in tips {
        writeln!(input, "{tip}").expect("writing to a string does not fail");
    }
    for tip in known {
        writeln!(input, "^{tip}").expect("writing to a string does not fail");
    }
    input
}

/// Runs pack-objects over the tips, into the `pack` directory below `objects`.
async fn pack_into(
    call: Call<'_>,
    objects: &Path,
    tips: &[Oid],
    known: &[Oid],
    longest: Duration,
) -> Result<(), GitError> {
    let packs = objects.join("pack");
    std::fs::create_dir_all(&packs).map_err(GitError::io("create", &packs))?;
    call.args(["--revs", "--delta-base-offset", "--non-empty", "-q"])
        .args([packs.join("pack")])
        .run(revisions(tips, known).as_bytes(), longest)
        .await?;
    blocking(move || sync_all(std::slice::from_ref(&packs)).map_err(GitError::io("flush", &packs))).await
}
