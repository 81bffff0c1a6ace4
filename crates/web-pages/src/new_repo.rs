//! Creating a repository.

use super::errors::Errors;
use super::form::Form;
use super::frame::{self, Frame};
use super::problem::Problem;
use super::respond;
use super::visitor::Visitor;
use crate::App;
use abide_core::repo::Visibility;
use abide_forge::repos::create::{self, Choice, CreateError, Init, gitignores, licences};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

#[derive(Template)]
#[template(path = "new_repo.html")]
struct NewPage {
    frame: Frame,
    errors: Errors,
    typed: Typed,
    licences: &'static [Choice],
    gitignores: &'static [Choice],
}

/// Input of the form, which is shown again after an error.
#[derive(Default)]
struct Typed {
    name: String,
    description: String,
    private: bool,
    readme: bool,
    licence: String,
    gitignore: String,
    default_branch: String,
}

/// `GET /new`
pub(super) async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let frame = Frame::new(&app, &visitor, "New repository");
    if visitor.viewer().is_none() {
        return Ok(respond::see_other(&frame.login_link()));
    }
    if visitor.user().is_some_and(|user| user.name.is_none()) {
        return Ok(respond::see_other("/settings/name?next=/new"));
    }
    let typed = Typed { default_branch: "main".into(), ..Typed::default() };
    Ok(respond::page(&page(frame, Errors::none(), typed)))
}

fn page(frame: Frame, errors: Errors, typed: Typed) -> NewPage {
    NewPage { frame, errors, typed, licences: licences(), gitignores: gitignores() }
}

/// `POST /new`
pub(super) async fn create(State(app): State<App>, visitor: Visitor, form: Form) -> Result<Response, Problem> {
    let typed = Typed {
        name: form.text("name"),
        description: form.text("description"),
        private: form.text("visibility") == "private",
        readme: form.ticked("readme"),
        licence: form.text("licence"),
        gitignore: form.text("gitignore"),
        default_branch: form.text("default_branch"),
    };
    let chosen = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let init = Init { readme: typed.readme, licence: chosen(&typed.licence), gitignore: chosen(&typed.gitignore) };
    let wants_commit = init.readme || init.licence.is_some() || init.gitignore.is_some();
    let request = create::Request {
        name: typed.name.trim().to_owned(),
        description: typed.description.clone(),
        visibility: if typed.private { Visibility::Private } else { Visibility::Public },
        default_branch: form.filled("default_branch"),
        init: wants_commit.then_some(init),
    };
    match create::create(&app.forge, &visitor.caller(), request).await {
        Ok(created) => {
            let done = frame::named(created.replaced, created.repo.name.folds(&typed.name), "");
            let notice = if done.is_empty() { String::new() } else { format!("?done={done}") };
            Ok(respond::see_other(&format!("/{}{notice}", created.repo.slug())))
        }
        Err(CreateError::Fault(fault)) => Err(fault.into()),
        Err(CreateError::TooOften { retry_after }) => Err(Problem::too_often(retry_after)),
        Err(error) => {
            let errors = Errors::of(&["name", "description", "default_branch"], &error);
            let status = match error {
                CreateError::NameTaken => StatusCode::CONFLICT,
                _ => StatusCode::BAD_REQUEST,
            };
            Ok(respond::html(status, &page(Frame::new(&app, &visitor, "New repository"), errors, typed)))
        }
    }
}
