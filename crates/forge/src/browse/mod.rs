//! Browsing: repository content for pages and the API.
//!
//! [`open`] admits callers who may read; the [`Browser`] then answers from the refs of one moment. Objects are read in
//! this process, on the blocking pool. Expensive results are cached by object ids, which determine them forever: a
//! cached result is never wrong, and the cache only has to be bounded. `commit_path.rs` resolves paths of pages, `history.rs`
//! walks the history, `newest.rs` sorts branches and tags by time, `shared.rs` holds the caches.

mod commit_path;
mod error;
mod history;
mod newest;
mod refs;
mod shared;

use crate::context::standing::Standing;
use crate::git::fetch;
use crate::git::snapshots::{self, Refs};
use crate::open::{self, RepoLocator};
use crate::{Access, Caller, Fault, Forge};
use abide_core::Oid;
use abide_core::policy::Action;
use abide_core::scope::Scope;
use abide_git::Client;
use abide_git::advertise::is_hidden;
use abide_git::read::stream::BlobStream;
use abide_git::read::{Entry, Listing, ReadError, Reader};
use abide_macros::boxed;
use abide_store::repos::Repo;
use std::sync::Arc;

pub use abide_git::Ref;
pub use abide_git::bstr;
pub use abide_git::read::blame::BlameRange;
pub use abide_git::read::diff::{Change, Content, FileChange, Hunk, Line, LineKind, Side};
pub use abide_git::read::{
    AheadBehind, Blob, Commit, Comparison, Count, Diff, DiffLimits, Entry as TreeEntry, EntryKind, FileLog, FileStep,
    Listing as Tree, LogPage, ObjectKind, ReadError as ObjectError, Reader as Objects, Signature, TagObject,
};
pub use commit_path::{CommitPath, Point, address_of};
pub use error::BrowseError;
pub use history::LastChanges;
pub use newest::RefKind;
pub use refs::{Branch, RefPage, Tag};
pub(crate) use shared::Shared;

/// A repository opened for reading, at one moment.
pub struct Browser {
    forge: Forge,
    pub repo: Repo,
    refs: Refs,
    /// For reads that hold a slot.
    reader: Reader,
    /// For small reads without a slot.
    small: Reader,
    client: Client,
    /// The caller's credential, which a long response checks again.
    standing: Standing,
}

/// Opens a repository for a caller who may read it.
#[boxed]
pub async fn open(forge: &Forge, caller: &Caller, locator: &RepoLocator) -> Result<Browser, Access> {
    caller.ensure_scope(Scope::RepoRead)?;
    let repo = open::open(forge, caller, locator, Action::RepoRead).await?;
    of_repo(forge, caller, repo).await
}

/// Browses an already opened repository, for this caller.
#[boxed]
pub async fn of_repo(forge: &Forge, caller: &Caller, repo: Repo) -> Result<Browser, Access> {
    let refs = snapshots::read(forge, &repo).await?;
    let dir = forge.layout().repo(repo.id);
    let (reader, small) = Shared::of(forge).readers(dir, repo.id, repo.refs_generation).map_err(Fault::from)?;
    Ok(Browser {
        forge: forge.clone(),
        repo,
        refs,
        reader,
        small,
        client: caller.client(),
        standing: caller.standing.clone(),
    })
}

impl Browser {
    /// Whether no branch was pushed yet.
    pub fn is_empty(&self) -> bool {
        self.refs.prefixed(b"refs/heads/").next().is_none()
    }

    /// All refs of this moment.
    pub fn refs(&self) -> &Refs {
        &self.refs
    }

    /// Refs of this moment that clients may see.
    pub fn shown_refs(&self) -> impl Iterator<Item = &Ref> {
        self.refs.refs.iter().filter(|found| !is_hidden(&found.name))
    }

    /// Changes whenever a ref does; `None` while refs are moving.
    pub fn generation(&self) -> Option<i64> {
        self.refs.generation
    }

    /// Asks the objects something, on the blocking pool. If that takes more memory than everybody may use at once, it is asked
    /// again in a slot.
    pub async fn read<T, F>(&self, ask: F) -> Result<T, BrowseError>
    where
        T: Send + 'static,
        F: Fn(&Reader) -> Result<T, ReadError> + Send + 'static,
    {
        let small = self.small.clone();
        let (answered, ask) = blocking(move || (ask(&small), ask)).await?;
        match answered {
            Err(ReadError::TooLarge) => self.read_heavy(ask).await,
            answered => Ok(answered?),
        }
    }

    /// As [`Browser::read`], for slow queries: they take a slot, and wait for it only briefly. The slot stays with the
    /// work, which continues even if nobody waits for it any more.
    pub async fn read_heavy<T, F>(&self, ask: F) -> Result<T, BrowseError>
    where
        T: Send + 'static,
        F: FnOnce(&Reader) -> Result<T, ReadError> + Send + 'static,
    {
        let slot = Shared::of(&self.forge).heavy(self.client).await?;
        let reader = self.reader.clone();
        let answered = blocking(move || {
            let _slot = slot;
            ask(&reader)
        });
        Ok(answered.await??)
    }

    /// A directory listing, without file sizes.
    pub async fn directory(&self, treeish: Oid, path: &[u8]) -> Result<Arc<Listing>, BrowseError> {
        let (limit, path) = (self.forge.settings().browse.entries, path.to_vec());
        let key = (self.repo.id, treeish, path);
        Shared::of(&self.forge)
            .listings
            .get_or_insert_async(&key, async {
                let path = key.2.clone();
                self.read(move |reader| reader.tree(treeish, &path, limit)).await.map(Arc::new)
            })
            .await
    }

    /// The entry at a path.
    pub async fn entry(&self, treeish: Oid, path: &[u8]) -> Result<Entry, BrowseError> {
        let path = path.to_vec();
        self.read(move |reader| reader.entry(treeish, &path)).await
    }

    /// README of a directory.
    pub async fn readme(&self, treeish: Oid, path: &[u8]) -> Result<Option<Entry>, BrowseError> {
        let key = (self.repo.id, treeish, path.to_vec());
        Shared::of(&self.forge)
            .readmes
            .get_or_insert_async(&key, async {
                let path = key.2.clone();
                self.read(move |reader| reader.readme(treeish, &path)).await
            })
            .await
    }

    /// The start of a file, or all of it.
    pub async fn blob(&self, oid: Oid, max: usize) -> Result<Blob, BrowseError> {
        self.read(move |reader| reader.blob(oid, max)).await
    }

    /// A file of any size, piece by piece. It ends within seconds of the reader's credential.
    pub async fn stream(&self, oid: Oid) -> Result<BlobStream, BrowseError> {
        let (git, dir) = (self.forge.git(), self.reader.repo_dir());
        let stream = BlobStream::open(git, dir, oid, self.client, self.forge.patience()).await?;
        fetch::end_with(&self.forge, &self.standing, stream.cutter());
        Ok(stream)
    }

    /// One commit.
    pub async fn commit(&self, oid: Oid) -> Result<Commit, BrowseError> {
        self.read(move |reader| reader.commit(oid)).await
    }

    /// Changes of a commit against its first parent.
    pub async fn diff(&self, oid: Oid) -> Result<Arc<Diff>, BrowseError> {
        let key = (self.repo.id, oid, oid);
        Shared::of(&self.forge)
            .diffs
            .get_or_insert_async(&key, async {
                let limits = DiffLimits::default();
                self.read_heavy(move |reader| reader.diff(oid, &limits)).await.map(Arc::new)
            })
            .await
    }

    /// Commits and changes of the head since its merge base with `base`.
    pub async fn compare(&self, base: Oid, head: Oid) -> Result<Comparison, BrowseError> {
        let settings = &self.forge.settings().browse;
        let (commits, cap) = (settings.compare_commits, settings.walk);
        self.read_heavy(move |reader| reader.compare(base, head, commits, cap, &DiffLimits::default())).await
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, BrowseError> {
    Ok(crate::blocking::blocking("reading a repository", work).await?)
}
