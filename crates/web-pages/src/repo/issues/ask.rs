//! Questions on the pages of issues: before a comment, a label or a milestone is deleted.

use crate::App;
use crate::ask::Question;
use crate::errors::Errors;
use crate::frame::Frame;
use crate::repo::head::{Head, Room};
use crate::respond;
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
