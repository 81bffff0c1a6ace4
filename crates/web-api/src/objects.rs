//! Trees, blobs, commits and tags by their ids.

use super::bytes;
use super::error::ApiError;
use super::media::Media;
use super::repos::look_into;
use super::scoped::Who;
use super::segments::{Query, RepoItemPath, Segments, Tail};
use super::shape::{GitBlob, GitCommit, GitTag, GitTree, TreeItem, Urls};
use crate::App;
use abide_core::Oid;
use abide_forge::browse::{Browser, EntryKind, TreeEntry};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};

/// Largest blob that is sent as JSON.
const LARGEST_JSON: u64 = 10 << 20;
/// Largest blob that is read into memory; larger ones are encoded while they are sent.
const LARGEST_IN_MEMORY: u64 = 1 << 20;

pub(super) async fn tree(
    State(app): State<App>,
    Who(caller): Who,
    tail: Tail,
    query: Query,
) -> Result<Response, ApiError> {
    let browser = look_into(&app, &caller, tail.slug.clone()).await?;
    let treeish = treeish(&browser, tail.text()?).await?;
    let recursive = query.get("recursive").is_some();
    let limit = app.forge.settings().browse.entries;
    let (shared, repo) = (app.clone(), browser.repo.clone());
    // The response is several times as large as the listing, so it is built while the slot is held.
    let ask = move |reader: &abide_forge::browse::Objects| {
        let root = reader.entry(treeish, b"")?.oid;
        let mut listing = match recursive {
            true => reader.tree_recursive(treeish, limit)?,
            false => reader.tree(treeish, b"", limit)?,
        };
        reader.add_sizes(&mut listing)?;
        if !recursive {
            listing.entries.sort_by_key(git_order);
        }
        let urls = Urls::of(&shared.forge, &repo);
        let tree = GitTree {
            sha: root.to_string(),
            url: urls.api(&format!("/git/trees/{root}")),
            tree: listing.entries.iter().map(|entry| TreeItem::of(&urls, entry)).collect(),
            truncated: listing.truncated,
        };
        Ok(Json(tree).into_response())
    };
    Ok(browser.read_heavy(ask).await?)
}

/// Git's order of tree entries: by name, a directory as if its name ended with a slash.
fn git_order(entry: &TreeEntry) -> Vec<u8> {
    let mut name = entry.name.to_vec();
    if entry.kind == EntryKind::Directory {
        name.push(b'/');
    }
    name
}

/// The object with an id, or the commit of a branch or tag.
async fn treeish(browser: &Browser, name: &str) -> Result<Oid, ApiError> {
    match name.parse::<Oid>() {
        Ok(oid) => Ok(oid),
        Err(_) => Ok(browser.revision(name).await?.commit),
    }
}

pub(super) async fn commit(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, repo, sha)): RepoItemPath,
) -> Result<Json<GitCommit>, ApiError> {
    let browser = look_into(&app, &caller, (owner, repo)).await?;
    let commit = browser.commit(whole(&sha)?).await?;
    Ok(Json(GitCommit::of(&Urls::of(&app.forge, &browser.repo), &commit)))
}

pub(super) async fn blob(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, repo, sha)): RepoItemPath,
    media: Media,
) -> Result<Response, ApiError> {
    let browser = look_into(&app, &caller, (owner, repo)).await?;
    let oid = whole(&sha)?;
    let size = browser.read(move |reader| reader.blob_size(oid)).await?;
    if media == Media::Raw {
        return bytes::stream(&browser, oid).await;
    }
    if size > LARGEST_JSON {
        return Err(ApiError::blob_too_large(LARGEST_JSON));
    }
    let urls = Urls::of(&app.forge, &browser.repo);
    if size > LARGEST_IN_MEMORY {
        return bytes::stream_json(&browser, oid, &GitBlob::new(&urls, oid, size, &[])).await;
    }
    let blob = browser.blob(oid, LARGEST_IN_MEMORY as usize).await?;
    Ok(Json(GitBlob::new(&urls, oid, size, &blob.data)).into_response())
}

pub(super) async fn tag(
    State(app): State<App>,
    Who(caller): Who,
    Segments((owner, repo, sha)): RepoItemPath,
) -> Result<Json<GitTag>, ApiError> {
    let browser = look_into(&app, &caller, (owner, repo)).await?;
    let oid = whole(&sha)?;
    let tag = browser.read(move |reader| reader.tag(oid)).await?;
    Ok(Json(GitTag::of(&Urls::of(&app.forge, &browser.repo), &tag)))
}

/// Only full object ids are accepted.
fn whole(sha: &str) -> Result<Oid, ApiError> {
    sha.to_ascii_lowercase().parse().map_err(|_| ApiError::not_found())
}
