//! The object database of one repository.

use super::ReadError;
use super::history::History;
use crate::GitError;
use abide_core::Oid;
use gix::commitgraph::Graph;
use gix::objs::{Data, Exists as _, Find, Kind};
use gix::odb::store::init::{Options, Slots};
use gix::odb::{HandleArc, Header, Store, pack};
use gix::{ObjectId, hash};
use std::cell::RefCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// No blob larger than this is ever loaded; larger ones are streamed.
pub(crate) const LARGEST_OBJECT: u64 = 12 * 1024 * 1024;
/// Memory for one object, with the object that it is stored as a difference to: larger ones are not read. A directory of
/// this size has 600,000 entries, or half of that where it is stored as a difference. A comparison holds two of them.
const LARGEST_ALLOCATION: usize = 24 * 1024 * 1024;
/// The same where objects are read without a slot: a file that pages show, with its difference, or a directory of 80,000
/// entries.
const SMALL_ALLOCATION: usize = 3 * 1024 * 1024;
/// Cache of delta bases during one call. Nothing is cached between calls, so idle readers cost almost nothing.
const DELTA_BASES: usize = 16 * 1024 * 1024;
/// The same where objects are read without a slot.
const SMALL_DELTA_BASES: usize = 2 * 1024 * 1024;
/// Longest chain of tags.
const TAG_DEPTH: usize = 16;
/// Retries of a failed lookup, each with a newly opened store.
const LOOK_AGAIN: usize = 3;
/// Fewest digits of an abbreviated id.
pub(crate) const SHORTEST_PREFIX: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    Commit,
    Tree,
    Blob,
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

/// Objects of one repository. Cheap to clone and to keep; sees objects added later.
///
/// It keeps the first commit-graph that it finds. Reopen it after maintenance, for speed only.
#[derive(Clone)]
pub struct Reader(Arc<Inner>);

struct Inner {
    repo: PathBuf,
    bounds: Bounds,
    store: RwLock<Arc<Store>>,
    graph: OnceLock<Option<Graph>>,
}

/// Memory that one call may take.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    allocation: usize,
    delta_bases: usize,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reader").field(&self.0.repo).finish()
    }
}

impl Reader {
    /// Opens the objects of a repository. Indexes and the commit-graph are mapped on first use.
    pub fn open(repo_dir: &Path) -> Result<Self, GitError> {
        Self::within(repo_dir, Bounds { allocation: LARGEST_ALLOCATION, delta_bases: DELTA_BASES })
    }

    /// The same for calls that wait for no slot: objects that take much memory are [`ReadError::TooLarge`].
    pub fn open_small(repo_dir: &Path) -> Result<Self, GitError> {
        Self::within(repo_dir, Bounds { allocation: SMALL_ALLOCATION, delta_bases: SMALL_DELTA_BASES })
    }

    fn within(repo_dir: &Path, bounds: Bounds) -> Result<Self, GitError> {
        let store = RwLock::new(open_store(repo_dir, bounds)?);
        Ok(Self(Arc::new(Inner { repo: repo_dir.to_owned(), bounds, store, graph: OnceLock::new() })))
    }

    pub fn repo_dir(&self) -> &Path {
        &self.0.repo
    }

    /// Kind and size of an object, without loading it.
    pub fn object(&self, oid: Oid) -> Result<(ObjectKind, u64), ReadError> {
        let (kind, size) = self.objects().header(&id(oid))?;
        Ok((kind.into(), size))
    }

    /// The commit that this id resolves to, through annotated tags.
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

    /// The unique object whose id starts with these hexadecimal digits, at least four.
    pub fn find_by_prefix(&self, hex: &str) -> Result<Oid, ReadError> {
        let digits = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !digits || !(SHORTEST_PREFIX..=40).contains(&hex.len()) {
            return Err(ReadError::NotFound);
        }
        let prefix = hash::Prefix::from_hex(hex).map_err(|_| ReadError::NotFound)?;
        let objects = self.objects();
        match objects.look(|handle| handle.lookup_prefix(prefix, None).map_err(Failed::from))? {
            None => Err(ReadError::NotFound),
            Some(Err(())) => Err(ReadError::Ambiguous),
            Some(Ok(found)) => Ok(oid(&found)),
        }
    }

    /// Object access for one call, with a cache of that lifetime.
    pub(super) fn objects(&self) -> Objects<'_> {
        Objects { reader: self, handle: RefCell::new(handle(&self.store(), self.0.bounds)), buffer: Vec::new() }
    }

    /// History access for one call.
    pub(super) fn history(&self) -> History<'_> {
        History::new(self.graph(), self.objects())
    }

    fn store(&self) -> Arc<Store> {
        self.0.store.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the store with one that found an object the current store missed.
    fn keep(&self, store: Arc<Store>) {
        *self.0.store.write().unwrap_or_else(PoisonError::into_inner) = store;
    }

    fn graph(&self) -> Option<&Graph> {
        let open = || {
            let dir = self.0.repo.join("objects/info");
            match Graph::from_info_dir(&dir, hash::Kind::Sha1) {
                Ok(graph) => Some(graph),
                Err(error) if error.is_not_found() => None,
                // As git does: everything works without a commit-graph, only slower.
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

/// Which of these objects a repository has; blocks. Empty if the repository does not exist.
pub fn present(repo_dir: &Path, oids: impl IntoIterator<Item = Oid>) -> Result<HashSet<Oid>, GitError> {
    let objects = repo_dir.join("objects");
    if !objects.exists() {
        return Ok(HashSet::new());
    }
    let store = gix::odb::at(objects.clone(), hash::Kind::Sha1).map_err(GitError::io("open", &objects))?;
    Ok(oids.into_iter().filter(|oid| store.exists(&id(*oid))).collect())
}

fn open_store(repo_dir: &Path, bounds: Bounds) -> Result<Arc<Store>, GitError> {
    let objects = repo_dir.join("objects");
    let options = Options {
        // Packs may be added while this reader is kept.
        slots: Slots::AsNeededByDiskState { multiplier: 2.0, minimum: 128 },
        alloc_limit_bytes: Some(bounds.allocation),
        ..Options::default()
    };
    let store = Store::at_opts(objects.clone(), hash::Kind::Sha1, &mut std::iter::empty(), options);
    Ok(Arc::new(store.map_err(GitError::io("open", &objects))?))
}

/// A handle with its own delta-base cache.
fn handle(store: &Arc<Store>, bounds: Bounds) -> HandleArc {
    let mut handle = store.to_cache_arc();
    handle.set_pack_cache(move || Box::new(pack::cache::lru::MemoryCappedHashmap::new(bounds.delta_bases)));
    handle
}

/// Why a lookup failed.
enum Failed {
    /// The object takes more memory than it may.
    TooLarge,
    Broken(String),
}

impl From<gix::error::Error> for Failed {
    fn from(error: gix::error::Error) -> Self {
        if error.is_resource_exhausted() { Self::TooLarge } else { Self::Broken(error.to_string()) }
    }
}

/// Object database during one call.
pub(super) struct Objects<'a> {
    reader: &'a Reader,
    handle: RefCell<HandleArc>,
    buffer: Vec<u8>,
}

impl<'a> Objects<'a> {
    pub fn reader(&self) -> &'a Reader {
        self.reader
    }

    /// Runs a lookup. Maintenance moves objects meanwhile (loose files into a pack, packs into another), so a lookup
    /// can miss an existing object in both places. A miss is retried in a newly opened store. That store replaces the
    /// current one only if it finds the object, so requests for unknown objects do not slow down others.
    fn look<T>(&self, mut find: impl FnMut(&HandleArc) -> Result<Option<T>, Failed>) -> Result<Option<T>, ReadError> {
        let mut found = find(&self.handle.borrow());
        for _ in 0..LOOK_AGAIN {
            if let Ok(Some(_)) | Err(Failed::TooLarge) = found {
                break;
            }
            let bounds = self.reader.0.bounds;
            let store = open_store(&self.reader.0.repo, bounds).map_err(|error| self.reader.broken(error))?;
            let fresh = handle(&store, bounds);
            found = find(&fresh);
            if let Ok(Some(_)) = found {
                *self.handle.borrow_mut() = fresh;
                self.reader.keep(store);
            }
        }
        found.map_err(|failed| match failed {
            Failed::TooLarge => ReadError::TooLarge,
            Failed::Broken(detail) => self.reader.broken(detail),
        })
    }

    /// Object type and size, without loading the object.
    pub fn header(&self, id: &hash::oid) -> Result<(Kind, u64), ReadError> {
        let header = self.look(|handle| handle.try_header(id).map_err(Failed::from))?;
        let header = header.ok_or(ReadError::NotFound)?;
        Ok((header.kind(), header.size()))
    }

    /// Loads a tree; any other type is [`ReadError::NotADirectory`].
    pub fn tree(&mut self, id: &hash::oid) -> Result<&[u8], ReadError> {
        // git does not store the empty tree.
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

    /// Loads a blob. The caller has checked its size.
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
        let mut buffer = std::mem::take(&mut self.buffer);
        let found = self.find(id, &mut buffer);
        self.buffer = buffer;
        match found? {
            None => Err(ReadError::NotFound),
            Some(found) if found == kind => Ok(&self.buffer),
            Some(_) => Err(other),
        }
    }

    /// Loads an object into the buffer; returns its type.
    fn find(&self, id: &hash::oid, buffer: &mut Vec<u8>) -> Result<Option<Kind>, ReadError> {
        self.look(|handle| {
            let found = handle.try_find(id, buffer).map_err(Failed::from)?;
            Ok(found.map(|object| object.kind))
        })
    }
}

/// Access for gix's own algorithms.
impl Find for Objects<'_> {
    fn try_find<'a>(&self, id: &hash::oid, buffer: &'a mut Vec<u8>) -> gix::error::Result<Option<Data<'a>>> {
        match Objects::find(self, id, buffer).map_err(gix::error::Error::from_error)? {
            Some(kind) => Ok(Some(Data::new(buffer, kind, hash::Kind::Sha1))),
            None => Ok(None),
        }
    }
}

/// Converts our id to gix's.
pub(crate) fn id(oid: Oid) -> ObjectId {
    ObjectId::from_bytes_or_panic(oid.as_bytes())
}

/// Converts gix's id to ours.
pub(crate) fn oid(id: &hash::oid) -> Oid {
    Oid::from_bytes(id.as_bytes().try_into().expect("the store reads SHA-1 only"))
}
