//! Splits a page address into its ref and its path.

use super::objects::SHORTEST_PREFIX;
use crate::snapshot::Snapshot;
use abide_core::Oid;

/// Revision named by the first part of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefOrOid {
    /// A branch: its name without `refs/heads/`, and its tip.
    Branch(String, Oid),
    /// A tag: its name without `refs/tags/`, and the object it peels to.
    Tag(String, Oid),
    /// A full object id, which need not exist.
    Oid(Oid),
    /// 4 to 39 hexadecimal digits, for [`find_by_prefix`](super::Reader::find_by_prefix).
    Prefix(String),
}

/// Splits `<ref or id>/<path>`. Branch names contain slashes, so the longest existing branch wins, then the longest
/// tag, then a branch or tag by its full ref name, then an id. The path has no leading or trailing slashes; empty means
/// the root.
///
/// An address is text, so a ref whose name is not UTF-8 cannot be addressed by name.
pub fn split_ref<'a>(snapshot: &Snapshot, rest: &'a str) -> Option<(RefOrOid, &'a str)> {
    let rest = rest.trim_start_matches('/').trim_end_matches('/');
    let longest = |prefix: &str| {
        splits(rest).find_map(|(name, path)| {
            let found = snapshot.get(format!("{prefix}{name}").as_bytes())?;
            Some((name.to_owned(), found.peeled.unwrap_or(found.oid), path))
        })
    };
    if let Some((name, oid, path)) = longest("refs/heads/") {
        return Some((RefOrOid::Branch(name, oid), path));
    }
    if let Some((name, oid, path)) = longest("refs/tags/") {
        return Some((RefOrOid::Tag(name, oid), path));
    }
    for (prefix, point) in [("refs/heads/", RefOrOid::Branch as fn(_, _) -> _), ("refs/tags/", RefOrOid::Tag)] {
        let full = splits(rest).filter(|(name, _)| name.starts_with(prefix));
        let mut found = full.filter_map(|(name, path)| Some((name, snapshot.get(name.as_bytes())?, path)));
        if let Some((name, found, path)) = found.next() {
            return Some((point(name[prefix.len()..].to_owned(), found.peeled.unwrap_or(found.oid)), path));
        }
    }
    let (first, path) = rest.split_once('/').unwrap_or((rest, ""));
    let hex = first.to_ascii_lowercase();
    if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let path = path.trim_start_matches('/');
    match hex.len() {
        40 => Some((RefOrOid::Oid(hex.parse().ok()?), path)),
        SHORTEST_PREFIX..40 => Some((RefOrOid::Prefix(hex), path)),
        _ => None,
    }
}

/// Every split at a slash, longest name first. Skips names longer than a file path may be.
fn splits(rest: &str) -> impl Iterator<Item = (&str, &str)> {
    const LONGEST: usize = 4096;
    let whole = std::iter::once((rest, ""));
    let cut = rest.rmatch_indices('/').map(|(at, _)| (&rest[..at], rest[at..].trim_start_matches('/')));
    whole.chain(cut).filter(|(name, _)| name.len() <= LONGEST)
}
