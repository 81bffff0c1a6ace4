//! Asks for the password or the key again before keys, tokens or addresses are added, so that an unattended browser is
//! not enough. The page of the question carries the fields of the original form and sends them again.

use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Member;
use crate::problem::Problem;
use crate::respond;
use crate::sign::Sign;
use abide_forge::accounts::confirm;
use abide_forge::accounts::nostr::{self, NostrError};
use askama::Template;
use axum::response::Response;

/// Fields of the question itself, which are not carried over.
const OWN: [&str; 5] = ["_token", "current_password", "event", "challenge", "username"];

#[derive(Template)]
#[template(path = "settings/confirm.html")]
struct ConfirmPage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    action: &'static str,
    /// Fields of the original form.
    fields: Vec<(String, String)>,
    sign: Sign,
}

/// `None` if the visitor gave the password or key recently or with this form; otherwise the page that asks for it.
pub(super) async fn ask(
    app: &App,
    member: &Member,
    form: &Form,
    section: &'static str,
    action: &'static str,
) -> Result<Option<Response>, Problem> {
    if confirm::is_recent(&app.forge, &member.viewer) {
        return Ok(None);
    }
    let errors = match proved(app, member, form, action).await? {
        Proof::Right => return Ok(None),
        Proof::None => Errors::none(),
        Proof::Wrong(errors) => errors,
    };
    let page = ConfirmPage {
        frame: Frame::new(app, &member.visitor, "Confirm your identity"),
        section,
        errors,
        action,
        fields: form.fields().filter(|(name, _)| !OWN.contains(&name.as_str())).cloned().collect(),
        sign: Sign::new(app, &member.visitor, action),
    };
    Ok(Some(respond::secret(&page)))
}

enum Proof {
    None,
    Right,
    Wrong(Errors),
}

async fn proved(app: &App, member: &Member, form: &Form, action: &'static str) -> Result<Proof, Problem> {
    let password = form.text("current_password");
    if !password.is_empty() {
        return match confirm::again(&app.forge, &member.viewer, password).await {
            Ok(()) => Ok(Proof::Right),
            Err(error) => super::unconfirmed(error).map(Proof::Wrong),
        };
    }
    if form.filled("event").is_none() {
        return Ok(Proof::None);
    }
    let answer = Sign::answer(&member.visitor, form, action);
    match nostr::confirm(&app.forge, &member.viewer, &answer).await {
        Ok(()) => Ok(Proof::Right),
        Err(NostrError::Fault(fault)) => Err(fault.into()),
        Err(error) => Ok(Proof::Wrong(Errors::of(&[], &error))),
    }
}
