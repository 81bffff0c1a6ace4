//! Resolves the tail of an address: `feature/x/src/lib.rs` is a branch and a path, and only the refs decide where one
//! ends and the other begins.

use super::{BrowseError, Browser, RefKind};
use abide_core::Oid;
use abide_git::read::{RefOrOid, split_ref};

/// How an address names a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Point {
    /// A branch, without `refs/heads/`.
    Branch(String),
    /// A tag, without `refs/tags/`.
    Tag(String),
    /// A commit by its id.
    Commit,
}

/// A commit, and a path in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitPath {
    pub point: Point,
    pub commit: Oid,
    /// The path as bytes, without leading or trailing slashes; empty for the root.
    pub path: Vec<u8>,
}

impl CommitPath {
    /// Name of the commit as in addresses.
    pub fn name(&self) -> String {
        match &self.point {
            Point::Branch(name) => address_of(RefKind::Branch, name),
            Point::Tag(name) => address_of(RefKind::Tag, name),
            Point::Commit => self.commit.to_string(),
        }
    }
}

/// Name that stands for the default branch.
const HEAD: &str = "HEAD";

/// A branch or tag in an address: its short name, or its full name where the short one means the default branch.
pub fn address_of(kind: RefKind, name: &str) -> String {
    match below_head(name.as_bytes()) {
        Some(_) => format!("{}{name}", kind.prefix()),
        None => name.to_owned(),
    }
}

/// The rest of an address that begins with `HEAD`.
fn below_head(address: &[u8]) -> Option<&[u8]> {
    let rest = address.strip_prefix(HEAD.as_bytes())?;
    if rest.is_empty() || rest.starts_with(b"/") { Some(trim_slashes(rest)) } else { None }
}

impl Browser {
    /// Tip of the default branch, or of the first branch if the default one was never pushed.
    pub async fn front(&self) -> Result<CommitPath, BrowseError> {
        let mut branches = self.refs.prefixed(b"refs/heads/");
        let found = self
            .refs
            .get(self.repo.default_branch.as_str().as_bytes())
            .or_else(|| branches.find(|branch| std::str::from_utf8(&branch.name).is_ok()))
            .ok_or(BrowseError::Empty)?;
        let full = std::str::from_utf8(&found.name).map_err(|_| BrowseError::Empty)?;
        let name = full.strip_prefix("refs/heads/").unwrap_or(full).to_owned();
        let commit = self.commit_of(found.peeled.unwrap_or(found.oid)).await?;
        Ok(CommitPath { point: Point::Branch(name), commit, path: Vec::new() })
    }

    /// Resolves `<ref or id>/<path>`. `decoded` is the percent-decoded address as bytes: paths need not be UTF-8, but
    /// ref names in addresses are. `HEAD` is the default branch, as in git, even if a branch has that name.
    pub async fn resolve(&self, decoded: &[u8]) -> Result<CommitPath, BrowseError> {
        if let Some(path) = below_head(trim_slashes(decoded)) {
            return Ok(CommitPath { path: path.to_vec(), ..self.front().await? });
        }
        // The ref ends before the first byte that is not UTF-8, so only the text before it is parsed.
        let text = match std::str::from_utf8(decoded) {
            Ok(text) => text,
            Err(error) => {
                let valid = std::str::from_utf8(&decoded[..error.valid_up_to()]).unwrap_or_default();
                valid.rsplit_once('/').map_or("", |(whole, _)| whole)
            }
        };
        let (what, rest) = split_ref(&self.refs, text).ok_or(BrowseError::NoSuchRevision)?;
        let taken = text.trim_start_matches('/').trim_end_matches('/').len() - rest.len();
        let skipped = text.len() - text.trim_start_matches('/').len();
        let path = trim_slashes(&decoded[(skipped + taken).min(decoded.len())..]).to_vec();
        let (point, oid) = match what {
            RefOrOid::Branch(name, oid) => (Point::Branch(name), oid),
            RefOrOid::Tag(name, oid) => (Point::Tag(name), oid),
            RefOrOid::Oid(oid) => (Point::Commit, oid),
            RefOrOid::Prefix(digits) => (Point::Commit, self.read(move |reader| reader.find_by_prefix(&digits)).await?),
        };
        Ok(CommitPath { point, commit: self.commit_of(oid).await?, path })
    }

    /// The commit of a revision without a path: a branch, a tag or an id.
    pub async fn revision(&self, name: &str) -> Result<CommitPath, BrowseError> {
        let resolved = self.resolve(name.as_bytes()).await?;
        if resolved.path.is_empty() { Ok(resolved) } else { Err(BrowseError::NoSuchRevision) }
    }

    async fn commit_of(&self, oid: Oid) -> Result<Oid, BrowseError> {
        self.read(move |reader| reader.resolve_commit(oid)).await
    }
}

fn trim_slashes(mut bytes: &[u8]) -> &[u8] {
    while let [b'/', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b'/'] = bytes {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_is_the_default_branch_and_refs_of_that_name_have_their_full_name_as_address() {
        assert_eq!(below_head(b"HEAD"), Some(&b""[..]));
        assert_eq!(below_head(b"HEAD//a/b\xff"), Some(&b"a/b\xff"[..]));
        for other in [&b"HEADS"[..], b"head", b"x/HEAD", b"HEAD~1", b""] {
            assert_eq!(below_head(other), None);
        }
        assert_eq!(address_of(RefKind::Branch, "HEAD"), "refs/heads/HEAD");
        assert_eq!(address_of(RefKind::Branch, "HEAD/x"), "refs/heads/HEAD/x");
        assert_eq!(address_of(RefKind::Tag, "HEAD"), "refs/tags/HEAD");
        assert_eq!(address_of(RefKind::Branch, "main"), "main");
    }
}
