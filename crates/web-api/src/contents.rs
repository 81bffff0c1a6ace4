//! Files and directories by path.

use super::bytes;
use super::error::ApiError;
use super::media::Media;
use super::repos::content_of;
use super::scoped::Who;
use super::segments::{Query, Tail};
use super::shape::{Content, Urls};
use crate::App;
use abide_forge::browse::{Browser, CommitPath, EntryKind, Objects, TreeEntry};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};

/// Largest file whose content is in the JSON; clients read larger files as raw bytes.
const LARGEST_JSON: usize = 1 << 20;
/// Longest target of a symbolic link in a response.
const LONGEST_LINK: usize = 4096;

pub(super) async fn show(
    State(app): State<App>,
    Who(caller): Who,
    tail: Tail,
    query: Query,
    media: Media,
) -> Result<Response, ApiError> {
    let browser = content_of(&app, &caller, tail.slug.clone()).await?;
    let commit_path = at(&browser, &query).await?;
    let path = trimmed(&tail.rest);
    let entry = browser.entry(commit_path.commit, path).await?;
    let shown = Shown { app: &app, browser: &browser, commit_path: &commit_path };
    match entry.kind {
        EntryKind::Directory => shown.directory(path, &entry, media).await,
        _ => shown.file(path, &entry, media).await,
    }
}

pub(super) async fn readme(
    State(app): State<App>,
    Who(caller): Who,
    tail: Tail,
    query: Query,
    media: Media,
) -> Result<Response, ApiError> {
    let browser = content_of(&app, &caller, tail.slug.clone()).await?;
    let commit_path = at(&browser, &query).await?;
    let dir = trimmed(&tail.rest);
    let name = browser.readme(commit_path.commit, dir).await?.ok_or_else(ApiError::not_found)?.name;
    let path = joined(dir, &name);
    let entry = browser.entry(commit_path.commit, &path).await?;
    Shown { app: &app, browser: &browser, commit_path: &commit_path }.file(&path, &entry, media).await
}

/// The commit that `ref` names, or the tip of the default branch.
async fn at(browser: &Browser, query: &Query) -> Result<CommitPath, ApiError> {
    Ok(match query.get("ref") {
        Some(name) => browser.revision(short(name)).await?,
        None => browser.front().await?,
    })
}

/// Full ref names are accepted too.
fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/")).unwrap_or(name)
}

fn trimmed(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|&byte| byte != b'/').unwrap_or(path.len());
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(start, |last| last + 1);
    &path[start..end]
}

fn joined(dir: &[u8], name: &[u8]) -> Vec<u8> {
    if dir.is_empty() { name.to_vec() } else { [dir, b"/", name].concat() }
}

/// The commit whose content a response shows.
struct Shown<'a> {
    app: &'a App,
    browser: &'a Browser,
    commit_path: &'a CommitPath,
}

impl Shown<'_> {
    fn content(&self, path: &[u8], entry: &TreeEntry) -> Content {
        Content::of(&Urls::of(&self.app.forge, &self.browser.repo), &self.commit_path.name(), path, entry)
    }

    async fn file(&self, path: &[u8], entry: &TreeEntry, media: Media) -> Result<Response, ApiError> {
        let mut content = self.content(path, entry);
        let oid = entry.oid;
        match entry.kind {
            EntryKind::Submodule => {}
            _ if media == Media::Raw => return bytes::stream(self.browser, oid).await,
            EntryKind::Symlink => {
                let target = self.browser.blob(oid, LONGEST_LINK).await?;
                content.target = Some(String::from_utf8_lossy(&target.data).into_owned());
            }
            _ => {
                let blob = self.browser.blob(oid, LARGEST_JSON).await?;
                content = content.with_bytes((!blob.truncated).then_some(&blob.data));
            }
        }
        Ok(Json(content).into_response())
    }

    async fn directory(&self, path: &[u8], entry: &TreeEntry, media: Media) -> Result<Response, ApiError> {
        let listing = self.browser.directory(self.commit_path.commit, path).await?;
        let (app, repo, at) = (self.app.clone(), self.browser.repo.clone(), self.commit_path.name());
        let (path, entry) = (path.to_vec(), entry.clone());
        // The response is several times as large as the listing, so it is built while the slot is held.
        let ask = move |reader: &Objects| {
            let mut listing = (*listing).clone();
            reader.add_sizes(&mut listing)?;
            let urls = Urls::of(&app.forge, &repo);
            let entries = listing.entries.iter();
            let entries: Vec<Content> =
                entries.map(|entry| Content::of(&urls, &at, &joined(&path, &entry.name), entry)).collect();
            Ok(match media {
                Media::Object => {
                    let mut content = Content::of(&urls, &at, &path, &entry);
                    content.entries = Some(entries);
                    Json(content).into_response()
                }
                _ => Json(entries).into_response(),
            })
        };
        Ok(self.browser.read_heavy(ask).await?)
    }
}
