//! Forking a repository.

use super::head::{Head, Room, Shown};
use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::{self, Frame};
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_forge::repos::fork::{self, ForkError, Request};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;

#[derive(Template)]
#[template(path = "repo/fork.html")]
struct ForkPage {
    frame: Frame,
    head: Head,
    errors: Errors,
    typed: String,
}

/// `GET /{owner}/{repo}/fork`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    room.ensure(&app, Action::ForkCreate).await?;
    let typed = room.repo().name.to_string();
    Ok(respond::page(&page(&app, &room, Errors::none(), typed).await))
}

/// `POST /{owner}/{repo}/fork`
pub(super) async fn fork(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let typed = form.text("name").trim().to_owned();
    let only = form.ticked("default_branch_only");
    let request = Request { name: Some(typed.clone()), default_branch_only: only };
    match fork::fork(&app.forge, &room.visitor.caller(), room.repo(), request).await {
        Ok(forked) => {
            let done = frame::named(forked.replaced, forked.repo.name.folds(&typed), "forked");
            Ok(respond::see_other(&format!("/{}?done={done}", forked.repo.slug())))
        }
        Err(ForkError::Access(access)) => Err(access.into()),
        Err(ForkError::TooOften { retry_after }) => Err(Problem::too_often(retry_after).into()),
        Err(error) => {
            let errors = Errors::of(&["name"], &error);
            let errors = if errors.has("") { Errors::at("name", &error.to_string()) } else { errors };
            let status = match error {
                ForkError::NameTaken => StatusCode::CONFLICT,
                _ => StatusCode::BAD_REQUEST,
            };
            Ok(respond::html(status, &page(&app, &room, errors, typed).await))
        }
    }
}

async fn page(app: &App, room: &Room, errors: Errors, typed: String) -> ForkPage {
    let frame = Frame::new(app, &room.visitor, format!("Fork {}", room.repo().shown()));
    ForkPage { frame, head: room.head(app, "code").await, errors, typed }
}
