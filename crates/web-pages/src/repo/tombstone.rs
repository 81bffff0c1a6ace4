//! Page of a deleted repository for its owner. Everyone else gets 404.

use super::head::Elsewhere;
use crate::App;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use crate::visitor::Visitor;
use abide_core::Timestamp;
use abide_forge::Access;
use abide_forge::repos::open::RepoLocator;
use abide_forge::repos::{Repo, restore};
use askama::Template;
use axum::http::StatusCode;

#[derive(Template)]
#[template(path = "repo/tombstone.html")]
struct TombstonePage {
    frame: Frame,
    repo: Repo,
    deleted_at: Timestamp,
    until: Timestamp,
    in_time: bool,
}

/// Response for a locator without a repository: the page of the visitor's own deleted repository, or 404.
pub(super) async fn or_nothing(app: &App, visitor: &Visitor, page_path: &PagePath, locator: &RepoLocator) -> Elsewhere {
    let repo = match restore::tombstone(&app.forge, &visitor.caller(), locator).await {
        Ok(found) => found,
        Err(fault) => return fault.into(),
    };
    let dates = repo.as_ref().and_then(|repo| Some((repo.deleted_at?, restore::until(&app.forge, repo)?)));
    let (Some(repo), Some((deleted_at, until))) = (repo, dates) else { return Problem::from(Access::NotFound).into() };
    let frame = Frame::new(app, visitor, format!("{} is deleted", repo.shown()));
    let in_time = frame.now.0 < until;
    // 410 for reading, 409 for an action on a deleted repository.
    let status = if page_path.reads() { StatusCode::GONE } else { StatusCode::CONFLICT };
    Elsewhere::To(respond::html(status, &TombstonePage { frame, repo, deleted_at, until, in_time }))
}
