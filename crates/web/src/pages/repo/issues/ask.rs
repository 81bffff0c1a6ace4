//! Questions on the pages of issues: before a comment, a label or a milestone is deleted.

use crate::App;
use crate::pages::ask::Question;
use crate::pages::errors::Errors;
use crate::pages::frame::Frame;
use crate::pages::repo::head::{Head, Room};
use crate::pages::respond;
use askama::Template;
use axum::response::Response;

#[derive(Template)]
#[template(path = "repo/issues/ask.html")]
struct AskPage {
    frame: Frame,
    head: Head,
    errors: Errors,
    question: Question,
}

pub(super) async fn ask(app: &App, room: &Room, question: Question) -> Response {
    let frame = Frame::new(app, &room.visitor, format!("{} · {}", question.title, room.repo().shown()));
    let head = room.head(app, "issues").await;
    respond::page(&AskPage { frame, head, errors: Errors::none(), question })
}
