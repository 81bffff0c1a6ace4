//! Who last changed each line of a file.

use super::blob::LARGEST_SHOWN;
use super::head::{Head, Room, Shown};
use super::view::{Picker, Trail, subject};
use crate::App;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use crate::show::text::{escape_into, last_segment, shown};
use crate::visitor::Visitor;
use abide_forge::browse::{BlameRange, Commit};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use std::fmt::Write as _;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "repo/blame.html")]
struct BlamePage {
    frame: Frame,
    head: Head,
    picker: Picker,
    trail: Trail,
    rows: String,
}

/// `GET /{owner}/{repo}/blame/{ref}/{path}`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let commit_path = room.browser.resolve(&page_path.rest(3)).await?;
    let entry = room.browser.entry(commit_path.commit, &commit_path.path).await;
    let entry = entry.map_err(|error| room.no_path(&commit_path, error))?;
    let blob = room.browser.blob(entry.oid, LARGEST_SHOWN).await?;
    if blob.binary || blob.truncated {
        let detail = "Blame works for text files of at most 1 MiB.";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).into());
    }
    let lines = app.rendered.code(room.visitor.ip(), entry.oid, last_segment(&commit_path.path), blob.data).await?;
    let ranges = room.browser.blame(commit_path.commit, &commit_path.path).await?;
    let frame =
        Frame::new(&app, &room.visitor, format!("Blame of {} · {}", shown(&commit_path.path), room.repo().shown()));
    let head = room.head(&app, "code").await;
    let rows = rows(&head.url, &lines, &ranges, &frame);
    let trail = Trail::of(&commit_path);
    Ok(respond::page(&BlamePage { picker: Picker::of(&room, &commit_path, "blame").await?, frame, head, trail, rows }))
}

fn rows(url: &str, lines: &[String], ranges: &[(BlameRange, Arc<Commit>)], frame: &Frame) -> String {
    let mut out = String::new();
    for (range, commit) in ranges {
        for number in range.start..range.start.saturating_add(range.lines) {
            let Some(line) = lines.get(number as usize - 1) else { return out };
            let first = number == range.start;
            let _ = write!(out, "<tr id=\"L{number}\"{}>", if first { " class=\"blame-first\"" } else { "" });
            out.push_str("<td class=\"blame-who\">");
            if first {
                let _ = write!(
                    out,
                    r#"{} <a href="{url}/commit/{}" title=""#,
                    frame.now.ago_seconds(&commit.committer.time),
                    commit.oid
                );
                escape_into(&shown(&commit.author.name), &mut out);
                out.push_str("\">");
                escape_into(&subject(commit), &mut out);
                out.push_str("</a>");
            }
            let _ = writeln!(
                out,
                "</td><td class=\"n\"><a href=\"#L{number}\">{number}</a></td><td class=\"l\">{line}</td></tr>"
            );
        }
    }
    out
}
