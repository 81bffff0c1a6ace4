//! Password and sessions.

use super::{ask, unconfirmed};
use crate::App;
use crate::ask::{Question, lines};
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Member;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use crate::show::agent;
use abide_forge::accounts::change_password::{self, ChangePasswordError};
use abide_forge::accounts::sessions::{self, Session};
use abide_forge::accounts::{password, totp};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "settings/security.html")]
struct SecurityPage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    shortest: usize,
    two_factor: bool,
    sessions: Vec<Session>,
}

/// `GET /settings/security`
pub(super) async fn show(State(app): State<App>, member: Member) -> Result<Response, Problem> {
    Ok(respond::page(&page(&app, &member, Errors::none()).await?))
}

async fn page(app: &App, member: &Member, errors: Errors) -> Result<SecurityPage, Problem> {
    Ok(SecurityPage {
        frame: Frame::new(app, &member.visitor, "Security"),
        section: "security",
        errors,
        shortest: password::MIN_LEN,
        two_factor: totp::is_on(&app.forge, &member.viewer).await?,
        sessions: sessions::list(&app.forge, &member.viewer).await?,
    })
}

/// `POST /settings/security/password`
pub(super) async fn change_password(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    let (current, new) = (form.text("current_password"), form.text("password"));
    let errors = match change_password::change_password(&app.forge, &member.viewer, current, new).await {
        Ok(()) => return Ok(done("password")),
        Err(ChangePasswordError::Fault(fault)) => return Err(fault.into()),
        Err(ChangePasswordError::Confirm(error)) => unconfirmed(error)?,
        Err(ChangePasswordError::Field(error)) => Errors::of(&["password"], &error),
    };
    Ok(respond::form_again(&page(&app, &member, errors).await?))
}

/// A question about sessions.
fn question(verb: &str) -> Question {
    let (action, back) = (format!("/settings/security/sessions/{verb}"), "/settings/security".to_owned());
    Question { action, back, ..Question::default() }
}

/// `GET /settings/security/sessions/end?id=…`
pub(super) async fn ask_end(State(app): State<App>, member: Member, page_path: PagePath) -> Result<Response, Problem> {
    let id = page_path.query_text("id");
    let sessions = sessions::list(&app.forge, &member.viewer).await?;
    let session = sessions.into_iter().find(|session| session.id == id).ok_or_else(Problem::not_found)?;
    let from = session.ip.unwrap_or_else(|| "unknown IP address".to_owned());
    let question = Question {
        title: "End this session?".into(),
        about: format!("{}, {from}", agent::name(&session.agent)),
        consequences: lines(["That browser is signed out at once.", "Access tokens and SSH keys keep working."]),
        button: "End session".into(),
        hidden: vec![("id", id)],
        ..question("end")
    };
    Ok(ask(&app, &member, "security", question))
}

/// `GET /settings/security/sessions/end-others`
pub(super) async fn ask_end_others(State(app): State<App>, member: Member) -> Response {
    let question = Question {
        title: "End all other sessions?".into(),
        consequences: lines([
            "Every other browser is signed out at once. Only this one stays signed in.",
            "Access tokens and SSH keys keep working.",
        ]),
        button: "End all other sessions".into(),
        ..question("end-others")
    };
    ask(&app, &member, "security", question)
}

/// `GET /settings/security/sessions/end-all`
pub(super) async fn ask_end_all(State(app): State<App>, member: Member) -> Response {
    let question = Question {
        title: "Sign out everywhere?".into(),
        consequences: lines([
            "Every session ends, including this one. You have to sign in again.",
            "Access tokens and SSH keys keep working.",
        ]),
        button: "Sign out everywhere".into(),
        ..question("end-all")
    };
    ask(&app, &member, "security", question)
}

/// `POST /settings/security/sessions/end`
pub(super) async fn end_session(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    // A session that ended meanwhile is no error.
    sessions::end(&app.forge, &member.viewer, &form.text("id")).await?;
    Ok(done("session-ended"))
}

/// `POST /settings/security/sessions/end-others`
pub(super) async fn end_others(State(app): State<App>, member: Member, _: Form) -> Result<Response, Problem> {
    sessions::end_others(&app.forge, &member.viewer).await?;
    Ok(done("sessions-ended"))
}

/// `POST /settings/security/sessions/end-all`
pub(super) async fn end_all(State(app): State<App>, member: Member, _: Form) -> Result<Response, Problem> {
    sessions::log_out_everywhere(&app.forge, &member.viewer).await?;
    Ok(respond::see_other("/login?done=everywhere"))
}

fn done(what: &str) -> Response {
    respond::see_other(&format!("/settings/security?done={what}"))
}
