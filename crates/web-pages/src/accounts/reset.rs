//! Password reset. The response to a request is the same for known and unknown addresses.

use super::dead_link;
use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use crate::visitor::Visitor;
use abide_forge::accounts::password;
use abide_forge::accounts::reset::{self, ResetError};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "accounts/forgot.html")]
struct ForgotPage {
    frame: Frame,
    errors: Errors,
    email: String,
}

#[derive(Template)]
#[template(path = "accounts/reset.html")]
struct ResetPage {
    frame: Frame,
    errors: Errors,
    token: String,
    shortest: usize,
}

const ASK_TITLE: &str = "Reset your password";

/// `GET /forgot`
pub(super) async fn ask(State(app): State<App>, visitor: Visitor) -> Response {
    let frame = Frame::with_forms(&app, &visitor, ASK_TITLE);
    respond::page(&ForgotPage { frame, errors: Errors::none(), email: String::new() })
}

/// `POST /forgot`
pub(super) async fn send(State(app): State<App>, visitor: Visitor, form: Form) -> Result<Response, Problem> {
    let email = form.text("email");
    match reset::ask(&app.forge, visitor.ip(), &email).await {
        Ok(()) => Ok(respond::see_other("/forgot?done=reset-asked")),
        Err(error) => {
            let errors = refused(error)?;
            let frame = Frame::with_forms(&app, &visitor, ASK_TITLE);
            Ok(respond::form_again(&ForgotPage { frame, errors, email }))
        }
    }
}

/// `GET /reset/{token}`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Result<Response, Problem> {
    if !reset::is_open(&app.forge, page_path.segment(1)).await? {
        return Err(used());
    }
    Ok(respond::page(&page(&app, &visitor, &page_path, Errors::none())))
}

fn used() -> Problem {
    dead_link("Request a new one with “Forgot password?” on the sign-in page.")
}

fn page(app: &App, visitor: &Visitor, page_path: &PagePath, errors: Errors) -> ResetPage {
    let frame = Frame::with_forms(app, visitor, "Set a new password");
    ResetPage { frame, errors, token: page_path.segment(1).to_owned(), shortest: password::MIN_LEN }
}

/// `POST /reset/{token}`
pub(super) async fn set(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
    form: Form,
) -> Result<Response, Problem> {
    match reset::set(&app.forge, visitor.ip(), page_path.segment(1), form.text("password")).await {
        Ok(()) => Ok(respond::see_other("/login?done=new-password")),
        Err(error) => Ok(respond::form_again(&page(&app, &visitor, &page_path, refused(error)?))),
    }
}

/// Form errors of a refusal; other errors get a page of their own.
fn refused(error: ResetError) -> Result<Errors, Problem> {
    match error {
        ResetError::Field(error) => Ok(Errors::of(&["email", "password"], &error)),
        ResetError::Link => Err(used()),
        ResetError::Throttled { retry_after } => Err(Problem::too_often(retry_after)),
        ResetError::Fault(fault) => Err(fault.into()),
    }
}
