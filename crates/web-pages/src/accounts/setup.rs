//! Set-up of the first admin, by the link that the server prints at its first start.

use super::{dead_link, enter};
use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use crate::visitor::Visitor;
use abide_forge::accounts::setup::{self, SetUpError};
use abide_forge::accounts::{login, password};
use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

#[derive(Template)]
#[template(path = "accounts/setup.html")]
struct SetUpPage {
    frame: Frame,
    errors: Errors,
    token: String,
    name: String,
    email: String,
    shortest: usize,
}

/// `GET /setup/{token}`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Result<Response, Problem> {
    if !setup::is_open(&app.forge, page_path.segment(1)).await? {
        return Err(used());
    }
    Ok(respond::page(&page(&app, &visitor, &page_path, Errors::none(), String::new(), String::new())))
}

fn used() -> Problem {
    dead_link("If this site has no account yet, restart the server to get a new link.")
}

fn page(app: &App, visitor: &Visitor, page_path: &PagePath, errors: Errors, name: String, email: String) -> SetUpPage {
    SetUpPage {
        frame: Frame::with_forms(app, visitor, "Set up this site"),
        errors,
        token: page_path.segment(1).to_owned(),
        name,
        email,
        shortest: password::MIN_LEN,
    }
}

/// `POST /setup/{token}`
pub(super) async fn set_up(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Problem> {
    let (name, email) = (form.text("name"), form.text("email"));
    let made =
        setup::set_up(&app.forge, visitor.ip(), page_path.segment(1), &name, &email, form.text("password")).await;
    match made {
        Ok(user) => {
            let cookie = login::open_session(&app.forge, user, visitor.agent(), visitor.ip()).await?;
            enter(&app, &headers, cookie, "/?done=ready").await
        }
        Err(SetUpError::Fault(fault)) => Err(fault.into()),
        Err(SetUpError::Link | SetUpError::Done) => Err(used()),
        Err(SetUpError::Field(error)) => {
            let errors = Errors::of(&["name", "email", "password"], &error);
            Ok(respond::form_again(&page(&app, &visitor, &page_path, errors, name, email)))
        }
    }
}
