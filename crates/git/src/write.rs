//! Writes a first commit without a working tree.
//!
//! Only objects are written, into the object directory of a repository or incoming area. No ref moves: that needs a
//! push.

use crate::durable::sync_all;
use crate::read::Signature;
use crate::{GitError, read};
use abide_core::Oid;
use gix::ObjectId;
use gix::actor;
use gix::bstr::{BString, ByteSlice};
use gix::date::Time;
use gix::hash::Kind;
use gix::objs::tree::{Entry, EntryKind};
use gix::objs::{self, Tree, Write};
use gix::odb::loose;
use gix::validate::path::component;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Failure to write a first commit.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A path that git or some client refuses, or a duplicate.
    #[error("{0:?} is not a valid file path; use another name")]
    Path(BString),
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Writes blobs, trees and a commit without parents, durable on return; blocks. Paths may contain slashes.
pub fn initial_commit(
    objects_dir: &Path,
    files: &[(&[u8], &[u8])],
    author: &Signature,
    message: &[u8],
) -> Result<Oid, WriteError> {
    let mut root = Dir::default();
    for &(path, content) in files {
        root.add(path, content).ok_or_else(|| WriteError::Path(path.into()))?;
    }
    let mut writer = Writer { dir: objects_dir, store: loose::Store::at(objects_dir, Kind::Sha1), written: Vec::new() };
    let tree = writer.tree(&root)?;
    let signature = actor::Signature {
        name: cleaned(&author.name),
        email: cleaned(&author.email),
        time: Time { seconds: author.time, offset: author.offset },
    };
    let commit = objs::Commit {
        tree,
        parents: Default::default(),
        author: signature.clone(),
        committer: signature,
        encoding: None,
        message: message.replace(b"\0", b"").into(),
        extra_headers: Vec::new(),
    };
    let commit = writer.write(&commit)?;
    writer.flush()?;
    Ok(read::from_gix(&commit))
}

/// Removes characters that would end a name or its header line, as git does.
fn cleaned(text: &[u8]) -> BString {
    let kept: Vec<u8> = text.iter().copied().filter(|byte| !b"<>\n\0".contains(byte)).collect();
    kept.trim().into()
}

/// A directory under construction.
#[derive(Default)]
struct Dir<'a>(BTreeMap<&'a [u8], Node<'a>>);

enum Node<'a> {
    File(&'a [u8]),
    Dir(Dir<'a>),
}

impl<'a> Dir<'a> {
    fn add(&mut self, path: &'a [u8], content: &'a [u8]) -> Option<()> {
        let (name, rest) = match path.find_byte(b'/') {
            Some(at) => (&path[..at], Some(&path[at + 1..])),
            None => (path, None),
        };
        if !is_name(name) {
            return None;
        }
        match rest {
            None => self.0.insert(name, Node::File(content)).is_none().then_some(()),
            Some(rest) => match self.0.entry(name).or_insert_with(|| Node::Dir(Dir::default())) {
                Node::Dir(dir) => dir.add(rest, content),
                Node::File(_) => None,
            },
        }
    }
}

/// Whether every client accepts this file name on every filesystem.
fn is_name(name: &[u8]) -> bool {
    let everywhere = component::Options { protect_windows: true, protect_hfs: true, protect_ntfs: true };
    gix::validate::path::component(name.into(), None, everywhere).is_ok()
        && !name.contains(&0)
        && !name.contains(&b'\n')
}

struct Writer<'a> {
    dir: &'a Path,
    store: loose::Store,
    written: Vec<ObjectId>,
}

impl Writer<'_> {
    fn tree(&mut self, dir: &Dir<'_>) -> Result<ObjectId, GitError> {
        let mut tree = Tree::empty();
        for (&name, node) in &dir.0 {
            let (kind, oid) = match node {
                Node::File(content) => (EntryKind::Blob, self.write(&objs::BlobRef { data: content })?),
                Node::Dir(dir) => (EntryKind::Tree, self.tree(dir)?),
            };
            tree.entries.push(Entry { mode: kind.into(), filename: name.into(), oid });
        }
        tree.entries.sort();
        self.write(&tree)
    }

    fn write(&mut self, object: &dyn objs::WriteTo) -> Result<ObjectId, GitError> {
        let failed = |error: gix::Error| {
            GitError::io("write an object into", self.dir)(std::io::Error::other(error.to_string()))
        };
        let id = self.store.write(object).map_err(failed)?;
        self.written.push(id);
        Ok(id)
    }

    /// Flushes file contents first, then their directories, then the parent directory.
    fn flush(&self) -> Result<(), GitError> {
        let files: Vec<PathBuf> = self.written.iter().map(|id| self.store.object_path(id)).collect();
        let shards: BTreeSet<PathBuf> = files.iter().filter_map(|file| Some(file.parent()?.to_owned())).collect();
        let shards: Vec<PathBuf> = shards.into_iter().collect();
        sync_all(&files)
            .and_then(|()| sync_all(&shards))
            .and_then(|()| sync_all(&[self.dir.to_owned()]))
            .map_err(GitError::io("flush", self.dir))
    }
}
