//! A directory: the repository's home is its root at the default branch.

use super::head::{Elsewhere, Head, Room, Shown};
use super::tombstone;
use super::view::{CommitLine, Picker, Trail, subject, tail};
use crate::App;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use crate::show::markdown::Base;
use crate::show::text::{self, escape_into, shown, url_path};
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_forge::Access;
use abide_forge::browse::{BrowseError, CommitPath, EntryKind, LastChanges, ObjectError, Tree};
use abide_forge::repos::open::{self, RepoLocator};
use abide_forge::repos::topics;
use askama::Template;
use axum::extract::State;
use std::fmt::Write as _;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "repo/tree.html")]
struct TreePage {
    frame: Frame,
    head: Head,
    picker: Picker,
    trail: Trail,
    is_home: bool,
    newest: Option<CommitLine>,
    /// Number of commits, and the noun for it.
    commits: Option<(String, &'static str)>,
    /// Rendered without the template engine, because a directory may have thousands of entries.
    rows: String,
    up: String,
    truncated: bool,
    /// The directory is too large to list.
    too_large: bool,
    complete: bool,
    readme: Option<Readme>,
    topics: Vec<String>,
}

struct Readme {
    name: String,
    path: String,
    html: String,
}

#[derive(Template)]
#[template(path = "repo/empty.html")]
struct EmptyPage {
    frame: Frame,
    head: Head,
}

/// A README larger than this is not shown below the files.
const LARGEST_README: usize = 512 * 1024;

/// `GET /{owner}/{repo}`
pub(super) async fn home(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    match room.browser.front().await {
        Ok(commit_path) => directory(&app, &room, commit_path, true).await,
        Err(BrowseError::Empty) => {
            let frame = Frame::new(&app, &room.visitor, room.repo().shown());
            Ok(respond::page(&EmptyPage { frame, head: room.head(&app, "code").await }))
        }
        Err(error) => Err(error.into()),
    }
}

/// `GET /r/{id}`: the permanent URL, which redirects to the current one.
pub(super) async fn permalink(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let id = page_path.segment(1);
    let locator = RepoLocator::Id(id.strip_suffix(".git").unwrap_or(id).to_owned());
    let repo = match open::open(&app.forge, &visitor.caller(), &locator, Action::RepoRead).await {
        Err(Access::NotFound) => return Err(tombstone::or_nothing(&app, &visitor, &page_path, &locator).await),
        found => found?,
    };
    Ok(respond::moved(&format!("/{}{}", repo.slug(), page_path.raw_query())))
}

/// `GET /{owner}/{repo}/tree/{ref}/{path}`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let commit_path = room.browser.resolve(&page_path.rest(3)).await?;
    let is_home = commit_path.path.is_empty();
    directory(&app, &room, commit_path, is_home).await
}

async fn directory(app: &App, room: &Room, commit_path: CommitPath, is_home: bool) -> Shown {
    let browser = &room.browser;
    let mut too_large = false;
    let tree = match browser.directory(commit_path.commit, &commit_path.path).await {
        Err(BrowseError::Object(ObjectError::TooLarge)) => {
            too_large = true;
            Arc::default()
        }
        Err(BrowseError::Object(ObjectError::NotADirectory)) => {
            // A hand-written `tree` URL of a file redirects to the file.
            let to = format!(
                "/{}/blob/{}{}",
                room.repo().slug(),
                url_path(commit_path.name().as_bytes()),
                tail(&commit_path.path)
            );
            return Err(Elsewhere::To(respond::see_other(&to)));
        }
        other => other.map_err(|error| room.no_path(&commit_path, error))?,
    };
    // Last changes are not computed for a truncated directory, because every commit would read all of it.
    let changes = match too_large || tree.truncated {
        true => Arc::new(LastChanges { complete: true, ..LastChanges::default() }),
        false => browser.last_changes(commit_path.commit, &commit_path.path).await?,
    };
    let newest = match commit_path.path.is_empty() {
        true => Some(CommitLine::from(&browser.commit(commit_path.commit).await?)),
        false => newest_of(&changes),
    };
    let commits = match commit_path.path.is_empty() {
        true => {
            let count = browser.count(commit_path.commit).await?;
            let more = if count.exact { "" } else { "+" };
            let unit = if count.commits == 1 { "commit" } else { "commits" };
            Some((format!("{}{more}", text::grouped(count.commits)), unit))
        }
        false => None,
    };
    let readme = if too_large { None } else { readme(app, room, &commit_path).await? };
    let title = match commit_path.path.is_empty() {
        true => room.repo().shown(),
        false => format!("{} · {}", shown(&commit_path.path), room.repo().shown()),
    };
    let frame = Frame::new(app, &room.visitor, title);
    let head = room.head(app, "code").await;
    let trail = Trail::of(&commit_path);
    let topics = if is_home {
        topics::of(&app.forge, room.repo()).await?.iter().map(ToString::to_string).collect()
    } else {
        Vec::new()
    };
    Ok(respond::page(&TreePage {
        rows: rows(&head.url, &trail.at, &commit_path, &tree, &changes, &frame),
        picker: Picker::of(room, &commit_path, "tree").await?,
        up: trail.up(),
        truncated: tree.truncated,
        too_large,
        complete: changes.complete,
        is_home,
        frame,
        head,
        trail,
        newest,
        commits,
        readme,
        topics,
    }))
}

/// The newest of the last changes, which is the latest commit of the directory.
fn newest_of(changes: &LastChanges) -> Option<CommitLine> {
    changes.entries.values().max_by_key(|commit| commit.committer.time).map(|commit| CommitLine::from(&**commit))
}

fn rows(url: &str, at: &str, commit_path: &CommitPath, tree: &Tree, changes: &LastChanges, frame: &Frame) -> String {
    let base = if commit_path.path.is_empty() { String::new() } else { format!("{}/", url_path(&commit_path.path)) };
    let mut out = String::with_capacity(tree.entries.len() * 400);
    for entry in &tree.entries {
        let (icon, view) = match entry.kind {
            EntryKind::Directory => ("i-dir", "tree"),
            EntryKind::File | EntryKind::Executable => ("i-file", "blob"),
            EntryKind::Symlink => ("i-link", "blob"),
            EntryKind::Submodule => ("i-module", ""),
        };
        out.push_str("<tr><td class=\"name\">");
        let _ = match view {
            "" => write!(out, r#"<span class="i {icon}" aria-hidden="true"></span>"#),
            view => write!(
                out,
                r#"<a href="{url}/{view}/{at}/{base}{}"><span class="i {icon}" aria-hidden="true"></span>"#,
                url_path(&entry.name)
            ),
        };
        escape_into(&shown(&entry.name), &mut out);
        match entry.kind {
            EntryKind::Submodule => {
                let _ = write!(out, r#" <span class="oid">@ {}</span>"#, &entry.oid.to_string()[..8]);
            }
            _ => out.push_str("</a>"),
        }
        out.push_str("</td><td class=\"what\">");
        if let Some(commit) = changes.entries.get(&entry.name) {
            let _ = write!(out, r#"<a href="{url}/commit/{}">"#, commit.oid);
            escape_into(&subject(commit), &mut out);
            let _ = write!(out, "</a></td><td class=\"when\">{}", frame.now.ago_seconds(&commit.committer.time));
        } else {
            out.push_str("</td><td class=\"when\">");
        }
        out.push_str("</td></tr>\n");
    }
    out
}

async fn readme(app: &App, room: &Room, commit_path: &CommitPath) -> Result<Option<Readme>, Problem> {
    let browser = &room.browser;
    let Some(entry) = browser.readme(commit_path.commit, &commit_path.path).await? else { return Ok(None) };
    let path = match commit_path.path.is_empty() {
        true => entry.name.to_vec(),
        false => [&commit_path.path, b"/".as_slice(), &entry.name].concat(),
    };
    let base = Base { repo: room.repo().slug(), at: commit_path.name(), dir: commit_path.path.clone() };
    let html = app.rendered.readme(room.visitor.ip(), browser, &entry, LARGEST_README, base).await?;
    Ok(html.map(|html| Readme { name: shown(&entry.name), path: url_path(&path), html: html.to_string() }))
}
