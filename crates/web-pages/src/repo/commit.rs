//! One commit and its diff.

use super::head::{Elsewhere, Head, Room, Shown};
use super::view::{short, subject};
use crate::App;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::respond;
use crate::show::diff::Shown as DiffShown;
use crate::visitor::Visitor;
use abide_forge::browse::Commit;
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/commit.html")]
struct CommitPage {
    frame: Frame,
    head: Head,
    commit: Detail,
    diff: DiffShown,
}

struct Detail {
    oid: String,
    subject: String,
    body: String,
    author: String,
    author_time: i64,
    committer: String,
    time: i64,
    signed: bool,
    parents: Vec<(String, String)>,
}

impl From<&Commit> for Detail {
    fn from(commit: &Commit) -> Self {
        let parents = commit.parents.iter().map(ToString::to_string);
        Self {
            oid: commit.oid.to_string(),
            subject: subject(commit),
            body: multiline(&commit.body),
            author: crate::show::text::shown(&commit.author.name),
            author_time: commit.author.time,
            committer: crate::show::text::shown(&commit.committer.name),
            time: commit.committer.time,
            signed: commit.signed,
            parents: parents.map(|oid| (oid.clone(), short(&oid))).collect(),
        }
    }
}

/// Text of several lines; control characters are replaced in each.
fn multiline(bytes: &[u8]) -> String {
    let lines: Vec<String> = bytes.split(|&byte| byte == b'\n').map(crate::show::text::shown).collect();
    lines.join("\n").trim_end().to_owned()
}

/// Number of the file whose large diff was requested.
pub(super) fn asked_file(page_path: &PagePath) -> Option<usize> {
    page_path.query("file")?.parse().ok()
}

/// `GET /{owner}/{repo}/commit/{oid}`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let commit_path = room.browser.revision(&page_path.decoded(3).unwrap_or_default()).await?;
    if commit_path.commit.to_string() != page_path.segment(3) {
        // Branches, tags and abbreviated ids redirect to the page of the full id.
        let to = format!("/{}/commit/{}", room.repo().slug(), commit_path.commit);
        return Err(Elsewhere::To(respond::see_other(&to)));
    }
    let commit = room.browser.commit(commit_path.commit).await?;
    let diff = room.browser.diff(commit_path.commit).await?;
    let detail = Detail::from(&commit);
    let frame = Frame::new(&app, &room.visitor, format!("{} · {}", detail.subject, room.repo().shown()));
    let head = room.head(&app, "commits").await;
    let here = format!("{}/commit/{}?file=", head.url, detail.oid);
    let diff = DiffShown::of(&diff, &here, asked_file(&page_path));
    Ok(respond::page(&CommitPage { frame, head, commit: detail, diff }))
}
