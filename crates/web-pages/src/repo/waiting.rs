//! Page of an announced repository in purgatory: the missing half, and the next step.

use super::head::Elsewhere;
use super::tombstone;
use crate::App;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::respond;
use crate::show::text::{readable, shortened, shown};
use crate::visitor::Visitor;
use abide_forge::grasp::status::{self, Status, Waiting};
use abide_forge::repos::open::RepoLocator;
use abide_forge::sync::status::{self as search, Search};
use askama::Template;
use axum::http::{HeaderName, HeaderValue};

#[derive(Template)]
#[template(path = "repo/waiting.html")]
struct WaitingPage {
    frame: Frame,
    waiting: Waiting,
    search: Option<Search>,
    /// The identifier as text.
    name: String,
    owner: String,
    clone: String,
}

/// Response for a locator without a repository: the announcement in purgatory, the page of a deleted repository, or
/// 404.
pub(super) async fn or_nothing(app: &App, visitor: &Visitor, page_path: &PagePath, locator: &RepoLocator) -> Elsewhere {
    let front = page_path.reads() && page_path.segment(2).is_empty();
    if let (RepoLocator::Nostr { owner, identifier }, true) = (locator, front) {
        match status::of(&app.forge, &visitor.caller(), owner, identifier).await {
            Ok(Some(Status::Waiting(waiting))) => {
                return match search::of(&app.forge, identifier).await {
                    Ok(search) => page(app, visitor, page_path, waiting, search),
                    Err(fault) => fault.into(),
                };
            }
            Ok(_) => (),
            Err(fault) => return fault.into(),
        }
    }
    tombstone::or_nothing(app, visitor, page_path, locator).await
}

fn page(app: &App, visitor: &Visitor, page_path: &PagePath, waiting: Waiting, search: Option<Search>) -> Elsewhere {
    let name = shortened(&shown(waiting.identifier.as_bytes()), 100).into_owned();
    let owner = readable(&waiting.npub);
    let typed = page_path.segment(1);
    let clone = app.url(&format!("/{}/{}.git", waiting.npub, typed.strip_suffix(".git").unwrap_or(typed)));
    let frame = Frame::new(app, visitor, format!("{owner}/{name} is waiting for git data"));
    let mut response = respond::page(&WaitingPage { frame, waiting, search, name, owner, clone });
    let robots = HeaderName::from_static("x-robots-tag");
    response.headers_mut().insert(robots, HeaderValue::from_static("noindex"));
    Elsewhere::To(response)
}
