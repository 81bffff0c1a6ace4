//! Choosing the name of an account that was created by a nostr key.

use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Member;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond::{self, safe_next};
use abide_forge::accounts::rename::{self, RenameError};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "settings/name.html")]
struct NamePage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    name: String,
    next: String,
}

fn page(app: &App, member: &Member, errors: Errors, name: String, next: String) -> NamePage {
    NamePage { frame: Frame::new(app, &member.visitor, "Choose a user name"), section: "account", errors, name, next }
}

/// `GET /settings/name`
pub(super) async fn show(State(app): State<App>, member: Member, page_path: PagePath) -> Response {
    let next = page_path.query_text("next");
    if member.viewer.user.name.is_some() {
        return respond::see_other(if next.is_empty() { "/settings/account" } else { safe_next(Some(&next)) });
    }
    respond::page(&page(&app, &member, Errors::none(), String::new(), safe_next(Some(&next)).to_owned()))
}

/// `POST /settings/name`
pub(super) async fn pick(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    let (name, next) = (form.text("name"), form.text("next"));
    let next = safe_next(Some(&next)).to_owned();
    match rename::pick(&app.forge, &member.viewer, &name).await {
        Ok(name) if next == "/" => Ok(respond::see_other(&format!("/{name}?done=named"))),
        Ok(_) => Ok(respond::see_other(&next)),
        Err(RenameError::Fault(fault)) => Err(fault.into()),
        Err(RenameError::Named) => Ok(respond::see_other("/settings/account")),
        Err(error) => {
            let errors = Errors::of(&["name"], &error);
            Ok(respond::form_again(&page(&app, &member, errors, name, next)))
        }
    }
}
