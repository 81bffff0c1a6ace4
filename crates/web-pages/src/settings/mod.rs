//! Settings of the visitor's account.

mod account;
pub(crate) mod delete;
mod keys;
mod name;
mod nostr;
mod notifications;
mod profile;
mod repositories;
mod security;
mod sudo;
mod tokens;
mod two_factor;

use super::Route;
use super::ask::Question;
use super::errors::Errors;
use super::frame::Frame;
use super::member::Member;
use super::problem::Problem;
use super::respond;
use crate::App;
use abide_forge::accounts::confirm::ConfirmError;
use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};

pub(super) fn routes() -> Vec<Route> {
    vec![
        ("/settings", get(front)),
        ("/settings/profile", get(profile::show).post(profile::save)),
        ("/settings/account", get(account::show)),
        ("/settings/account/name", post(account::rename)),
        ("/settings/account/emails", post(account::add_email)),
        ("/settings/account/emails/remove", get(account::ask_remove).post(account::remove_email)),
        ("/settings/account/emails/primary", post(account::make_primary)),
        ("/settings/account/emails/resend", post(account::resend)),
        ("/settings/account/delete", get(delete::ask).post(delete::delete)),
        ("/settings/name", get(name::show).post(name::pick)),
        ("/settings/nostr", get(nostr::show).post(nostr::link)),
        ("/settings/nostr/unlink", get(nostr::ask_unlink).post(nostr::unlink)),
        ("/settings/security", get(security::show)),
        ("/settings/security/password", post(security::change_password)),
        ("/settings/security/sessions/end", get(security::ask_end).post(security::end_session)),
        ("/settings/security/sessions/end-others", get(security::ask_end_others).post(security::end_others)),
        ("/settings/security/sessions/end-all", get(security::ask_end_all).post(security::end_all)),
        ("/settings/security/two-factor", get(two_factor::show).post(two_factor::begin)),
        ("/settings/security/two-factor/confirm", post(two_factor::confirm)),
        ("/settings/security/two-factor/codes", get(two_factor::ask_codes).post(two_factor::new_codes)),
        ("/settings/security/two-factor/off", get(two_factor::ask_off).post(two_factor::off)),
        ("/settings/notifications", get(notifications::show).post(notifications::save)),
        ("/settings/tokens", get(tokens::show).post(tokens::create)),
        ("/settings/tokens/revoke", get(tokens::ask_revoke).post(tokens::revoke)),
        ("/settings/keys", get(keys::show).post(keys::add)),
        ("/settings/keys/remove", get(keys::ask_remove).post(keys::remove)),
        ("/settings/repositories", get(repositories::show)),
        ("/settings/repositories/restore/{id}", post(repositories::restore)),
    ]
}

/// `GET /settings`
async fn front(_: Member) -> Response {
    respond::see_other("/settings/profile")
}

#[derive(Template)]
#[template(path = "settings/ask.html")]
struct AskPage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    question: Question,
}

/// Shows a question in a section of the settings.
fn ask(app: &App, member: &Member, section: &'static str, question: Question) -> Response {
    asked(app, member, section, question, Errors::none())
}

/// Shows the question again with its errors.
fn asked(app: &App, member: &Member, section: &'static str, question: Question, errors: Errors) -> Response {
    let status = if errors.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let frame = Frame::new(app, &member.visitor, question.title.clone());
    respond::html(status, &AskPage { frame, section, errors, question })
}

/// Form error of a wrong password; other errors get a page of their own.
fn unconfirmed(error: ConfirmError) -> Result<Errors, Problem> {
    match error {
        ConfirmError::Wrong => Ok(Errors::of(&["current_password"], &error)),
        ConfirmError::Stale => Ok(Errors::of(&[], &error)),
        ConfirmError::Throttled { retry_after } => Err(Problem::too_often(retry_after)),
        ConfirmError::Fault(fault) => Err(fault.into()),
    }
}
