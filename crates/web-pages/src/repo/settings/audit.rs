//! Audit log of a repository.

use crate::App;
use crate::frame::Frame;
use crate::links::Links;
use crate::path::PagePath;
use crate::repo::head::{Head, Room, Shown};
use crate::respond;
use crate::visitor::Visitor;
use abide_forge::repos::trail::{self, Named};
use askama::Template;
use axum::extract::State;

const PER_PAGE: usize = 50;

#[derive(Template)]
#[template(path = "repo/settings/audit.html")]
struct AuditPage {
    frame: Frame,
    head: Head,
    section: &'static str,
    rows: Vec<Named>,
    links: Links,
}

/// `GET /{owner}/{repo}/settings/audit`
pub(in crate::repo) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let before = page_path.query("before").and_then(|id| id.parse().ok());
    let caller = room.visitor.caller();
    let mut rows = trail::page(&app.forge, &caller, room.repo(), before, PER_PAGE as i64 + 1).await?;
    let head = room.head(&app, "settings").await;
    let link = |before: Option<i64>| {
        let query = before.map(|id| format!("?before={id}")).unwrap_or_default();
        format!("{}/settings/audit{query}", head.url)
    };
    let links = Links::behind(&mut rows, PER_PAGE, before, |row| row.record.id, link);
    let frame = Frame::new(&app, &room.visitor, format!("Audit log · {}", room.repo().shown()));
    Ok(respond::page(&AuditPage { frame, head, section: "audit", rows, links }))
}
