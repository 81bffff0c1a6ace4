//! Details of a push event. Its readers may run when refs and objects have changed, so it has every ref before and
//! after, and the newest commits of branches. Limited by size; `ref_count` has the number of refs.

use crate::blocking::blocking;
use abide_core::event::{Person, PushedCommit, PushedRef};
use abide_core::{RefName, RefUpdate};
use abide_git::GitError;
use abide_git::read::{Commit, Reader, Signature};
use abide_store::events;
use abide_store::repos::Repo;
use abide_store::repos::pushes::Push;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Most commits per push event.
const COMMITS: usize = 8;
/// Most commits visited per branch.
const WALK: usize = 1_000;
/// Most bytes of a subject or a name.
const TEXT: usize = 120;
/// Bytes for the rest of the payload, besides the repository's name.
const REST: usize = 384;

/// The newest commits of the branches that have any, newest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Brought(Vec<(RefName, Vec<PushedCommit>)>);

/// Reads the new commits of a push from a repository with its objects. Errors are ignored: the push itself matters
/// more.
pub(crate) async fn brought(dir: PathBuf, default: &RefName, updates: &[RefUpdate]) -> Brought {
    let moved = |update: &&RefUpdate| {
        let branch = update.name.as_branch().is_some() && !update.is_delete();
        // A new branch may share commits with others, which are not its own; a repository's first branch shares none.
        branch && (!update.is_create() || update.name == *default)
    };
    let moved: Vec<_> = updates.iter().filter(moved).take(COMMITS).cloned().collect();
    if moved.is_empty() {
        return Brought::default();
    }
    match blocking("reading the commits of a push", move || read(&dir, moved)).await {
        Ok(Ok(brought)) => brought,
        Ok(Err(error)) => {
            tracing::warn!(%error, "the commits of a push could not be read for its event");
            Brought::default()
        }
        Err(error) => {
            tracing::warn!(%error, "the commits of a push are missing in its event");
            Brought::default()
        }
    }
}

fn read(dir: &Path, moved: Vec<RefUpdate>) -> Result<Brought, GitError> {
    let reader = Reader::open(dir)?;
    let mut left = COMMITS;
    let mut brought = Vec::new();
    for update in moved {
        let base = (!update.is_create()).then_some(update.old);
        // Too far from the previous tip, or that is gone: the new commits are unknown.
        let commits = reader.brought(base, update.new, left, WALK).unwrap_or_default();
        left -= commits.len();
        if !commits.is_empty() {
            brought.push((update.name, commits.iter().map(pushed).collect()));
        }
        if left == 0 {
            break;
        }
    }
    Ok(Brought(brought))
}

/// The committer is included only if it is not the author.
fn pushed(commit: &Commit) -> PushedCommit {
    let (author, committer) = (person(&commit.author), person(&commit.committer));
    PushedCommit {
        id: commit.oid.to_string(),
        tree: commit.tree.to_string(),
        message: short(&commit.subject),
        time: commit.committer.time,
        committer: Some(committer).filter(|committer| *committer != author),
        author,
    }
}

fn person(signature: &Signature) -> Person {
    Person { name: short(&signature.name), email: short(&signature.email) }
}

fn short(text: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(text).into_owned();
    text.truncate(text.floor_char_boundary(TEXT));
    text
}

/// Refs of a push with their commits, as many of both as fit into an event. Refs take precedence.
pub(super) fn refs(push: &Push, repo: &Repo, brought: &Brought) -> Vec<PushedRef> {
    let room = events::MAX_PAYLOAD.saturating_sub(REST + repo.slug().len());
    let mut used = 0;
    let mut fits = |bytes: usize| {
        let fits = used + bytes <= room;
        used += if fits { bytes } else { 0 };
        fits
    };
    let mut refs: Vec<_> = push.updates.iter().map(entry).take_while(|entry| fits(json_bytes(entry))).collect();
    for (name, commits) in &brought.0 {
        let Some(entry) = refs.iter_mut().find(|entry| entry.name == name.as_str()) else { continue };
        // The key of the list takes space too.
        let mut room_for = |commit: &&PushedCommit| fits(json_bytes(commit)) && fits(json_bytes("commits"));
        entry.commits = commits.iter().take_while(&mut room_for).cloned().collect();
    }
    refs
}

/// Bytes of a value in a list.
fn json_bytes<T: Serialize + ?Sized>(value: &T) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |json| json.len() + 1)
}

fn entry(update: &RefUpdate) -> PushedRef {
    PushedRef {
        name: update.name.to_string(),
        before: update.old.to_string(),
        after: update.new.to_string(),
        commits: Vec::new(),
    }
}
