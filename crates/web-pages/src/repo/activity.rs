//! Events of a repository.

use super::head::{Head, Room, Shown};
use crate::App;
use crate::feed;
use crate::frame::Frame;
use crate::links::Links;
use crate::path::PagePath;
use crate::respond;
use crate::show::sentence::Sentence;
use crate::visitor::Visitor;
use abide_forge::feeds::Feed;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, header};

#[derive(Template)]
#[template(path = "repo/activity.html")]
struct ActivityPage {
    frame: Frame,
    head: Head,
    sentences: Vec<Sentence>,
    links: Links,
}

/// `GET /{owner}/{repo}/activity`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let path = format!("/{}/activity", room.repo().slug());
    let feed = Feed::Repo(room.repo().id);
    let (sentences, links) = feed::page(&app, &room.visitor.caller(), feed, &path, &page_path).await?;
    let frame = Frame::new(&app, &room.visitor, format!("Activity · {}", room.repo().shown()));
    Ok(respond::page(&ActivityPage { frame, head: room.head(&app, "activity").await, sentences, links }))
}

/// `GET /{owner}/{repo}/activity.atom`
pub(super) async fn atom(State(app): State<App>, visitor: Visitor, page_path: PagePath, headers: HeaderMap) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let slug = room.repo().slug();
    let at = (format!("/{slug}/activity"), format!("/{slug}/activity.atom"));
    let (title, known) = (format!("Activity in {slug}"), headers.get(header::IF_NONE_MATCH));
    let feed = Feed::Repo(room.repo().id);
    Ok(feed::atom(&app, &room.visitor.caller(), feed, title, (&at.0, &at.1), known).await?)
}
