//! Refs, commits and objects.

use super::{Stats, Urls, in_path, signed_at};
use crate::shape::ChangedFile;
use abide_core::Oid;
use abide_forge::browse::{Commit, EntryKind, ObjectKind, Signature, TagObject, TreeEntry};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use utoipa::ToSchema;

/// Id and URL of an object.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Pointer {
    sha: String,
    url: String,
}

/// Type, id and URL of an object.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Target {
    #[serde(rename = "type")]
    kind: &'static str,
    sha: String,
    url: String,
}

impl Target {
    fn new(urls: &Urls, kind: ObjectKind, oid: Oid) -> Self {
        let (kind, folder) = match kind {
            ObjectKind::Commit => ("commit", "commits"),
            ObjectKind::Tree => ("tree", "trees"),
            ObjectKind::Blob => ("blob", "blobs"),
            ObjectKind::Tag => ("tag", "tags"),
        };
        Self { kind, sha: oid.to_string(), url: urls.api(&format!("/git/{folder}/{oid}")) }
    }
}

/// Author, committer or tagger.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Person {
    name: String,
    email: String,
    date: String,
}

impl From<&Signature> for Person {
    fn from(signature: &Signature) -> Self {
        Self { name: signature.name.to_string(), email: signature.email.to_string(), date: signed_at(signature) }
    }
}

/// Verification of a signature. Signatures of commits and tags are never verified here.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Verification {
    verified: bool,
    reason: &'static str,
    signature: Option<String>,
    payload: Option<String>,
    verified_at: Option<String>,
}

impl Verification {
    fn of(signed: bool) -> Self {
        let reason = if signed { "unknown_key" } else { "unsigned" };
        Self { verified: false, reason, signature: None, payload: None, verified_at: None }
    }
}

/// The commit object.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CommitContent {
    author: Person,
    committer: Person,
    message: String,
    tree: Pointer,
    url: String,
    comment_count: i64,
    verification: Verification,
}

/// Parent of a commit.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Parent {
    sha: String,
    url: String,
    html_url: String,
}

/// A commit. `commit` names its author and committer; `author` and `committer` are always null, because commits are not
/// matched to accounts.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CommitItem {
    sha: String,
    node_id: String,
    commit: CommitContent,
    url: String,
    html_url: String,
    comments_url: String,
    #[schema(inline)]
    author: Option<super::SimpleUser>,
    #[schema(inline)]
    committer: Option<super::SimpleUser>,
    parents: Vec<Parent>,
}

impl CommitItem {
    pub(crate) fn of(urls: &Urls, commit: &Commit) -> Self {
        let sha = commit.oid.to_string();
        Self {
            node_id: format!("C_{sha}"),
            commit: CommitContent {
                author: (&commit.author).into(),
                committer: (&commit.committer).into(),
                message: message(commit),
                tree: tree_pointer(urls, commit),
                url: urls.api(&format!("/git/commits/{sha}")),
                comment_count: 0,
                verification: Verification::of(commit.signed),
            },
            url: urls.api(&format!("/commits/{sha}")),
            html_url: urls.page(&format!("/commit/{sha}")),
            comments_url: urls.api(&format!("/commits/{sha}/comments")),
            author: None,
            committer: None,
            parents: parents(urls, commit, "/commits"),
            sha,
        }
    }
}

fn message(commit: &Commit) -> String {
    match commit.body.is_empty() {
        true => commit.subject.to_string(),
        false => format!("{}\n\n{}", commit.subject, commit.body.to_string().trim_end()),
    }
}

fn tree_pointer(urls: &Urls, commit: &Commit) -> Pointer {
    Pointer { sha: commit.tree.to_string(), url: urls.api(&format!("/git/trees/{}", commit.tree)) }
}

fn parents(urls: &Urls, commit: &Commit, folder: &str) -> Vec<Parent> {
    let parent = |oid: &Oid| Parent {
        sha: oid.to_string(),
        url: urls.api(&format!("{folder}/{oid}")),
        html_url: urls.page(&format!("/commit/{oid}")),
    };
    commit.parents.iter().map(parent).collect()
}

/// A commit with its changed files.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FullCommit {
    #[serde(flatten)]
    pub item: CommitItem,
    pub stats: Stats,
    pub files: Vec<ChangedFile>,
}

/// A git commit object.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct GitCommit {
    sha: String,
    node_id: String,
    url: String,
    html_url: String,
    author: Person,
    committer: Person,
    tree: Pointer,
    message: String,
    parents: Vec<Parent>,
    verification: Verification,
}

impl GitCommit {
    pub(crate) fn of(urls: &Urls, commit: &Commit) -> Self {
        let sha = commit.oid.to_string();
        Self {
            node_id: format!("C_{sha}"),
            url: urls.api(&format!("/git/commits/{sha}")),
            html_url: urls.page(&format!("/commit/{sha}")),
            author: (&commit.author).into(),
            committer: (&commit.committer).into(),
            tree: tree_pointer(urls, commit),
            message: message(commit),
            parents: parents(urls, commit, "/git/commits"),
            verification: Verification::of(commit.signed),
            sha,
        }
    }
}

/// A branch in a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ShortBranch {
    name: String,
    commit: Pointer,
    protected: bool,
}

impl ShortBranch {
    pub(crate) fn new(urls: &Urls, name: &[u8], tip: Oid) -> Self {
        Self { name: lossy(name), commit: commit_pointer(urls, tip), protected: false }
    }
}

/// A branch with its last commit.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Branch {
    name: String,
    commit: CommitItem,
    #[serde(rename = "_links")]
    links: BranchLinks,
    protected: bool,
}

/// URLs of a branch.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct BranchLinks {
    #[serde(rename = "self")]
    own: String,
    html: String,
}

impl Branch {
    pub(crate) fn new(urls: &Urls, name: &str, tip: &Commit) -> Self {
        let encoded = in_path(name.as_bytes());
        let links = BranchLinks {
            own: urls.api(&format!("/branches/{encoded}")),
            html: urls.page(&format!("/tree/{encoded}")),
        };
        Self { name: name.to_owned(), commit: CommitItem::of(urls, tip), links, protected: false }
    }
}

/// A tag in a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Tag {
    name: String,
    commit: Pointer,
    node_id: String,
}

impl Tag {
    pub(crate) fn new(urls: &Urls, name: &[u8], target: Oid) -> Self {
        let name = lossy(name);
        Self { commit: commit_pointer(urls, target), node_id: format!("REF_refs/tags/{name}"), name }
    }
}

fn commit_pointer(urls: &Urls, oid: Oid) -> Pointer {
    Pointer { sha: oid.to_string(), url: urls.api(&format!("/commits/{oid}")) }
}

fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// A git ref.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct GitRef {
    #[serde(rename = "ref")]
    name: String,
    node_id: String,
    url: String,
    object: Target,
}

impl GitRef {
    pub(crate) fn new(urls: &Urls, name: &[u8], kind: ObjectKind, oid: Oid) -> Self {
        let below = name.strip_prefix(b"refs/").unwrap_or(name);
        let url = urls.api(&format!("/git/refs/{}", in_path(below)));
        let name = lossy(name);
        Self { node_id: format!("REF_{name}"), url, object: Target::new(urls, kind, oid), name }
    }
}

/// A git tree object.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct GitTree {
    pub sha: String,
    pub url: String,
    pub tree: Vec<TreeItem>,
    pub truncated: bool,
}

/// An entry of a git tree.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TreeItem {
    path: String,
    mode: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    sha: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl TreeItem {
    pub(crate) fn of(urls: &Urls, entry: &TreeEntry) -> Self {
        let (kind, folder) = match entry.kind {
            EntryKind::Directory => ("tree", Some("trees")),
            EntryKind::Submodule => ("commit", None),
            EntryKind::File | EntryKind::Executable | EntryKind::Symlink => ("blob", Some("blobs")),
        };
        Self {
            path: entry.name.to_string(),
            mode: entry.kind.mode(),
            kind,
            sha: entry.oid.to_string(),
            size: entry.size,
            url: folder.map(|folder| urls.api(&format!("/git/{folder}/{}", entry.oid))),
        }
    }
}

/// A git blob object.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct GitBlob {
    sha: String,
    node_id: String,
    size: u64,
    url: String,
    content: String,
    encoding: &'static str,
}

impl GitBlob {
    pub(crate) fn new(urls: &Urls, oid: Oid, size: u64, data: &[u8]) -> Self {
        Self {
            sha: oid.to_string(),
            node_id: format!("B_{oid}"),
            size,
            url: urls.api(&format!("/git/blobs/{oid}")),
            content: STANDARD.encode(data),
            encoding: "base64",
        }
    }
}

/// A git tag object.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct GitTag {
    node_id: String,
    tag: String,
    sha: String,
    url: String,
    message: String,
    tagger: Option<Person>,
    object: Target,
    verification: Verification,
}

impl GitTag {
    pub(crate) fn of(urls: &Urls, tag: &TagObject) -> Self {
        Self {
            node_id: format!("T_{}", tag.oid),
            tag: tag.name.to_string(),
            sha: tag.oid.to_string(),
            url: urls.api(&format!("/git/tags/{}", tag.oid)),
            message: tag.message.to_string(),
            tagger: tag.tagger.as_ref().map(Person::from),
            object: Target::new(urls, tag.target_kind, tag.target),
            verification: Verification::of(tag.signed),
        }
    }
}
