//! Files and directories by path.

use super::{Urls, in_path, in_query};
use abide_forge::browse::{EntryKind, TreeEntry};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use utoipa::ToSchema;

/// The object at a path: a file, directory, symbolic link or submodule.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Content {
    /// `file`, `dir`, `symlink` or `submodule`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub size: u64,
    pub name: String,
    pub path: String,
    pub sha: String,
    pub url: String,
    pub git_url: Option<String>,
    pub html_url: String,
    pub download_url: Option<String>,
    #[serde(rename = "_links")]
    pub links: Links,
    /// `base64`; `none` for a file that is too large for this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Target of a symbolic link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Entries of a directory, if it was requested with the media type `object`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion)]
    pub entries: Option<Vec<Content>>,
}

/// URLs of the content.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Links {
    #[serde(rename = "self")]
    own: String,
    git: Option<String>,
    html: String,
}

impl Content {
    /// `at` is the ref or commit of the request.
    pub(crate) fn of(urls: &Urls, at: &str, path: &[u8], entry: &TreeEntry) -> Self {
        let (kind, folder, page) = match entry.kind {
            EntryKind::Directory => ("dir", Some("trees"), "tree"),
            EntryKind::Submodule => ("submodule", None, "tree"),
            EntryKind::Symlink => ("symlink", Some("blobs"), "blob"),
            EntryKind::File | EntryKind::Executable => ("file", Some("blobs"), "blob"),
        };
        let (encoded, at_path) = (in_path(path), in_path(at.as_bytes()));
        let url = urls.api(&format!("/contents/{encoded}?ref={}", in_query(at)));
        let git_url = folder.map(|folder| urls.api(&format!("/git/{folder}/{}", entry.oid)));
        let html_url = urls.page(&format!("/{page}/{at_path}/{encoded}"));
        let download_url = entry.kind.is_blob().then(|| urls.page(&format!("/raw/{at_path}/{encoded}")));
        Self {
            kind,
            size: entry.size.unwrap_or(0),
            name: String::from_utf8_lossy(path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()).into_owned(),
            path: String::from_utf8_lossy(path).into_owned(),
            sha: entry.oid.to_string(),
            links: Links { own: url.clone(), git: git_url.clone(), html: html_url.clone() },
            url,
            git_url,
            html_url,
            download_url,
            encoding: None,
            content: None,
            target: None,
            entries: None,
        }
    }

    /// The same with the content of a file; `None` if it is too large.
    pub(crate) fn with_bytes(mut self, bytes: Option<&[u8]>) -> Self {
        self.encoding = Some(if bytes.is_some() { "base64" } else { "none" });
        self.content = Some(bytes.map(|bytes| STANDARD.encode(bytes)).unwrap_or_default());
        self
    }
}
