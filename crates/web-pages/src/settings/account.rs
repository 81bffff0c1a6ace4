//! Name and e-mail addresses of the visitor's account.

use super::{ask, sudo, unconfirmed};
use crate::App;
use crate::ask::{Question, lines};
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Member;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use abide_forge::accounts::emails::{self, Email, EmailError};
use abide_forge::accounts::rename::{self, OldName, RenameError};
use abide_forge::accounts::verify::{self, ResendError};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "settings/account.html")]
struct AccountPage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    typed: Typed,
    old_names: Vec<OldName>,
    emails: Vec<Email>,
}

/// Input of the form, which is shown again after an error.
#[derive(Default)]
struct Typed {
    name: String,
    email: String,
}

/// `GET /settings/account`
pub(super) async fn show(State(app): State<App>, member: Member) -> Result<Response, Problem> {
    Ok(respond::page(&page(&app, &member, Errors::none(), Typed::default()).await?))
}

async fn page(app: &App, member: &Member, errors: Errors, typed: Typed) -> Result<AccountPage, Problem> {
    Ok(AccountPage {
        frame: Frame::new(app, &member.visitor, "Account"),
        section: "account",
        errors,
        typed,
        old_names: rename::redirects(&app.forge, &member.viewer).await?,
        emails: emails::list(&app.forge, &member.viewer).await?,
    })
}

/// `POST /settings/account/name`
pub(super) async fn rename(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    let typed = Typed { name: form.text("name"), ..Typed::default() };
    let renamed = rename::rename(&app.forge, &member.viewer, &typed.name, form.text("current_password")).await;
    let errors = match renamed {
        Ok(name) => return Ok(done(if name.folds(&typed.name) { "user-folded" } else { "renamed" })),
        Err(RenameError::Fault(fault)) => return Err(fault.into()),
        Err(RenameError::Confirm(error)) => unconfirmed(error)?,
        Err(error) => Errors::of(&["name"], &error),
    };
    Ok(respond::form_again(&page(&app, &member, errors, typed).await?))
}

/// `POST /settings/account/emails`
pub(super) async fn add_email(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    if let Some(ask) = sudo::ask(&app, &member, &form, "account", "/settings/account/emails").await? {
        return Ok(ask);
    }
    let typed = Typed { email: form.text("email"), ..Typed::default() };
    let added = emails::add(&app.forge, &member.viewer, &typed.email).await.map(drop);
    changed(&app, &member, added, "mail-sent", typed).await
}

/// `GET /settings/account/emails/remove?id=…`
pub(super) async fn ask_remove(
    State(app): State<App>,
    member: Member,
    page_path: PagePath,
) -> Result<Response, Problem> {
    let id = page_path.id()?;
    let emails = emails::list(&app.forge, &member.viewer).await?;
    let email = emails.into_iter().find(|email| email.id == id).ok_or_else(Problem::not_found)?;
    let question = Question {
        title: "Remove this e-mail address?".into(),
        about: email.address,
        consequences: lines([
            "You can no longer sign in or reset your password with it.",
            "You can add it again; you then have to verify it again.",
        ]),
        action: "/settings/account/emails/remove".into(),
        button: "Remove address".into(),
        back: "/settings/account".into(),
        hidden: vec![("id", id.to_string())],
        ..Question::default()
    };
    Ok(ask(&app, &member, "account", question))
}

/// `POST /settings/account/emails/remove`
pub(super) async fn remove_email(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    let removed = emails::remove(&app.forge, &member.viewer, form.id()?).await;
    changed(&app, &member, removed, "removed", Typed::default()).await
}

/// `POST /settings/account/emails/primary`
pub(super) async fn make_primary(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    let made = emails::make_primary(&app.forge, &member.viewer, form.id()?).await;
    changed(&app, &member, made, "saved", Typed::default()).await
}

async fn changed(
    app: &App,
    member: &Member,
    end: Result<(), EmailError>,
    what: &str,
    typed: Typed,
) -> Result<Response, Problem> {
    match end {
        Ok(()) => Ok(done(what)),
        Err(EmailError::NotFound) => Err(Problem::not_found()),
        Err(EmailError::Throttled { retry_after }) => Err(Problem::too_often(retry_after)),
        Err(EmailError::Fault(fault)) => Err(fault.into()),
        Err(error) => {
            let errors = Errors::of(&["email"], &error);
            Ok(respond::form_again(&page(app, member, errors, typed).await?))
        }
    }
}

/// `POST /settings/account/emails/resend`
pub(super) async fn resend(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    match verify::resend(&app.forge, &member.viewer, form.id()?).await {
        Ok(()) => Ok(done("mail-sent")),
        // Verified meanwhile in another window, so there is nothing left to do.
        Err(ResendError::Verified) => Ok(done("verified")),
        Err(ResendError::NotFound) => Err(Problem::not_found()),
        Err(ResendError::Throttled { retry_after }) => Err(Problem::too_often(retry_after)),
        Err(ResendError::Fault(fault)) => Err(fault.into()),
    }
}

fn done(what: &str) -> Response {
    respond::see_other(&format!("/settings/account?done={what}"))
}
