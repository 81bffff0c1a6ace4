//! Pushes: the ref, its old and new commit, and the commits between them.
//!
//! A transaction must be short, so the draft has the commits as the event names them. Before the first attempt, the commits
//! are read from the repository. Commits that were pruned by then are sent as the event names them, without files.

use super::draft::{Commit, Person, PushDraft};
use super::sender::Sender;
use super::text;
use crate::github::{Repository, Urls, time};
use crate::{Caller, Forge, browse};
use abide_core::event::{self, PushedCommit};
use abide_core::{Oid, RefName, RefUpdate, Timestamp};
use abide_git::read::diff::Change;
use abide_git::read::{self, Diff, DiffLimits, ReadError, Reader, Signature};
use abide_store::repos::Repo;
use serde::Serialize;
use std::time::Duration;
use tokio::time::timeout;

/// Limit of a commit message in bytes; the rest is cut.
const MESSAGE: usize = 16 << 10;
/// Time limit for reading commits. The sender holds the webhook meanwhile (`send.rs`, `HOLD`).
const PATIENCE: Duration = Duration::from_secs(20);
/// Longest chain of tags that is followed to a commit.
const TAGS: usize = 5;

/// Payload of a push of one ref.
#[derive(Debug, Serialize)]
pub(super) struct PushPayload {
    #[serde(rename = "ref")]
    name: String,
    before: String,
    after: String,
    base_ref: Option<String>,
    created: bool,
    deleted: bool,
    forced: bool,
    compare: String,
    commits: Vec<Commit>,
    head_commit: Option<Commit>,
    pusher: Pusher,
    repository: PushRepository,
    sender: Sender,
}

#[derive(Debug, Serialize)]
struct Pusher {
    name: String,
    email: Option<String>,
}

/// GitHub repeats the default branch under its old name, in pushes only.
#[derive(Debug, Serialize)]
struct PushRepository {
    #[serde(flatten)]
    repository: Repository,
    master_branch: String,
}

impl PushPayload {
    /// The payload as far as it needs no objects. `commits` are those of the event, newest first.
    pub(super) fn new(
        forge: &Forge,
        repo: &Repo,
        update: &RefUpdate,
        commits: &[PushedCommit],
        repository: Repository,
        sender: Sender,
    ) -> Self {
        let urls = Urls::of(forge, repo);
        let compare = match (update.is_create(), update.is_delete()) {
            (true, _) => urls.page(&format!("/commit/{}", update.new)),
            (_, true) => urls.page(&format!("/commit/{}", update.old)),
            _ => urls.page(&format!("/compare/{}...{}", update.old, update.new)),
        };
        let commits: Vec<_> = commits.iter().rev().map(|commit| remembered(&urls, commit)).collect();
        Self {
            name: update.name.as_str().to_owned(),
            before: update.old.to_string(),
            after: update.new.to_string(),
            base_ref: None,
            created: update.is_create(),
            deleted: update.is_delete(),
            forced: false,
            compare,
            head_commit: commits.last().cloned(),
            commits,
            pusher: Pusher { name: sender.login().to_owned(), email: None },
            repository: PushRepository { master_branch: repository.default_branch().to_owned(), repository },
            sender,
        }
    }
}

fn remembered(urls: &Urls, commit: &PushedCommit) -> Commit {
    let person = |person: &event::Person| Person { name: person.name.clone(), email: person.email.clone(), date: None };
    Commit {
        id: commit.id.clone(),
        tree_id: commit.tree.clone(),
        distinct: true,
        message: commit.message.clone(),
        timestamp: time(Timestamp::from_micros(commit.time.saturating_mul(1_000_000))),
        url: urls.page(&format!("/commit/{}", commit.id)),
        author: person(&commit.author),
        committer: person(commit.committer.as_ref().unwrap_or(&commit.author)),
        added: Vec::new(),
        removed: Vec::new(),
        modified: Vec::new(),
    }
}

/// Final payload of a push: with its commits, if its repository still exists.
pub(super) async fn complete(forge: &Forge, repo: Option<Repo>, mut draft: PushDraft) -> String {
    if let (Some(repo), Some(shown)) = (&repo, &mut draft.repository) {
        shown.describe(repo);
    }
    if let (Some(repo), Some(update)) = (repo, moved(&draft)) {
        // Commits that cannot be read are left out; the rest is sent.
        match timeout(PATIENCE, look(forge, repo, update)).await {
            Ok(Ok(brought)) => brought.add_to(&mut draft),
            Ok(Err(error)) => tracing::warn!(error, "the commits of a push could not be read for a webhook"),
            Err(_) => tracing::warn!("reading the commits of a push for a webhook took too long"),
        }
    }
    shrunk(draft, forge.settings().webhooks.payload_bytes)
}

fn moved(draft: &PushDraft) -> Option<RefUpdate> {
    Some(RefUpdate { name: draft.name.parse().ok()?, old: draft.before.parse().ok()?, new: draft.after.parse().ok()? })
}

/// Commits of a push.
struct Brought {
    forced: bool,
    commits: Vec<Commit>,
    head: Option<Commit>,
}

impl Brought {
    fn add_to(self, draft: &mut PushDraft) {
        draft.forced = self.forced;
        // Commits that are gone stay as the event has them.
        if !self.commits.is_empty() {
            draft.commits = self.commits;
        }
        if self.head.is_some() {
            draft.head_commit = self.head;
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
    let read = browser.read_heavy(move |reader| commits_of(reader, &urls, &update, &default, tip, limits)).await;
    read.map_err(|error| error.to_string())
}

#[derive(Clone, Copy)]
struct CommitLimits {
    commits: usize,
    walk: usize,
}

fn commits_of(
    reader: &Reader,
    urls: &Urls,
    update: &RefUpdate,
    default: &RefName,
    tip: Option<Oid>,
    limits: CommitLimits,
) -> Result<Brought, ReadError> {
    // A tag can point to a tree or blob; such a push has no commits.
    let Some(head) = peeled(reader, update.new) else {
        return Ok(Brought { forced: !update.is_create(), commits: Vec::new(), head: None });
    };
    let is_branch = update.name.as_branch().is_some();
    let forced = !update.is_create() && !reader.is_ancestor(update.old, head, limits.walk).unwrap_or(false);
    let base = match update.is_create() {
        false => Some(update.old),
        true if update.name == *default => None,
        // Commits of a new branch are those that the default branch does not have.
        true => tip,
    };
    let brought = match is_branch {
        // The old commit of a rewritten branch may be pruned. Then the payload has only the head commit.
        true => reader.brought(base, head, limits.commits, limits.walk).unwrap_or_default(),
        false => Vec::new(),
    };
    let shaped = |commit: &read::Commit| shape(reader, urls, commit);
    let commits = brought.iter().rev().map(shaped).collect();
    let head = reader.commit(head).ok().as_ref().map(shaped);
    Ok(Brought { forced, commits, head })
}

/// The commit of an object: itself, or the target of a tag.
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

fn shape(reader: &Reader, urls: &Urls, commit: &read::Commit) -> Commit {
    // Only the paths are needed, so the limits leave out contents and renames.
    let limits = DiffLimits { file_lines: 0, file_bytes: 0, total_bytes: 0, rename_pairs: 0, ..DiffLimits::default() };
    let files = reader.diff(commit.oid, &limits).unwrap_or_default();
    Commit {
        id: commit.oid.to_string(),
        tree_id: commit.tree.to_string(),
        distinct: true,
        message: message(commit),
        timestamp: at(&commit.committer),
        url: urls.page(&format!("/commit/{}", commit.oid)),
        author: signed(&commit.author),
        committer: signed(&commit.committer),
        added: paths(&files, |change| matches!(change, Change::Added(_))),
        removed: paths(&files, |change| matches!(change, Change::Deleted(_))),
        modified: paths(&files, |change| matches!(change, Change::Modified(..) | Change::Renamed(..))),
    }
}

fn message(commit: &read::Commit) -> String {
    let (subject, body) = (String::from_utf8_lossy(&commit.subject), String::from_utf8_lossy(&commit.body));
    let mut text = match body.trim_end() {
        "" => subject.into_owned(),
        body => format!("{subject}\n\n{body}"),
    };
    text.truncate(text.floor_char_boundary(MESSAGE));
    text
}

fn at(signature: &Signature) -> String {
    time(Timestamp::from_micros(signature.time.saturating_mul(1_000_000)))
}

fn signed(signature: &Signature) -> Person {
    Person {
        name: String::from_utf8_lossy(&signature.name).into_owned(),
        email: String::from_utf8_lossy(&signature.email).into_owned(),
        date: Some(at(signature)),
    }
}

fn paths(diff: &Diff, wanted: fn(&Change) -> bool) -> Vec<String> {
    let of = |change: &Change| String::from_utf8_lossy(change.path()).into_owned();
    diff.files.iter().filter(|file| wanted(&file.change)).map(|file| of(&file.change)).collect()
}

/// The payload in at most `room` bytes: first without the lists of files, then without commits.
fn shrunk(mut draft: PushDraft, room: usize) -> String {
    let whole = text(&draft);
    if whole.len() <= room {
        return whole;
    }
    for commit in draft.commits.iter_mut().chain(&mut draft.head_commit) {
        for list in [&mut commit.added, &mut commit.removed, &mut commit.modified] {
            list.clear();
        }
    }
    let without_files = text(&draft);
    if without_files.len() <= room {
        return without_files;
    }
    draft.commits.clear();
    text(&draft)
}
