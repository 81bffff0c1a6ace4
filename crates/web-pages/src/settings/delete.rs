//! Deleting one's account: a page that lists the consequences and asks for name and password.

use super::unconfirmed;
use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Member;
use crate::problem::Problem;
use crate::respond;
use crate::show::time;
use abide_forge::accounts::delete::{self, DeleteError, Remains};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "settings/delete.html")]
struct DeletePage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    typed: String,
    removed: bool,
    grace: String,
}

/// `GET /settings/account/delete`
pub(super) async fn ask(State(app): State<App>, member: Member) -> Response {
    respond::page(&page(&app, &member, Errors::none(), String::new(), false))
}

fn page(app: &App, member: &Member, errors: Errors, typed: String, removed: bool) -> DeletePage {
    let grace = time::days(app.forge.settings().lifecycle.grace);
    let frame = Frame::new(app, &member.visitor, "Delete your account");
    DeletePage { frame, section: "account", errors, typed, removed, grace }
}

/// `POST /settings/account/delete`
pub(super) async fn delete(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    let (typed, remains) = (form.text("name"), remains(&form));
    let password = form.text("current_password");
    let errors = match delete::delete_own(&app.forge, &member.viewer, &typed, password, remains).await {
        Ok(()) => return Ok(respond::see_other("/login?done=account-deleted")),
        Err(DeleteError::Access(access)) => return Err(access.into()),
        Err(DeleteError::Confirm(error)) => unconfirmed(error)?,
        Err(error) => Errors::of(&["name"], &error),
    };
    Ok(respond::form_again(&page(&app, &member, errors, typed, remains == Remains::Removed)))
}

/// The form's choice about the account's content, which is kept by default.
pub(crate) fn remains(form: &Form) -> Remains {
    form.text("content").parse().unwrap_or(Remains::Kept)
}
