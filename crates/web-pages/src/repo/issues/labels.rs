//! The labels of a repository.

use super::ask;
use crate::App;
use crate::ask::{Question, lines};
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::repo::head::{Elsewhere, Head, Room, Shown};
use crate::respond;
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_forge::issues::labels::{self, Request};
use abide_forge::issues::{IssueError, Label};
use abide_forge::repos::Page;
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/issues/labels.html")]
struct LabelsPage {
    frame: Frame,
    head: Head,
    errors: Errors,
    typed: Request,
    labels: Vec<Label>,
    can_manage: bool,
}

/// Labels on the page; the API lists more.
const SHOWN: Page = Page { limit: 500, offset: 0 };

/// `GET /{owner}/{repo}/labels`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    Ok(respond::page(&page(&app, &room, Errors::none(), Request::default()).await?))
}

/// `POST /{owner}/{repo}/labels`: creates a label, or changes the one named by `label`.
pub(super) async fn save(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let caller = room.visitor.caller();
    let request = Request {
        name: Some(form.text("name")),
        color: form.filled("color"),
        description: Some(form.text("description")),
    };
    let saved = match form.filled("label") {
        Some(label) => labels::edit(&app.forge, &caller, room.repo(), &label, request.clone()).await,
        None => labels::create(&app.forge, &caller, room.repo(), request.clone()).await,
    };
    match saved {
        Ok(_) => Ok(respond::see_other(&format!("/{}/labels?done=saved", room.repo().slug()))),
        Err(IssueError::Access(access)) => Err(access.into()),
        Err(error) => {
            let errors = Errors::of(&["name", "color", "description"], &error);
            Ok(respond::form_again(&page(&app, &room, errors, request).await?))
        }
    }
}

/// `GET /{owner}/{repo}/labels/remove?label=…`
pub(super) async fn ask(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::IssueModerate).await?;
    let label = labels::show(&app.forge, room.repo(), &page_path.query_text("label")).await?;
    let list = format!("/{}/labels", room.repo().slug());
    let question = Question {
        title: "Delete this label?".into(),
        about: label.name.to_string(),
        consequences: lines([
            "It is removed from every issue that has it. The issues stay.",
            "This cannot be undone: a new label with the same name starts with no issues.",
        ]),
        action: format!("{list}/remove"),
        button: "Delete label".into(),
        back: list,
        hidden: vec![("label", label.name.to_string())],
        ..Question::default()
    };
    Ok(ask::ask(&app, &room, question).await)
}

/// `POST /{owner}/{repo}/labels/remove`
pub(super) async fn remove(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    labels::remove(&app.forge, &room.visitor.caller(), room.repo(), &form.text("label")).await?;
    Ok(respond::see_other(&format!("/{}/labels?done=removed", room.repo().slug())))
}

async fn page(app: &App, room: &Room, errors: Errors, typed: Request) -> Result<LabelsPage, Elsewhere> {
    Ok(LabelsPage {
        frame: Frame::new(app, &room.visitor, format!("Labels · {}", room.repo().shown())),
        head: room.head(app, "issues").await,
        errors,
        typed,
        labels: labels::list(&app.forge, room.repo(), SHOWN).await?.0,
        can_manage: room.may(Action::IssueModerate),
    })
}
