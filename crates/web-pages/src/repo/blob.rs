//! A file.

use super::head::{Elsewhere, Head, Room, Shown};
use super::view::{CommitLine, Picker, Trail, tail};
use crate::App;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::respond;
use crate::show::markdown::Base;
use crate::show::text::{self, escape_into, last_segment, shown, url_path};
use crate::show::{code, markdown};
use crate::visitor::Visitor;
use abide_forge::browse::{Blob, CommitPath, EntryKind, TreeEntry};
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/blob.html")]
struct BlobPage {
    frame: Frame,
    head: Head,
    picker: Picker,
    trail: Trail,
    newest: Option<CommitLine>,
    commit_oid: String,
    facts: String,
    /// URL and label of the other view: rendered or source.
    rendered_link: Option<(String, &'static str)>,
    can_blame: bool,
    body: String,
}

/// Files larger than this are offered for download only.
pub(super) const LARGEST_SHOWN: usize = 1024 * 1024;

/// `GET /{owner}/{repo}/blob/{ref}/{path}`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let commit_path = room.browser.resolve(&page_path.rest(3)).await?;
    let entry = room.browser.entry(commit_path.commit, &commit_path.path).await;
    let entry = entry.map_err(|error| room.no_path(&commit_path, error))?;
    if entry.kind == EntryKind::Directory {
        let to = format!(
            "/{}/tree/{}{}",
            room.repo().slug(),
            url_path(commit_path.name().as_bytes()),
            tail(&commit_path.path)
        );
        return Err(Elsewhere::To(respond::see_other(&to)));
    }
    let frame = Frame::new(&app, &room.visitor, format!("{} · {}", shown(&commit_path.path), room.repo().shown()));
    let head = room.head(&app, "code").await;
    let log = room.browser.log(commit_path.commit, &commit_path.path, 0, 1).await?;
    let as_source = page_path.query("plain").is_some();
    let content = content(&app, &room, &commit_path, &entry, as_source, &head.url).await?;
    let trail = Trail::of(&commit_path);
    let here = format!("{}/blob/{}{}", head.url, trail.at, tail(&commit_path.path));
    Ok(respond::page(&BlobPage {
        picker: Picker::of(&room, &commit_path, "blob").await?,
        newest: log.commits.first().map(CommitLine::from),
        commit_oid: commit_path.commit.to_string(),
        facts: content.facts,
        rendered_link: content.rendered.map(|rendered| match rendered {
            true => (format!("{here}?plain=1"), "Source"),
            false => (here, "Rendered"),
        }),
        can_blame: content.is_text,
        body: content.html,
        frame,
        head,
        trail,
    }))
}

struct Content {
    facts: String,
    html: String,
    is_text: bool,
    /// `None` if the file has no rendered view; otherwise whether it is rendered now.
    rendered: Option<bool>,
}

async fn content(
    app: &App,
    room: &Room,
    commit_path: &CommitPath,
    entry: &TreeEntry,
    as_source: bool,
    url: &str,
) -> Result<Content, Elsewhere> {
    if entry.kind == EntryKind::Submodule {
        let html = note("This is a submodule: another repository at a fixed commit. Its files are not stored here.");
        return Ok(Content { facts: format!("Submodule at {}", entry.oid), html, is_text: false, rendered: None });
    }
    let size = entry.size.unwrap_or_default();
    let blob = room.browser.blob(entry.oid, LARGEST_SHOWN).await?;
    let mut facts = text::size(size);
    let plain = |facts, html| Content { facts, html, is_text: false, rendered: None };
    if entry.kind == EntryKind::Symlink {
        return Ok(plain(format!("Symbolic link · {facts}"), link(&blob, commit_path, url)));
    }
    if entry.kind == EntryKind::Executable {
        facts = format!("Executable · {facts}");
    }
    let name = last_segment(&commit_path.path);
    if is_picture(name) && size <= LARGEST_PICTURE {
        let source = format!("{url}/raw/{}{}", url_path(commit_path.name().as_bytes()), tail(&commit_path.path));
        let mut html = format!("<div class=\"picture\"><img src=\"{source}\" alt=\"");
        escape_into(&shown(name), &mut html);
        html.push_str(r#""></div>"#);
        return Ok(plain(facts, html));
    }
    if blob.binary {
        return Ok(plain(facts, note("Binary file not shown. Use Raw to download it.")));
    }
    if blob.truncated {
        return Ok(plain(facts, note("This file is too large to show. Use Raw to read or download it.")));
    }
    let lines = code::count_lines(&blob.data);
    facts = format!("{} · {facts}", text::count(lines, "line", "lines"));
    if size == 0 {
        return Ok(plain("Empty file".into(), note("This file is empty.")));
    }
    let can_render = markdown::is_markdown(name);
    if can_render && !as_source {
        let base = Base { repo: room.repo().slug(), at: commit_path.name(), dir: parent(&commit_path.path).to_vec() };
        let html = app.rendered.markdown(room.visitor.ip(), entry.oid, blob.data, base).await?;
        let html = format!(r#"<div class="card-body">{html}</div>"#);
        return Ok(Content { facts, html, is_text: true, rendered: Some(true) });
    }
    let lit = app.rendered.code(room.visitor.ip(), entry.oid, name, blob.data).await?;
    Ok(Content { facts, html: code::table(&lit), is_text: true, rendered: can_render.then_some(false) })
}

/// The directory part of a path.
fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&byte| byte == b'/').map_or(b"", |at| &path[..at])
}

fn note(text: &str) -> String {
    format!(r#"<div class="empty">{text}</div>"#)
}

/// Target of a symbolic link, with a link to it if it is inside the repository.
fn link(blob: &Blob, commit_path: &CommitPath, url: &str) -> String {
    let mut html = String::from(r#"<div class="card-body">Symbolic link to <code>"#);
    escape_into(&shown(&blob.data), &mut html);
    html.push_str("</code>");
    if let Some(target) = resolve(&commit_path.path, &blob.data) {
        html.push_str(&format!(
            r#" · <a href="{url}/tree/{}/{}">Open target</a>"#,
            url_path(commit_path.name().as_bytes()),
            url_path(&target)
        ));
    }
    html.push_str("</div>");
    html
}

/// Resolves a symbolic link at `path`; `None` if its target is outside the repository.
fn resolve(path: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    if target.starts_with(b"/") || target.is_empty() {
        return None;
    }
    let mut parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
    parts.pop();
    for part in target.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => (),
            b".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join(&b'/'))
}

/// Pictures larger than this are not loaded into the page.
const LARGEST_PICTURE: u64 = 10 * 1024 * 1024;

/// Whether a file name is that of a picture. Pictures are served with headers that forbid scripts in them.
fn is_picture(name: &[u8]) -> bool {
    super::raw::picture_type(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_inside_the_repository_only() {
        assert_eq!(resolve(b"a/b", b"../c"), Some(b"c".to_vec()));
        assert_eq!(resolve(b"a/b", b"./d/e"), Some(b"a/d/e".to_vec()));
        assert_eq!(resolve(b"a", b"../../etc/passwd"), None);
        assert_eq!(resolve(b"a", b"/etc/passwd"), None);
    }
}
