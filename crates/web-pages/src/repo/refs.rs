//! Branches and tags.

use super::head::{Head, Room, Shown};
use super::view::CommitLine;
use crate::App;
use crate::frame::Frame;
use crate::links::Links;
use crate::path::PagePath;
use crate::respond;
use crate::show::text::{url_path, url_segment};
use crate::visitor::Visitor;
use abide_forge::browse::{AheadBehind, Branch, RefKind, Tag, address_of};
use askama::Template;
use axum::extract::State;
use percent_encoding::percent_decode_str;

#[derive(Template)]
#[template(path = "repo/refs.html")]
struct RefsPage {
    frame: Frame,
    head: Head,
    is_tags: bool,
    filter: String,
    /// View and path of the page whose branch menu was searched; rows link to them.
    view: &'static str,
    tail: String,
    rows: Vec<Row>,
    links: Links,
}

struct Row {
    name: String,
    /// Encoded for URLs.
    path: String,
    query: String,
    commit: Option<CommitLine>,
    is_default: bool,
    distance: Option<String>,
    /// Message of an annotated tag.
    message: String,
}

impl From<&Branch> for Row {
    fn from(branch: &Branch) -> Self {
        Self {
            path: url_path(address_of(RefKind::Branch, &branch.name).as_bytes()),
            query: url_segment(&address_of(RefKind::Branch, &branch.name)),
            commit: Some(CommitLine::from(&branch.commit)),
            is_default: branch.is_default,
            distance: branch.distance.map(distance),
            name: branch.name.clone(),
            message: String::new(),
        }
    }
}

impl From<&Tag> for Row {
    fn from(tag: &Tag) -> Self {
        Self {
            path: url_path(address_of(RefKind::Tag, &tag.name).as_bytes()),
            query: String::new(),
            commit: tag.commit.as_ref().map(CommitLine::from),
            is_default: false,
            distance: None,
            name: tag.name.clone(),
            message: tag.message.clone(),
        }
    }
}

const PER_PAGE: usize = 50;

/// `GET /{owner}/{repo}/branches`
pub(super) async fn branches(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let (filter, number) = (page_path.query_text("q"), page_path.page());
    let page = room.browser.branches(&filter, (number - 1) * PER_PAGE, PER_PAGE).await?;
    let rows = page.items.iter().map(Row::from).collect();
    show(&app, &room, &page_path, "branches", rows, page.total > number * PER_PAGE).await
}

/// `GET /{owner}/{repo}/tags`
pub(super) async fn tags(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let (filter, number) = (page_path.query_text("q"), page_path.page());
    let page = room.browser.newest_tags(&filter, (number - 1) * PER_PAGE, PER_PAGE).await?;
    let rows = page.items.iter().map(Row::from).collect();
    show(&app, &room, &page_path, "tags", rows, page.total > number * PER_PAGE).await
}

async fn show(app: &App, room: &Room, page_path: &PagePath, tab: &'static str, rows: Vec<Row>, more: bool) -> Shown {
    let head = room.head(app, tab).await;
    let title = if tab == "tags" { "Tags" } else { "Branches" };
    Ok(respond::page(&RefsPage {
        frame: Frame::new(app, &room.visitor, format!("{title} · {}", room.repo().shown())),
        is_tags: tab == "tags",
        filter: page_path.query_text("q"),
        view: view(&page_path.query_text("view")),
        tail: tail(&page_path.query_text("path")),
        links: Links::around(&format!("{}/{tab}", head.url), page_path, page_path.page(), more),
        rows,
        head,
    }))
}

/// View that rows link to; only views of a branch and a path are accepted.
fn view(asked: &str) -> &'static str {
    ["blob", "blame", "commits"].into_iter().find(|known| *known == asked).unwrap_or("tree")
}

/// Path after a branch in a URL. It is encoded again, so that the query cannot inject anything but a path.
fn tail(asked: &str) -> String {
    let decoded: Vec<u8> = percent_decode_str(asked).collect();
    let path = decoded.strip_prefix(b"/").unwrap_or_default();
    super::view::tail(path)
}

fn distance(distance: AheadBehind) -> String {
    let more = if distance.exact { "" } else { "+" };
    match (distance.ahead, distance.behind) {
        (0, 0) => "up to date with the default branch".into(),
        (ahead, 0) => format!("{ahead}{more} ahead"),
        (0, behind) => format!("{behind}{more} behind"),
        (ahead, behind) => format!("{ahead}{more} ahead, {behind}{more} behind"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_leads_to_a_page_of_this_repository_whatever_the_address_asks_for() {
        assert_eq!((view("blame"), view("../settings"), view("")), ("blame", "tree", "tree"));
        assert_eq!(tail("/src/a%20b%23.rs"), "/src/a%20b%23.rs");
        assert_eq!(tail("/a?b#c\"<"), format!("/{}", url_path(b"a?b#c\"<")));
        assert_eq!(tail(""), "");
    }
}
