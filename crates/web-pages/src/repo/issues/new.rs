//! Opening an issue.

use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::repo::head::{Head, Room, Shown};
use crate::respond;
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_forge::issues::{IssueError, create};
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/issues/form.html")]
pub(super) struct FormPage {
    pub frame: Frame,
    pub head: Head,
    pub errors: Errors,
    pub heading: String,
    pub action: String,
    pub back: String,
    /// Title; `None` for a comment.
    pub title: Option<String>,
    pub body: String,
    pub button: &'static str,
}

/// `GET /{owner}/{repo}/issues/new`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    room.ensure(&app, Action::IssueCreate).await?;
    let (title, body) = (page_path.query_text("title"), page_path.query_text("body"));
    Ok(respond::page(&page(&app, &room, Errors::none(), title, body).await))
}

/// `POST /{owner}/{repo}/issues/new`
pub(super) async fn open(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let (title, body) = (form.text("title"), form.text("body"));
    let request = create::Request { title: title.clone(), body: body.clone(), ..create::Request::default() };
    match create::create(&app.forge, &room.visitor.caller(), room.repo(), request).await {
        Ok(issue) => Ok(respond::see_other(&format!("/{}/issues/{}", room.repo().slug(), issue.number))),
        Err(IssueError::Access(access)) => Err(access.into()),
        Err(error @ IssueError::TooOften(_)) => Err(error.into()),
        Err(error) => {
            let errors = Errors::of(&["title", "body"], &error);
            Ok(respond::form_again(&page(&app, &room, errors, title, body).await))
        }
    }
}

async fn page(app: &App, room: &Room, errors: Errors, title: String, body: String) -> FormPage {
    let head = room.head(app, "issues").await;
    FormPage {
        frame: Frame::new(app, &room.visitor, format!("New issue · {}", room.repo().shown())),
        errors,
        heading: "New issue".into(),
        action: format!("{}/issues/new", head.url),
        back: format!("{}/issues", head.url),
        title: Some(title),
        body,
        button: "Open issue",
        head,
    }
}
