//! Branches and tags, by page.

use super::{BrowseError, Browser, RefKind};
use abide_core::Oid;
use abide_git::read::{AheadBehind, Commit};
use abide_git::{ReadError, Reader, Ref};

/// A branch, with its last commit.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Without `refs/heads/`; invalid UTF-8 is replaced.
    pub name: String,
    pub commit: Commit,
    pub is_default: bool,
    /// Distance from the default branch, if counted.
    pub distance: Option<AheadBehind>,
}

/// A tag, with its commit.
#[derive(Clone, Debug)]
pub struct Tag {
    /// Without `refs/tags/`; invalid UTF-8 is replaced.
    pub name: String,
    /// Target of the ref: the tag object of an annotated tag.
    pub oid: Oid,
    /// The commit; `None` if the tag points to another object type.
    pub commit: Option<Commit>,
    /// Message of an annotated tag, without its signature; empty for other tags.
    pub message: String,
}

/// A page of refs, and their total number.
#[derive(Clone, Debug)]
pub struct RefPage<T> {
    pub items: Vec<T>,
    pub total: usize,
}

impl Browser {
    /// Branches whose names contain `filter`: the default branch, then newest first.
    pub async fn branches(&self, filter: &str, skip: usize, limit: usize) -> Result<RefPage<Branch>, BrowseError> {
        let default = self.repo.default_branch.as_str().as_bytes();
        let RefPage { items, total } = self.newest(RefKind::Branch, filter, skip, limit).await?;
        let base = self.refs.get(default).map(|found| found.oid);
        let (walk, default) = (self.forge.settings().browse.short_walk, default.to_vec());
        let items = self.read_heavy(move |reader| {
            let branch = |found| branch(reader, found, &default, base, walk);
            items.iter().map(branch).collect()
        });
        Ok(RefPage { items: items.await?, total })
    }

    /// Tags whose names contain `filter`, newest first.
    pub async fn newest_tags(&self, filter: &str, skip: usize, limit: usize) -> Result<RefPage<Tag>, BrowseError> {
        let RefPage { items, total } = self.newest(RefKind::Tag, filter, skip, limit).await?;
        let items = self.read(move |reader| items.iter().map(|found| tag(reader, found)).collect());
        Ok(RefPage { items: items.await?, total })
    }

    /// Tags in version order, latest version first.
    pub async fn tags(&self, skip: usize, limit: usize) -> Result<RefPage<Tag>, BrowseError> {
        let mut found: Vec<&Ref> = self.refs.prefixed(b"refs/tags/").collect();
        found.sort_by(|a, b| version_order(&b.name, &a.name));
        let total = found.len();
        let page: Vec<Ref> = found.into_iter().skip(skip).take(limit).cloned().collect();
        let items = self.read(move |reader| page.iter().map(|found| tag(reader, found)).collect());
        Ok(RefPage { items: items.await?, total })
    }

    /// Number of branches and tags.
    pub fn ref_counts(&self) -> (usize, usize) {
        (self.refs.prefixed(b"refs/heads/").count(), self.refs.prefixed(b"refs/tags/").count())
    }
}

fn branch(reader: &Reader, found: &Ref, default: &[u8], base: Option<Oid>, walk: usize) -> Result<Branch, ReadError> {
    let tip = reader.resolve_commit(found.peeled.unwrap_or(found.oid))?;
    let is_default = found.name.as_slice() == default;
    let distance = match base {
        Some(base) if !is_default => Some(reader.ahead_behind(base, tip, walk)?),
        _ => None,
    };
    Ok(Branch { name: short(found, "refs/heads/"), commit: reader.short_commit(tip)?, is_default, distance })
}

fn tag(reader: &Reader, found: &Ref) -> Result<Tag, ReadError> {
    let commit = match reader.resolve_commit(found.peeled.unwrap_or(found.oid)) {
        Ok(oid) => Some(reader.short_commit(oid)?),
        Err(ReadError::NotACommit) => None,
        Err(error) => return Err(error),
    };
    let message = match found.peeled {
        Some(_) => reader.tag(found.oid)?.message.to_string(),
        None => String::new(),
    };
    let message = text_of(&message).to_owned();
    Ok(Tag { name: short(found, "refs/tags/"), oid: found.oid, commit, message })
}

/// A message without the signature that follows it.
fn text_of(message: &str) -> &str {
    let end = ["-----BEGIN PGP SIGNATURE-----", "-----BEGIN SSH SIGNATURE-----", "-----BEGIN SIGNED MESSAGE-----"]
        .iter()
        .filter_map(|begin| message.find(begin));
    message[..end.min().unwrap_or(message.len())].trim()
}

fn short(found: &Ref, prefix: &str) -> String {
    String::from_utf8_lossy(&found.name[prefix.len().min(found.name.len())..]).into_owned()
}

/// Whether a name contains a text, in any letter case; every name contains the empty text.
pub(super) fn contains(name: &[u8], part: &[u8]) -> bool {
    part.is_empty() || name.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

/// Compares numbers inside names as numbers: `v1.10` comes after `v1.9`.
pub(super) fn version_order(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (left, right) = (piece(&mut a), piece(&mut b));
        let order = match (left, right) {
            (Piece::End, Piece::End) => return std::cmp::Ordering::Equal,
            (left, right) => left.cmp(&right),
        };
        if order.is_ne() {
            return order;
        }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Piece<'a> {
    End,
    Byte(u8),
    /// The length without leading zeros is compared first, then the digits.
    Number(usize, &'a [u8]),
}

fn piece<'a>(rest: &mut &'a [u8]) -> Piece<'a> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 0 {
        let (number, after) = rest.split_at(digits);
        *rest = after;
        let zeros = number.iter().take_while(|&&byte| byte == b'0').count();
        let significant = &number[zeros..];
        return Piece::Number(significant.len(), significant);
    }
    match *rest {
        [] => Piece::End,
        [first, after @ ..] => {
            *rest = after;
            Piece::Byte(*first)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_people_count() {
        let mut names = ["v1.10.0", "v1.9.0", "v1.9", "v2", "v01.9.1", "a", ""];
        names.sort_by(|a, b| version_order(a.as_bytes(), b.as_bytes()));
        assert_eq!(names, ["", "a", "v1.9", "v1.9.0", "v01.9.1", "v1.10.0", "v2"]);
    }
}
