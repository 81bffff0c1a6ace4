//! The history of a branch, or of one path in it.

use super::head::{Head, Room, Shown};
use super::view::{CommitLine, Picker, Trail, tail};
use crate::App;
use crate::frame::Frame;
use crate::links::Links;
use crate::path::PagePath;
use crate::respond;
use crate::show::text::{shown, url_path};
use crate::visitor::Visitor;
use abide_core::Timestamp;
use abide_forge::browse::{BrowseError, Commit, CommitPath, EntryKind, FileStep};
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/commits.html")]
struct CommitsPage {
    frame: Frame,
    head: Head,
    picker: Picker,
    trail: Trail,
    days: Vec<Day>,
    links: Links,
}

/// The commits of one day.
struct Day {
    date: String,
    commits: Vec<Line>,
}

/// A commit, and the URL of its files.
struct Line {
    commit: CommitLine,
    /// Path of the files or the file in that commit, below the repository's URL; empty if the commit deleted the file.
    view: String,
    /// The path that the file had before this commit, if it renamed it.
    renamed_from: Option<String>,
}

impl Line {
    fn whole(commit: &Commit) -> Self {
        Self { view: format!("tree/{}", commit.oid), commit: CommitLine::from(commit), renamed_from: None }
    }

    fn step(step: &FileStep) -> Self {
        let path = url_path(&step.path);
        let view = match step.kind {
            Some(EntryKind::Directory) => format!("tree/{}/{path}", step.commit.oid),
            // Submodules and symbolic links have no blob page of their own; the directory page describes them.
            Some(_) => format!("blob/{}/{path}", step.commit.oid),
            None => String::new(),
        };
        let renamed_from = step.renamed_from.as_ref().map(|path| shown(path));
        Self { commit: CommitLine::from(&step.commit), view, renamed_from }
    }
}

const PER_PAGE: usize = 30;

/// `GET /{owner}/{repo}/commits`
pub(super) async fn front(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let commit_path = room.browser.front().await?;
    page(&app, &room, commit_path, &page_path).await
}

/// `GET /{owner}/{repo}/commits/{ref}/{path}`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let commit_path = room.browser.resolve(&page_path.rest(3)).await?;
    page(&app, &room, commit_path, &page_path).await
}

async fn page(app: &App, room: &Room, commit_path: CommitPath, page_path: &PagePath) -> Shown {
    let number = page_path.page();
    let (lines, more) = lines(room, &commit_path, (number - 1) * PER_PAGE).await?;
    let title = match commit_path.path.is_empty() {
        true => format!("Commits · {}", room.repo().shown()),
        false => format!("History of {} · {}", shown(&commit_path.path), room.repo().shown()),
    };
    let head = room.head(app, "commits").await;
    let path = format!("{}/commits/{}{}", head.url, url_path(commit_path.name().as_bytes()), tail(&commit_path.path));
    Ok(respond::page(&CommitsPage {
        frame: Frame::new(app, &room.visitor, title),
        picker: Picker::of(room, &commit_path, "commits").await?,
        trail: Trail::of(&commit_path),
        days: by_day(lines),
        links: Links::around(&path, page_path, number, more),
        head,
    }))
}

/// A page of the history: of the branch, or of one path through its renames.
async fn lines(room: &Room, commit_path: &CommitPath, skip: usize) -> Result<(Vec<Line>, bool), BrowseError> {
    if commit_path.path.is_empty() {
        let log = room.browser.log(commit_path.commit, &commit_path.path, skip, PER_PAGE).await?;
        return Ok((log.commits.iter().map(Line::whole).collect(), log.more));
    }
    let log = room.browser.file_log(commit_path.commit, &commit_path.path, skip, PER_PAGE).await?;
    Ok((log.steps.iter().map(Line::step).collect(), log.more))
}

fn by_day(lines: Vec<Line>) -> Vec<Day> {
    let mut days: Vec<Day> = Vec::new();
    for line in lines {
        let instant = Timestamp::from_micros(line.commit.time.saturating_mul(1_000_000)).to_string();
        let date = instant.split('T').next().unwrap_or_default().to_owned();
        match days.last_mut() {
            Some(day) if day.date == date => day.commits.push(line),
            _ => days.push(Day { date, commits: vec![line] }),
        }
    }
    days
}
