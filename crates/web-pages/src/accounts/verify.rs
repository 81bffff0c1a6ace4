//! Verification of an e-mail address. Programs follow links in mails, so only the button of the page verifies.

use super::dead_link;
use crate::App;
use crate::form::Form;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use crate::visitor::Visitor;
use abide_forge::accounts::verify;
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "accounts/verify.html")]
struct VerifyPage {
    frame: Frame,
    token: String,
}

fn used() -> Problem {
    dead_link("If the address is not verified yet, resend the mail in your account settings.")
}

/// `GET /verify/{token}`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Result<Response, Problem> {
    if !verify::is_open(&app.forge, page_path.segment(1)).await? {
        return Err(used());
    }
    let frame = Frame::with_forms(&app, &visitor, "Verify your e-mail address");
    Ok(respond::page(&VerifyPage { frame, token: page_path.segment(1).to_owned() }))
}

/// `POST /verify/{token}`
pub(super) async fn confirm(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
    _: Form,
) -> Result<Response, Problem> {
    if !verify::confirm(&app.forge, page_path.segment(1)).await? {
        return Err(used());
    }
    let to = if visitor.viewer().is_some() { "/settings/account" } else { "/login" };
    Ok(respond::see_other(&format!("{to}?done=verified")))
}
