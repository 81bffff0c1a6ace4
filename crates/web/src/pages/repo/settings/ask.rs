//! The page that tells what will happen and asks, and the same page again if the answer cannot be taken as it is.

use crate::App;
use crate::pages::errors::Errors;
use crate::pages::frame::Frame;
use crate::pages::problem::{Problem, rule};
use crate::pages::repo::head::{Head, Room};
use crate::pages::respond;
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

/// What is asked.
#[derive(Default)]
pub(super) struct Question {
    pub title: &'static str,
    /// What will be so, line by line.
    pub consequences: Vec<String>,
    /// The last segment of the address that takes the answer.
    pub verb: &'static str,
    pub button: &'static str,
    pub fields: Vec<Field>,
    /// A field that is not typed.
    pub hidden: Option<(&'static str, &'static str)>,
}

/// What has to be typed.
pub(super) struct Field {
    pub name: &'static str,
    pub label: String,
    pub hint: &'static str,
    pub typed: String,
}

impl Field {
    /// The field in which the repository's address is typed, so that nobody does it to the wrong one.
    pub(super) fn confirmation(room: &Room) -> Self {
        let label = format!("Type {} to confirm", room.repo().slug());
        Self { name: "confirmation", label, hint: "", typed: String::new() }
    }
}

/// What is wrong with a confirmation, if something is.
pub(super) fn unconfirmed(room: &Room, typed: &str) -> Option<Errors> {
    let slug = room.repo().slug();
    (typed.trim() != slug).then(|| Errors::at("confirmation", &format!("type {slug} to confirm")))
}

/// Asks.
pub(super) async fn ask(app: &App, room: &Room, question: Question) -> Response {
    again(app, room, StatusCode::OK, question, Errors::none()).await
}

/// Asks once more, and says what was wrong.
pub(super) async fn again(app: &App, room: &Room, status: StatusCode, question: Question, errors: Errors) -> Response {
    let frame = Frame::new(app, &room.visitor, format!("{} · {}", question.title, room.repo().shown()));
    let head = room.head(app, "settings").await;
    respond::html(status, &AskPage { frame, head, section: "general", errors, question })
}

/// What a form says that was refused, and its status. What cannot be put right in the form is a page of its own.
pub(super) fn refused(error: LifeError) -> Result<(StatusCode, Errors), Problem> {
    match (error.class(), &error) {
        (Class::Invalid(Some(field)), _) => Ok((StatusCode::BAD_REQUEST, Errors::at(field, &rule(&error)))),
        (_, LifeError::NameTaken) => Ok((StatusCode::CONFLICT, Errors::at("name", &rule(&error)))),
        _ => Err(error.into()),
    }
}
