//! Pushes: which ref moved, from where to where, and the commits that it brought.
//!
//! A transaction has no time to read objects, so a delivery is queued with the event's facts about its commits and
//! completed before its first try. Objects stay for as long as the repository does; of what is gone by then, the event's
//! own words are sent.

use super::repository::Urls;
use crate::{Caller, Fault, Forge, browse};
use abide_core::event::{Push, PushedCommit};
use abide_core::{Oid, RefName, RefUpdate, Timestamp};
use abide_git::read::diff::Change;
use abide_git::read::{Commit, Diff, DiffLimits, ReadError, Reader, Signature};
use abide_store::repos::Repo;
use serde_json::{Value as Json, json};
use std::time::Duration;
use tokio::time::timeout;

/// Bytes of a commit's message that are sent.
const MESSAGE: usize = 16 << 10;
/// How long reading commits may take: whoever reads them holds the hook.
const PATIENCE: Duration = Duration::from_secs(20);
/// Tags of tags that are followed.
const TAGS: usize = 5;

/// Fields of the payload that need no look into the repository.
pub(super) fn draft(forge: &Forge, repo: &Repo, update: &RefUpdate, repository: Json, sender: Json) -> Json {
    let urls = Urls::of(forge, repo);
    let compare = match (update.is_create(), update.is_delete()) {
        (true, _) => urls.page(&format!("/commit/{}", update.new)),
        (_, true) => urls.page(&format!("/commit/{}", update.old)),
        _ => urls.page(&format!("/compare/{}...{}", update.old, update.new)),
    };
    let mut repository = repository;
    repository["master_branch"] = repository["default_branch"].clone();
    json!({
        "ref": update.name.as_str(),
        "before": update.old.to_string(),
        "after": update.new.to_string(),
        "base_ref": null,
        "created": update.is_create(),
        "deleted": update.is_delete(),
        "forced": false,
        "compare": compare,
        "commits": [],
        "head_commit": null,
        "pusher": { "name": sender["login"], "email": null },
        "repository": repository,
        "sender": sender,
    })
}

/// Puts the commits of the event into a draft, in case the repository has them no more at the first try.
pub(super) fn remember(forge: &Forge, repo: &Repo, push: &Push, said: &mut Json) {
    let Some(pushed) = push.refs().iter().find(|pushed| said["ref"] == pushed.name.as_str()) else { return };
    if pushed.commits.is_empty() {
        return;
    }
    let urls = Urls::of(forge, repo);
    let mut commits: Vec<_> = pushed.commits.iter().map(|commit| remembered(&urls, commit)).collect();
    said["head_commit"] = commits.first().cloned().unwrap_or_default();
    commits.reverse();
    said["commits"] = commits.into();
}

fn remembered(urls: &Urls, commit: &PushedCommit) -> Json {
    json!({
        "id": commit.id,
        "tree_id": commit.tree,
        "distinct": true,
        "message": commit.message,
        "timestamp": Timestamp::from_micros(commit.time.saturating_mul(1_000_000)).to_string(),
        "url": urls.page(&format!("/commit/{}", commit.id)),
        "author": commit.author,
        "committer": commit.committer.as_ref().unwrap_or(&commit.author),
        "added": [],
        "removed": [],
        "modified": [],
    })
}

/// Completes the payload of a push with its commits, if its repository still exists.
pub(super) async fn complete(forge: &Forge, repo: Option<Repo>, mut said: Json) -> Result<String, Fault> {
    if let (Some(repo), Some(update)) = (repo, moved(&said)) {
        // Commits that cannot be read are left out; the rest is sent.
        match timeout(PATIENCE, look(forge, repo, update)).await {
            Ok(Ok(brought)) => brought.add_to(&mut said),
            Ok(Err(error)) => tracing::warn!(error, "the commits of a push could not be read for a webhook"),
            Err(_) => tracing::warn!("reading the commits of a push for a webhook took too long"),
        }
    }
    Ok(shrunk(said, forge.settings().webhooks.payload_bytes))
}

fn moved(said: &Json) -> Option<RefUpdate> {
    Some(RefUpdate {
        name: said["ref"].as_str()?.parse().ok()?,
        old: said["before"].as_str()?.parse().ok()?,
        new: said["after"].as_str()?.parse().ok()?,
    })
}

/// Commits of a push.
struct Brought {
    forced: bool,
    commits: Vec<Json>,
    head: Option<Json>,
}

impl Brought {
    fn add_to(self, said: &mut Json) {
        said["forced"] = self.forced.into();
        // Commits that are gone stay as the event has them.
        if !self.commits.is_empty() {
            said["commits"] = self.commits.into();
        }
        if let Some(head) = self.head {
            said["head_commit"] = head;
        }
    }
}

async fn look(forge: &Forge, repo: Repo, update: RefUpdate) -> Result<Brought, String> {
    if update.is_delete() {
        return Ok(Brought { forced: false, commits: Vec::new(), head: None });
    }
    let urls = Urls::of(forge, &repo);
    let default = repo.default_branch.clone();
    let browser = browse::of_repo(forge, &Caller::operator(), repo).await.map_err(|error| error.to_string())?;
    let tip = browser.refs().refs.iter().find(|found| found.name == default.as_str()).map(|found| found.oid);
    let limits = CommitLimits { commits: forge.settings().webhooks.commits, walk: forge.settings().browse.walk };
    let read = browser.read_heavy(move |reader| read(reader, &urls, &update, &default, tip, limits)).await;
    read.map_err(|error| error.to_string())
}

#[derive(Clone, Copy)]
struct CommitLimits {
    commits: usize,
    walk: usize,
}

fn read(
    reader: &Reader,
    urls: &Urls,
    update: &RefUpdate,
    default: &RefName,
    tip: Option<Oid>,
    limits: CommitLimits,
) -> Result<Brought, ReadError> {
    // A tag may stand for something that is no commit; then there are no commits to list.
    let Some(head) = peeled(reader, update.new) else {
        return Ok(Brought { forced: !update.is_create(), commits: Vec::new(), head: None });
    };
    let is_branch = update.name.as_branch().is_some();
    let forced = !update.is_create() && !reader.is_ancestor(update.old, head, limits.walk).unwrap_or(false);
    let base = match update.is_create() {
        false => Some(update.old),
        true if update.name == *default => None,
        // A new branch brings what the default branch has not.
        true => tip,
    };
    let brought = match is_branch {
        // The commits before a rewrite may be gone. Then the payload has the new head alone.
        true => reader.brought(base, head, limits.commits, limits.walk).unwrap_or_default(),
        false => Vec::new(),
    };
    let shaped = |commit: &Commit| shape(reader, urls, commit);
    let commits = brought.iter().rev().map(shaped).collect();
    let head = reader.commit(head).ok().as_ref().map(shaped);
    Ok(Brought { forced, commits, head })
}

/// The commit that something stands for: itself, or what a tag points to in the end.
fn peeled(reader: &Reader, oid: Oid) -> Option<Oid> {
    let mut oid = oid;
    for _ in 0..TAGS {
        match reader.tag(oid) {
            Ok(tag) => oid = tag.target,
            Err(_) => return reader.commit(oid).ok().map(|commit| commit.oid),
        }
    }
    None
}

fn shape(reader: &Reader, urls: &Urls, commit: &Commit) -> Json {
    // Only which files: nothing is compared.
    let limits = DiffLimits { file_lines: 0, file_bytes: 0, total_bytes: 0, rename_pairs: 0, ..DiffLimits::default() };
    let files = reader.diff(commit.oid, &limits).unwrap_or_default();
    json!({
        "id": commit.oid.to_string(),
        "tree_id": commit.tree.to_string(),
        "distinct": true,
        "message": message(commit),
        "timestamp": at(&commit.committer),
        "url": urls.page(&format!("/commit/{}", commit.oid)),
        "author": signed(&commit.author),
        "committer": signed(&commit.committer),
        "added": paths(&files, |change| matches!(change, Change::Added(_))),
        "removed": paths(&files, |change| matches!(change, Change::Deleted(_))),
        "modified": paths(&files, |change| matches!(change, Change::Modified(..) | Change::Renamed(..))),
    })
}

fn message(commit: &Commit) -> String {
    let (subject, body) = (String::from_utf8_lossy(&commit.subject), String::from_utf8_lossy(&commit.body));
    let mut text = match body.trim_end() {
        "" => subject.into_owned(),
        body => format!("{subject}\n\n{body}"),
    };
    text.truncate(text.floor_char_boundary(MESSAGE));
    text
}

fn at(signature: &Signature) -> String {
    Timestamp::from_micros(signature.time.saturating_mul(1_000_000)).to_string()
}

fn signed(signature: &Signature) -> Json {
    json!({
        "name": String::from_utf8_lossy(&signature.name),
        "email": String::from_utf8_lossy(&signature.email),
        "date": at(signature),
    })
}

fn paths(diff: &Diff, wanted: fn(&Change) -> bool) -> Vec<String> {
    let of = |change: &Change| String::from_utf8_lossy(change.path()).into_owned();
    diff.files.iter().filter(|file| wanted(&file.change)).map(|file| of(&file.change)).collect()
}

/// Leaves out lists of files, then commits, until it fits.
fn shrunk(mut said: Json, room: usize) -> String {
    let text = said.to_string();
    if text.len() <= room {
        return text;
    }
    let bare = |commit: &mut Json| {
        for list in ["added", "removed", "modified"] {
            commit[list] = json!([]);
        }
    };
    if let Some(commits) = said["commits"].as_array_mut() {
        commits.iter_mut().for_each(bare);
    }
    if said["head_commit"].is_object() {
        bare(&mut said["head_commit"]);
    }
    let text = said.to_string();
    if text.len() <= room {
        return text;
    }
    said["commits"] = json!([]);
    said.to_string()
}
