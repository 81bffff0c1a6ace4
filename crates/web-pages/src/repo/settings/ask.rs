//! Confirmation pages among a repository's settings, shown again with errors if the form is refused.

use crate::App;
use crate::ask::{Field, Question};
use crate::errors::Errors;
use crate::frame::Frame;
use crate::problem::Problem;
use crate::repo::head::{Head, Room};
use crate::respond;
use abide_forge::repos::{Class, LifeError};
use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

#[derive(Template)]
#[template(path = "repo/settings/ask.html")]
struct AskPage {
    frame: Frame,
    head: Head,
    section: &'static str,
    errors: Errors,
    question: Question,
}

/// A question whose form goes to `settings/{verb}`, and which returns to the general settings.
pub(super) fn at(room: &Room, verb: &str) -> Question {
    let slug = room.repo().slug();
    Question { action: format!("/{slug}/settings/{verb}"), back: format!("/{slug}/settings"), ..Question::default() }
}

/// The field for the repository's full name, which protects against acting on the wrong one.
pub(super) fn confirmation(room: &Room) -> Field {
    let label = format!("Type {} to confirm", room.repo().slug());
    Field { name: "confirmation", label, hint: "", typed: String::new() }
}

/// The error of a confirmation that is not the repository's full name.
pub(super) fn unconfirmed(room: &Room, typed: &str) -> Option<Errors> {
    let slug = room.repo().slug();
    (typed.trim() != slug).then(|| Errors::at("confirmation", &format!("type {slug} to confirm")))
}

/// Shows the question among the general settings.
pub(super) async fn ask(app: &App, room: &Room, question: Question) -> Response {
    again(app, room, StatusCode::OK, question, Errors::none()).await
}

/// Shows the question in another section of the settings.
pub(super) async fn ask_in(app: &App, room: &Room, section: &'static str, question: Question) -> Response {
    page(app, room, section, StatusCode::OK, question, Errors::none()).await
}

/// Shows the question again with its errors.
pub(super) async fn again(app: &App, room: &Room, status: StatusCode, question: Question, errors: Errors) -> Response {
    page(app, room, "general", status, question, errors).await
}

async fn page(
    app: &App,
    room: &Room,
    section: &'static str,
    status: StatusCode,
    question: Question,
    errors: Errors,
) -> Response {
    let frame = Frame::new(app, &room.visitor, format!("{} · {}", question.title, room.repo().shown()));
    let head = room.head(app, "settings").await;
    respond::html(status, &AskPage { frame, head, section, errors, question })
}

/// Errors of a refused form, and its status. An error that the form cannot correct gets a page of its own.
pub(super) fn refused(error: LifeError) -> Result<(StatusCode, Errors), Problem> {
    match (error.class(), &error) {
        (Class::Invalid(Some(field)), _) => Ok((StatusCode::BAD_REQUEST, Errors::at(field, &error.to_string()))),
        (_, LifeError::NameTaken) => Ok((StatusCode::CONFLICT, Errors::at("name", &error.to_string()))),
        _ => Err(error.into()),
    }
}
