//! Patches and pull requests that came by nostr.

use super::{badge, governed};
use crate::App;
use crate::frame::Frame;
use crate::links::Links;
use crate::path::PagePath;
use crate::repo::head::{Head, Room, Shown};
use crate::respond;
use crate::show::text::readable;
use crate::visitor::Visitor;
use abide_forge::threads::list::{self, Kind, Line, Page};
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/nostr/pr_events.html")]
struct PrEventsPage {
    frame: Frame,
    head: Head,
    rows: Vec<Row>,
    links: Links,
}

/// A thread in a list.
pub(in crate::repo) struct Row {
    pub id: String,
    pub title: String,
    pub kind: &'static str,
    pub status: &'static str,
    pub class: &'static str,
    pub shown: String,
    pub at: i64,
}

impl From<Line> for Row {
    fn from(line: Line) -> Self {
        let (status, class) = badge(line.status, line.kind == Kind::Issue);
        let kind = match line.kind {
            Kind::Issue => "Issue",
            Kind::Patch => "Patch",
            Kind::PullRequest => "Pull request",
        };
        let (id, title, at) = (line.id, line.title, line.at);
        Self { id, title, kind, status, class, shown: readable(&line.author), at }
    }
}

const PER_PAGE: usize = 25;

/// `GET /{owner}/{repo}/proposals`
pub(in crate::repo) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let governed = governed(&app, &room).await?;
    let number = page_path.page();
    let Page { lines, more } = list::pr_events(&app.forge, &room.visitor.caller(), &governed, number, PER_PAGE).await?;
    let head = room.head(&app, "pr_events").await;
    let links = Links::around(&format!("{}/proposals", head.url), &page_path, number, more);
    let frame = Frame::new(&app, &room.visitor, format!("Pull requests · {}", room.repo().shown()));
    Ok(respond::page(&PrEventsPage { frame, head, rows: lines.into_iter().map(Row::from).collect(), links }))
}
