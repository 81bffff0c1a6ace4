//! One's name and addresses.

use super::{sudo, unconfirmed};
use crate::App;
use crate::pages::errors::Errors;
use crate::pages::form::Form;
use crate::pages::frame::Frame;
use crate::pages::member::Member;
use crate::pages::problem::Problem;
use crate::pages::respond;
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

/// What was typed, to be shown again if something is wrong with it.
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
        Ok(_) => return Ok(done("renamed")),
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
        // Confirmed meanwhile, in another window: that is what was wanted.
        Err(ResendError::Verified) => Ok(done("verified")),
        Err(ResendError::NotFound) => Err(Problem::not_found()),
        Err(ResendError::Throttled { retry_after }) => Err(Problem::too_often(retry_after)),
        Err(ResendError::Fault(fault)) => Err(fault.into()),
    }
}

fn done(what: &str) -> Response {
    respond::see_other(&format!("/settings/account?done={what}"))
}
