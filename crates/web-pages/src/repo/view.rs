//! Parts of several pages: commits, the path of a file, the menu of branches and tags.

use super::head::Room;
use crate::show::text::{shortened, shown, url_path};
use abide_forge::browse::{BrowseError, Commit, CommitPath, Point, RefKind, address_of};

/// A commit in one line.
#[derive(Clone)]
pub(super) struct CommitLine {
    pub oid: String,
    pub short: String,
    pub subject: String,
    pub author: String,
    pub time: i64,
    pub signed: bool,
}

/// Subjects are truncated at this length; the commit page shows all of it.
const SUBJECT: usize = 200;

impl From<&Commit> for CommitLine {
    fn from(commit: &Commit) -> Self {
        let oid = commit.oid.to_string();
        Self {
            short: short(&oid),
            oid,
            subject: subject(commit),
            author: shown(&commit.author.name),
            time: commit.committer.time,
            signed: commit.signed,
        }
    }
}

/// The first digits of an id.
pub(super) fn short(oid: &str) -> String {
    oid.get(..8).unwrap_or(oid).to_owned()
}

/// Subject of a commit, or a text for commits without one.
pub(super) fn subject(commit: &Commit) -> String {
    let subject = shown(&commit.subject);
    if subject.trim().is_empty() { "(no message)".into() } else { shortened(&subject, SUBJECT).into_owned() }
}

/// One directory, or the file at the end, of a path.
pub(super) struct Step {
    pub name: String,
    /// Path from the root, encoded for URLs.
    pub path: String,
    pub last: bool,
}

/// Position of a page in a repository: ref and path.
pub(super) struct Trail {
    /// The branch, tag or commit, encoded for URLs.
    pub at: String,
    pub steps: Vec<Step>,
}

impl Trail {
    pub(super) fn of(commit_path: &CommitPath) -> Self {
        let mut steps: Vec<Step> = Vec::new();
        let mut end = 0;
        for name in commit_path.path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            end += name.len() + usize::from(end > 0);
            steps.push(Step { name: shown(name), path: url_path(&commit_path.path[..end]), last: false });
        }
        if let Some(last) = steps.last_mut() {
            last.last = true;
        }
        Self { at: url_path(commit_path.name().as_bytes()), steps }
    }

    /// Path of the parent directory after the branch, with a leading slash unless it is the root.
    pub(super) fn up(&self) -> String {
        match self.steps.len().checked_sub(2).and_then(|at| self.steps.get(at)) {
            Some(step) => format!("/{}", step.path),
            None => String::new(),
        }
    }
}

/// The menu of branches and tags.
pub(super) struct Picker {
    pub shown: String,
    pub is_tag: bool,
    pub branches: Vec<Choice>,
    pub tags: Vec<Choice>,
    /// View that a choice links to.
    pub view: &'static str,
    /// Path behind the branch in that URL.
    pub tail: String,
}

/// A branch or tag in the menu.
pub(super) struct Choice {
    pub name: String,
    /// Encoded for URLs.
    pub path: String,
    pub is_current: bool,
}

impl Choice {
    fn new(kind: RefKind, name: &str, is_current: bool) -> Self {
        Self { name: name.to_owned(), path: url_path(address_of(kind, name).as_bytes()), is_current }
    }
}

/// Branches, and tags, in the menu; its search field finds the others.
const PICKED: usize = 50;

impl Picker {
    pub(super) async fn of(room: &Room, commit_path: &CommitPath, view: &'static str) -> Result<Self, BrowseError> {
        let name = commit_path.name();
        let (branch, tag) = match &commit_path.point {
            Point::Branch(name) => (Some(name.as_str()), None),
            Point::Tag(name) => (None, Some(name.as_str())),
            Point::Commit => (None, None),
        };
        Ok(Self {
            shown: match commit_path.point {
                Point::Commit => short(&name),
                _ => shortened(&name, 40).into_owned(),
            },
            is_tag: tag.is_some(),
            branches: choices(room, RefKind::Branch, branch).await?,
            tags: choices(room, RefKind::Tag, tag).await?,
            view,
            tail: tail(&commit_path.path),
        })
    }
}

/// The newest ones, with the current one among them.
async fn choices(room: &Room, kind: RefKind, current: Option<&str>) -> Result<Vec<Choice>, BrowseError> {
    let newest = room.browser.newest(kind, "", 0, PICKED).await?.items;
    let names = newest.iter().filter_map(|found| std::str::from_utf8(&found.name).ok()?.strip_prefix(kind.prefix()));
    let mut choices: Vec<Choice> = names.map(|name| Choice::new(kind, name, current == Some(name))).collect();
    if let Some(current) = current
        && !choices.iter().any(|choice| choice.is_current)
    {
        choices.insert(0, Choice::new(kind, current, true));
    }
    Ok(choices)
}

/// Path after a branch in a URL.
pub(super) fn tail(path: &[u8]) -> String {
    if path.is_empty() { String::new() } else { format!("/{}", url_path(path)) }
}
