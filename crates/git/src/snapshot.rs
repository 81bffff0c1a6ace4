//! All refs of a repository at one moment, read in this process.

use crate::GitError;
use abide_core::Oid;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::{Find, Kind};
use gix::refs::{Target, file, packed};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ref {
    /// Full name. Bytes, because git allows names that are not UTF-8 and a mirror may bring them.
    pub name: BString,
    /// Target object, after following symbolic refs.
    pub oid: Oid,
    /// Final target of an annotated tag; `None` if the target is no tag.
    pub peeled: Option<Oid>,
    /// Final target of a symbolic ref.
    pub symref: Option<BString>,
}

/// Content of HEAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// Name of a ref, which need not exist.
    Symbolic(BString),
    Detached(Oid),
    /// No default branch is known yet.
    Unset,
}

/// All refs, sorted by name as git sorts them, and HEAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Refs in byte order of their names.
    pub refs: Vec<Ref>,
    pub head: Head,
}

impl Snapshot {
    /// No refs and no default branch.
    pub fn empty() -> Self {
        Self { refs: Vec::new(), head: Head::Unset }
    }

    /// Reads all refs; blocks. Reads no configuration, so a repository cannot influence this.
    pub fn read(repo_dir: &Path) -> Result<Self, GitError> {
        let reader = Reader::new(repo_dir);
        // Loose refs before packed: a ref that is packed in between is then seen at least once.
        let mut loose = reader.loose()?;
        let head = reader.head()?;
        let mut packed = reader.packed()?;
        reader.peel(&mut loose);
        let mut refs = merge(std::mem::take(&mut loose.direct), std::mem::take(&mut packed));
        let resolved = resolve(&loose.symbolic, &refs);
        refs.extend(resolved);
        if !refs.is_sorted_by(|a, b| a.name < b.name) {
            refs.sort_by(|a, b| a.name.cmp(&b.name));
            refs.dedup_by(|later, first| later.name == first.name);
        }
        Ok(Self { refs, head })
    }

    /// The ref with this full name.
    pub fn get(&self, name: &[u8]) -> Option<&Ref> {
        let index = self.refs.binary_search_by(|probe| probe.name.as_slice().cmp(name)).ok()?;
        self.refs.get(index)
    }

    /// The ref that HEAD names, even if it does not exist.
    pub fn head_target(&self) -> Option<&BStr> {
        match &self.head {
            Head::Symbolic(target) => Some(target.as_bstr()),
            Head::Detached(_) | Head::Unset => None,
        }
    }

    /// Object that HEAD resolves to; `None` if its branch does not exist yet.
    pub fn head_oid(&self) -> Option<Oid> {
        match &self.head {
            Head::Symbolic(target) => self.get(target).map(|found| found.oid),
            Head::Detached(oid) => Some(*oid),
            Head::Unset => None,
        }
    }

    /// Refs whose names start with this prefix.
    pub fn prefixed<'a>(&'a self, prefix: &'a [u8]) -> impl Iterator<Item = &'a Ref> {
        let start = self.refs.partition_point(|found| found.name.as_slice() < prefix);
        self.refs[start..].iter().take_while(move |found| found.name.starts_with(prefix))
    }
}

#[derive(Default)]
struct Loose {
    direct: Vec<Ref>,
    symbolic: Vec<(BString, BString)>,
}

struct Reader<'a> {
    repo: &'a Path,
    store: file::Store,
}

impl<'a> Reader<'a> {
    fn new(repo: &'a Path) -> Self {
        Self { repo, store: file::Store::at(repo.to_owned(), gix::hash::Kind::Sha1) }
    }

    fn broken(&self, detail: impl std::fmt::Display) -> GitError {
        GitError::Refs { repo: self.repo.to_owned(), detail: detail.to_string() }
    }

    fn head(&self) -> Result<Head, GitError> {
        let path = self.repo.join("HEAD");
        let content = std::fs::read(&path).map_err(GitError::io("read", &path))?;
        let line = content.trim_ascii_end();
        match line.strip_prefix(b"ref:") {
            Some(target) => Ok(Head::Symbolic(target.trim_ascii_start().into())),
            None => Oid::from_hex(line).map(Head::Detached).map_err(|error| self.broken(format!("HEAD: {error}"))),
        }
    }

    fn loose(&self) -> Result<Loose, GitError> {
        let mut loose = Loose::default();
        for entry in self.store.loose_iter().map_err(GitError::io("list refs of", self.repo))? {
            match entry {
                Ok(found) => {
                    let name = found.name.as_bstr().to_owned();
                    match found.target {
                        Target::Object(id) => {
                            loose.direct.push(Ref { name, oid: oid(&id), peeled: None, symref: None });
                        }
                        Target::Symbolic(target) => loose.symbolic.push((name, target.as_bstr().to_owned())),
                    }
                }
                // As git does: one damaged ref must not hide the whole repository. `doctor` reports it.
                Err(error) => tracing::warn!(repo = %self.repo.display(), %error, "ignoring a broken ref"),
            }
        }
        Ok(loose)
    }

    fn packed(&self) -> Result<Vec<Ref>, GitError> {
        let path = self.repo.join("packed-refs");
        let content = match std::fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(GitError::io("read", &path)(error)),
        };
        let header = content.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let fully_peeled = header.starts_with(b"# ") && header.contains_str(" fully-peeled");
        let lines = packed::Iter::new(&content, gix::hash::Kind::Sha1).map_err(|error| self.broken(error))?;
        let mut refs = Vec::with_capacity(content.len() / 64);
        for line in lines {
            let line = line.map_err(|error| self.broken(error))?;
            let oid = |hex: &BStr| Oid::from_hex(hex).map_err(|error| self.broken(error));
            refs.push(Ref {
                name: line.name.as_bstr().to_owned(),
                oid: oid(line.target)?,
                peeled: line.object.map(oid).transpose()?,
                symref: None,
            });
        }
        if !fully_peeled {
            let mut unpeeled = Loose { direct: refs, symbolic: Vec::new() };
            self.peel(&mut unpeeled);
            refs = unpeeled.direct;
        }
        if !refs.is_sorted_by(|a, b| a.name < b.name) {
            refs.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(refs)
    }

    /// Resolves annotated tags by reading them. Skips branches: `update-ref` allows only commits there.
    fn peel(&self, loose: &mut Loose) {
        let mut objects = None;
        for found in &mut loose.direct {
            if found.peeled.is_some() || found.name.starts_with(b"refs/heads/") {
                continue;
            }
            if objects.is_none() {
                objects = Objects::open(self.repo.join("objects"));
            }
            found.peeled = objects.as_mut().and_then(|objects| objects.peel(found.oid));
        }
    }
}

/// Object database, for peeling tags.
struct Objects {
    handle: gix::odb::Handle,
    buffer: Vec<u8>,
}

impl Objects {
    fn open(dir: PathBuf) -> Option<Self> {
        let handle = gix::odb::at(dir, gix::hash::Kind::Sha1).ok()?;
        Some(Self { handle, buffer: Vec::new() })
    }

    fn peel(&mut self, oid: Oid) -> Option<Oid> {
        use gix::odb::Header;
        let mut id = ObjectId::from_bytes_or_panic(oid.as_bytes());
        let mut peeled = None;
        // Check the object type first, so large blobs are not read.
        while self.handle.try_header(&id).ok()??.kind() == Kind::Tag {
            let tag = self.handle.try_find(&id, &mut self.buffer).ok()??;
            id = gix::objs::TagRefIter::from_bytes(tag.data, gix::hash::Kind::Sha1).target_id().ok()?;
            peeled = Some(self::oid(&id));
        }
        peeled
    }
}

fn oid(id: &ObjectId) -> Oid {
    Oid::from_bytes(id.as_slice().try_into().expect("the store reads SHA-1 only"))
}

/// Merges two sorted lists; the loose ref wins, because it is newer.
fn merge(loose: Vec<Ref>, packed: Vec<Ref>) -> Vec<Ref> {
    if loose.is_empty() {
        return packed;
    }
    let mut merged = Vec::with_capacity(loose.len() + packed.len());
    let mut packed = packed.into_iter().peekable();
    for found in loose {
        while let Some(earlier) = packed.next_if(|other| other.name < found.name) {
            merged.push(earlier);
        }
        packed.next_if(|other| other.name == found.name);
        merged.push(found);
    }
    merged.extend(packed);
    merged
}

/// Follows symbolic refs below `refs/`, to git's depth limit. Omits dangling ones.
fn resolve(symbolic: &[(BString, BString)], refs: &[Ref]) -> Vec<Ref> {
    const DEPTH: usize = 5;
    let targets: HashMap<&BString, &BString> = symbolic.iter().map(|(name, target)| (name, target)).collect();
    let follow = |target: &BString| {
        let mut name = target;
        for _ in 0..DEPTH {
            match targets.get(name) {
                Some(next) => name = next,
                None => return refs.binary_search_by(|probe| probe.name.cmp(name)).ok(),
            }
        }
        None
    };
    let entry = |(name, target): &(BString, BString)| {
        let end = &refs[follow(target)?];
        Some(Ref { name: name.clone(), oid: end.oid, peeled: end.peeled, symref: Some(end.name.clone()) })
    };
    symbolic.iter().filter_map(entry).collect()
}
