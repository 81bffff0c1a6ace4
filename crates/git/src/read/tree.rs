//! Directories.

use super::commit::Headers;
use super::objects::{Objects, id, oid};
use super::{ReadError, Reader};
use abide_core::Oid;
use gix::bstr::{BString, ByteSlice, ByteVec};
use gix::objs::tree::{EntryKind as Mode, EntryMode, EntryRef};
use gix::objs::{Kind, TreeRefIter};
use gix::{ObjectId, hash};

/// Deepest nesting of a recursive listing.
const DEPTH: usize = 256;
/// Total bytes of all paths in one recursive listing: deep nesting multiplies them.
const PATH_BYTES: usize = 16 * 1024 * 1024;
/// Total bytes of entries queued in open directories of a recursive listing.
const WAITING_BYTES: usize = 64 * 1024 * 1024;

/// Kind of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    Directory,
    File,
    Executable,
    /// A symbolic link; the blob holds its target.
    Symlink,
    /// A commit of another repository.
    Submodule,
}

impl EntryKind {
    /// Whether its object is a blob.
    pub fn is_blob(self) -> bool {
        matches!(self, Self::File | Self::Executable | Self::Symlink)
    }

    /// The mode as git prints it, with six digits.
    pub fn mode(self) -> &'static str {
        match self {
            Self::Directory => "040000",
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Submodule => "160000",
        }
    }
}

impl From<EntryMode> for EntryKind {
    fn from(mode: EntryMode) -> Self {
        match mode.kind() {
            Mode::Tree => Self::Directory,
            Mode::Blob => Self::File,
            Mode::BlobExecutable => Self::Executable,
            Mode::Link => Self::Symlink,
            Mode::Commit => Self::Submodule,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name; in a recursive listing the path.
    pub name: BString,
    pub kind: EntryKind,
    /// Object id; for a submodule, a commit that is not in this repository.
    pub oid: Oid,
    /// Size of a blob, if requested.
    pub size: Option<u64>,
}

/// Entries of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub entries: Vec<Entry>,
    /// Whether the limit cut the list.
    pub truncated: bool,
}

impl Reader {
    /// Entries of a directory, directories first, each group by name. `treeish` is a commit, tag or tree; an empty path
    /// is the
    /// root.
    pub fn tree(&self, treeish: Oid, path: &[u8], limit: usize) -> Result<Listing, ReadError> {
        let mut objects = self.objects();
        let dir = objects.directory(treeish, path)?;
        let data = objects.tree(&dir)?;
        let mut first = First::new(limit);
        for entry in TreeRefIter::from_bytes(data, hash::Kind::Sha1) {
            first.push(entry.map_err(|error| self.broken(format!("tree {dir}: {error}")))?);
        }
        Ok(first.finish())
    }

    /// Looks up the size of every blob in a listing, from headers only.
    pub fn add_sizes(&self, listing: &mut Listing) -> Result<(), ReadError> {
        let objects = self.objects();
        for entry in listing.entries.iter_mut().filter(|entry| entry.kind.is_blob()) {
            entry.size = Some(objects.header(&id(entry.oid))?.1);
        }
        Ok(())
    }

    /// Entry at this path; the root is a directory without a name.
    pub fn entry(&self, treeish: Oid, path: &[u8]) -> Result<Entry, ReadError> {
        let mut objects = self.objects();
        let (kind, found) = objects.locate(treeish, path)?;
        let size = if kind.is_blob() { Some(objects.header(&found)?.1) } else { None };
        let name = trim(path).rsplit(|&byte| byte == b'/').next().unwrap_or_default().into();
        Ok(Entry { name, kind, oid: oid(&found), size })
    }

    /// Everything below a commit, tag or tree, in git's order: each directory, then its entries.
    pub fn tree_recursive(&self, treeish: Oid, limit: usize) -> Result<Listing, ReadError> {
        let mut objects = self.objects();
        let root = objects.directory(treeish, b"")?;
        let mut listing = Listing::default();
        let (mut path_bytes, mut room) = (0, WAITING_BYTES);
        // Stack of directories being listed.
        let mut open = vec![Open::new(&mut objects, &root, BString::default(), limit, &mut room)?];
        while let Some(dir) = open.last_mut() {
            let Some(mut entry) = dir.entries.pop() else {
                listing.truncated |= dir.is_cut;
                open.pop();
                continue;
            };
            room += weight(&entry);
            entry.name = dir.path_of(entry.name);
            path_bytes += entry.name.len();
            if listing.entries.len() == limit || path_bytes > PATH_BYTES {
                listing.truncated = true;
                break;
            }
            if entry.kind == EntryKind::Directory {
                if open.len() == DEPTH {
                    listing.truncated = true;
                } else {
                    open.push(Open::new(&mut objects, &id(entry.oid), entry.name.clone(), limit, &mut room)?);
                }
            }
            listing.entries.push(entry);
        }
        Ok(listing)
    }
}

/// The first entries of a directory, directories before files, each group by name. While it is read no more than twice as
/// many are held, and only the names of those that stay are copied.
struct First<'a> {
    limit: usize,
    entries: Vec<EntryRef<'a>>,
    truncated: bool,
}

impl<'a> First<'a> {
    fn new(limit: usize) -> Self {
        Self { limit, entries: Vec::new(), truncated: false }
    }

    fn push(&mut self, entry: EntryRef<'a>) {
        self.entries.push(entry);
        if self.entries.len() > self.limit.saturating_mul(2) {
            self.cut();
        }
    }

    /// Sorts before it cuts, so that the cut takes files from the end and not directories from the middle.
    fn cut(&mut self) {
        let key = |entry: &EntryRef<'a>| (entry.mode.kind() != Mode::Tree, entry.filename);
        self.entries.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        self.truncated |= self.entries.len() > self.limit;
        self.entries.truncate(self.limit);
    }

    fn finish(mut self) -> Listing {
        self.cut();
        let entries = self.entries.iter().map(|entry| owned(entry, entry.filename.to_owned())).collect();
        Listing { entries, truncated: self.truncated }
    }
}

/// A directory being listed.
struct Open {
    path: BString,
    /// Entries not listed yet, with bare names, in reverse order.
    entries: Vec<Entry>,
    /// Whether the memory limit cut the entries.
    is_cut: bool,
}

impl Open {
    /// Takes in the entries of a directory, as far as there is room for them and they can be listed.
    fn new(
        objects: &mut Objects<'_>,
        dir: &hash::oid,
        path: BString,
        limit: usize,
        room: &mut usize,
    ) -> Result<Self, ReadError> {
        let reader = objects.reader();
        let mut open = Self { path, entries: Vec::new(), is_cut: false };
        for entry in TreeRefIter::from_bytes(objects.tree(dir)?, hash::Kind::Sha1) {
            let entry = entry.map_err(|error| reader.broken(format!("tree {dir}: {error}")))?;
            let entry = owned(&entry, entry.filename.to_owned());
            // One entry above the limit shows that there are more.
            let left = room.checked_sub(weight(&entry)).filter(|_| open.entries.len() <= limit);
            let Some(left) = left else {
                open.is_cut = true;
                break;
            };
            *room = left;
            open.entries.push(entry);
        }
        open.entries.reverse();
        Ok(open)
    }

    fn path_of(&self, name: BString) -> BString {
        if self.path.is_empty() {
            return name;
        }
        let mut path = self.path.clone();
        path.push_byte(b'/');
        path.push_str(&name);
        path
    }
}

/// Memory of a queued entry, in bytes.
fn weight(entry: &Entry) -> usize {
    entry.name.len() + size_of::<Entry>()
}

fn owned(entry: &EntryRef<'_>, name: BString) -> Entry {
    Entry { name, kind: entry.mode.into(), oid: oid(entry.oid), size: None }
}

/// A path without leading and trailing slashes.
pub(super) fn trim(path: &[u8]) -> &[u8] {
    let path = &path[path.iter().position(|&byte| byte != b'/').unwrap_or(path.len())..];
    &path[..path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1)]
}

/// Names along a path.
pub(super) fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let path = trim(path);
    path.split(|&byte| byte == b'/').filter(move |_| !path.is_empty())
}

impl Objects<'_> {
    /// Root tree of a commit, tag or tree.
    pub fn root(&mut self, treeish: Oid) -> Result<ObjectId, ReadError> {
        let reader = self.reader();
        let mut treeish = id(treeish);
        if self.header(&treeish).is_ok_and(|(kind, _)| kind == Kind::Tag) {
            treeish = id(reader.resolve_commit(oid(&treeish))?);
        }
        if treeish == ObjectId::empty_tree(hash::Kind::Sha1) || self.header(&treeish)?.0 == Kind::Tree {
            return Ok(treeish);
        }
        let headers = Headers::parse(self.commit(&treeish)?);
        let headers = headers.ok_or_else(|| reader.broken(format!("commit {treeish} does not parse")))?;
        Ok(id(headers.tree))
    }

    /// Entry at this path.
    pub fn locate(&mut self, treeish: Oid, path: &[u8]) -> Result<(EntryKind, ObjectId), ReadError> {
        let mut found = (EntryKind::Directory, self.root(treeish)?);
        for name in components(path) {
            found = match found {
                (EntryKind::Directory, dir) => self.child(&dir, name)?.ok_or(ReadError::NotFound)?,
                _ => return Err(ReadError::NotFound),
            };
        }
        Ok(found)
    }

    /// Directory at this path.
    pub fn directory(&mut self, treeish: Oid, path: &[u8]) -> Result<ObjectId, ReadError> {
        match self.locate(treeish, path)? {
            (EntryKind::Directory, dir) => Ok(dir),
            _ => Err(ReadError::NotADirectory),
        }
    }

    /// Entry with this name in a directory.
    pub fn child(&mut self, dir: &hash::oid, name: &[u8]) -> Result<Option<(EntryKind, ObjectId)>, ReadError> {
        let reader = self.reader();
        for entry in TreeRefIter::from_bytes(self.tree(dir)?, hash::Kind::Sha1) {
            let entry = entry.map_err(|error| reader.broken(format!("tree {dir}: {error}")))?;
            if entry.filename == name.as_bstr() {
                return Ok(Some((entry.mode.into(), entry.oid.to_owned())));
            }
        }
        Ok(None)
    }
}
