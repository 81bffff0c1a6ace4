//! The object database of one repository.

use super::ReadError;
use super::history::History;
use crate::GitError;
use abide_core::Oid;
use gix::commitgraph::Graph;
use gix::objs::{Find, Kind};
use gix::odb::store::init::{Options, Slots};
use gix::odb::{HandleArc, Header, Store, pack};
use gix::{ObjectId, hash};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// No object larger than this is ever loaded; larger blobs are streamed. A tree of this size has a million entries.
pub(crate) const LARGEST_OBJECT: u64 = 32 * 1024 * 1024;
/// Decoding an object may need its delta base beside it.
const LARGEST_ALLOCATION: usize = 2 * LARGEST_OBJECT as usize;
/// Delta bases kept while one call runs. Nothing is kept between calls, so idle readers cost almost nothing.
const DELTA_BASES: usize = 16 * 1024 * 1024;
/// How long a chain of tags may be.
const TAG_DEPTH: usize = 16;
/// The fewest digits that are taken for an abbreviated id.
pub(crate) const SHORTEST_PREFIX: usize = 4;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A commit.
    Commit,
    /// A directory.
    Tree,
    /// The content of a file.
    Blob,
    /// An annotated tag.
    Tag,
}

impl From<Kind> for ObjectKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Commit => Self::Commit,
            Kind::Tree => Self::Tree,
            Kind::Blob => Self::Blob,
            Kind::Tag => Self::Tag,
        }
    }
}

/// The objects of one repository. Cheap to clone and to keep; sees objects that come later.
///
/// Its commit-graph is the one found first: reopen after maintenance, for speed alone.
#[derive(Clone)]
pub struct Reader(Arc<Inner>);

struct Inner {
    repo: PathBuf,
    store: Arc<Store>,
    graph: OnceLock<Option<Graph>>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reader").field(&self.0.repo).finish()
    }
}

impl Reader {
    /// Opens the objects of this repository; indexes and the commit-graph are mapped when first needed.
    pub fn open(repo_dir: &Path) -> Result<Self, GitError> {
        let objects = repo_dir.join("objects");
        let options = Options {
            // Packs may come while this reader is kept.
            slots: Slots::AsNeededByDiskState { multiplier: 2.0, minimum: 128 },
            alloc_limit_bytes: Some(LARGEST_ALLOCATION),
            ..Options::default()
        };
        let store = Store::at_opts(objects.clone(), hash::Kind::Sha1, &mut std::iter::empty(), options)
            .map_err(GitError::io("open", &objects))?;
        Ok(Self(Arc::new(Inner { repo: repo_dir.to_owned(), store: Arc::new(store), graph: OnceLock::new() })))
    }

    /// The repository's directory.
    pub fn repo_dir(&self) -> &Path {
        &self.0.repo
    }

    /// Kind and size of an object, without loading it.
    pub fn object(&self, oid: Oid) -> Result<(ObjectKind, u64), ReadError> {
        let (kind, size) = self.objects().header(&id(oid))?;
        Ok((kind.into(), size))
    }

    /// The commit that this id leads to, through annotated tags.
    pub fn resolve_commit(&self, oid: Oid) -> Result<Oid, ReadError> {
        let mut objects = self.objects();
        let mut current = id(oid);
        for _ in 0..TAG_DEPTH {
            current = match objects.header(&current)?.0 {
                Kind::Commit => return Ok(self::oid(&current)),
                Kind::Tag => objects.tag_target(&current)?,
                Kind::Tree | Kind::Blob => return Err(ReadError::NotACommit),
            };
        }
        Err(ReadError::NotACommit)
    }

    /// The one object whose id begins with these hexadecimal digits, of which there must be at least four.
    pub fn find_by_prefix(&self, hex: &str) -> Result<Oid, ReadError> {
        let digits = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !digits || !(SHORTEST_PREFIX..=40).contains(&hex.len()) {
            return Err(ReadError::NotFound);
        }
        let prefix = hash::Prefix::from_hex(hex).map_err(|_| ReadError::NotFound)?;
        match self.handle().lookup_prefix(prefix, None).map_err(|error| self.broken(error))? {
            None => Err(ReadError::NotFound),
            Some(Err(())) => Err(ReadError::Ambiguous),
            Some(Ok(found)) => Ok(oid(&found)),
        }
    }

    /// Objects for the length of one call, with a cache that ends with it.
    pub(super) fn objects(&self) -> Objects<'_> {
        let mut handle = self.handle();
        handle.set_pack_cache(|| Box::new(pack::cache::lru::MemoryCappedHashmap::new(DELTA_BASES)));
        Objects { reader: self, handle, buffer: Vec::new() }
    }

    /// The history for the length of one call.
    pub(super) fn history(&self) -> History<'_> {
        History::new(self.graph(), self.objects())
    }

    fn handle(&self) -> HandleArc {
        self.0.store.to_cache_arc()
    }

    fn graph(&self) -> Option<&Graph> {
        let open = || {
            let dir = self.0.repo.join("objects/info");
            match Graph::from_info_dir(&dir, hash::Kind::Sha1) {
                Ok(graph) => Some(graph),
                Err(error) if error.is_not_found() => None,
                // As git does: without it everything is only slower.
                Err(error) => {
                    tracing::warn!(repo = %self.0.repo.display(), %error, "ignoring a broken commit-graph");
                    None
                }
            }
        };
        self.0.graph.get_or_init(open).as_ref()
    }

    pub(super) fn broken(&self, detail: impl std::fmt::Display) -> ReadError {
        ReadError::Broken { repo: self.0.repo.clone(), detail: detail.to_string() }
    }
}

/// The object database during one call.
pub(super) struct Objects<'a> {
    reader: &'a Reader,
    handle: HandleArc,
    buffer: Vec<u8>,
}

impl<'a> Objects<'a> {
    pub fn reader(&self) -> &'a Reader {
        self.reader
    }

    /// Kind and size without loading.
    pub fn header(&self, id: &hash::oid) -> Result<(Kind, u64), ReadError> {
        let header = self.handle.try_header(id).map_err(|error| self.reader.broken(error))?;
        let header = header.ok_or(ReadError::NotFound)?;
        Ok((header.kind(), header.size()))
    }

    /// Loads a tree; what is no tree is not a directory.
    pub fn tree(&mut self, id: &hash::oid) -> Result<&[u8], ReadError> {
        // The empty tree need not be stored.
        if id == ObjectId::empty_tree(hash::Kind::Sha1) {
            return Ok(&[]);
        }
        self.load(id, Kind::Tree, ReadError::NotADirectory)
    }

    /// Loads a commit.
    pub fn commit(&mut self, id: &hash::oid) -> Result<&[u8], ReadError> {
        self.load(id, Kind::Commit, ReadError::NotACommit)
    }

    /// Loads an annotated tag.
    pub fn tag(&mut self, id: &hash::oid) -> Result<&[u8], ReadError> {
        self.load(id, Kind::Tag, ReadError::NotFound)
    }

    /// Loads a blob, whose size the caller has looked at.
    pub fn blob(&mut self, id: &hash::oid) -> Result<&[u8], ReadError> {
        self.load(id, Kind::Blob, ReadError::NotAFile)
    }

    fn tag_target(&mut self, id: &hash::oid) -> Result<ObjectId, ReadError> {
        let reader = self.reader;
        let data = self.load(id, Kind::Tag, ReadError::NotACommit)?;
        let target = gix::objs::TagRefIter::from_bytes(data, hash::Kind::Sha1).target_id();
        target.map_err(|error| reader.broken(format!("tag {id}: {error}")))
    }

    fn load(&mut self, id: &hash::oid, kind: Kind, other: ReadError) -> Result<&[u8], ReadError> {
        let found = self.handle.try_find(id, &mut self.buffer).map_err(|error| self.reader.broken(error))?;
        match found {
            None => Err(ReadError::NotFound),
            Some(object) if object.kind == kind => Ok(object.data),
            Some(_) => Err(other),
        }
    }

    /// The handle itself, for gix's own algorithms.
    pub fn handle(&self) -> &HandleArc {
        &self.handle
    }
}

/// Our id as gix has it.
pub(crate) fn id(oid: Oid) -> ObjectId {
    ObjectId::from_bytes_or_panic(oid.as_bytes())
}

/// gix's id as ours.
pub(crate) fn oid(id: &hash::oid) -> Oid {
    Oid::from_bytes(id.as_bytes().try_into().expect("the store reads SHA-1 only"))
}
