//! The nostr key of one's account.

use super::{ask, asked, unconfirmed};
use crate::App;
use crate::ask::{Question, lines};
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Member;
use crate::problem::{Problem, sentence};
use crate::respond;
use crate::sign::Sign;
use abide_forge::accounts::nostr::{self, NostrError};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

const PATH: &str = "/settings/nostr";

#[derive(Template)]
#[template(path = "settings/nostr.html")]
struct NostrPage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    npub: Option<String>,
    /// `name@host`, by which others find the key.
    nip05: Option<String>,
    sign: Sign,
}

fn page(app: &App, member: &Member, errors: Errors) -> NostrPage {
    let user = &member.viewer.user;
    let host = app.forge.settings().public_url.split_once("://").map_or("", |(_, host)| host);
    NostrPage {
        frame: Frame::new(app, &member.visitor, "Nostr"),
        section: "nostr",
        errors,
        npub: user.npub.clone(),
        nip05: user.name.as_ref().filter(|_| user.npub.is_some()).map(|name| format!("{name}@{host}")),
        sign: Sign::new(app, &member.visitor, PATH),
    }
}

/// `GET /settings/nostr`
pub(super) async fn show(State(app): State<App>, member: Member) -> Response {
    respond::page(&page(&app, &member, Errors::none()))
}

/// `POST /settings/nostr`
pub(super) async fn link(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    let answer = Sign::answer(&member.visitor, &form, PATH);
    let linked = nostr::link(&app.forge, &member.viewer, &answer, form.text("current_password")).await;
    changed(&app, &member, linked, "key-linked")
}

/// `GET /settings/nostr/unlink`
pub(super) async fn ask_unlink(State(app): State<App>, member: Member) -> Response {
    match &member.viewer.user.npub {
        Some(npub) => ask(&app, &member, "nostr", question(npub)),
        None => respond::see_other(PATH),
    }
}

fn question(npub: &str) -> Question {
    Question {
        title: "Unlink this nostr key?".into(),
        about: npub.to_owned(),
        consequences: lines([
            "You can no longer sign in with the key, only with your password.",
            "Repositories that you announce with the key from now on will not belong to this account.",
            "Links with the key no longer redirect to your profile. You can link the key again.",
        ]),
        action: format!("{PATH}/unlink"),
        button: "Unlink key".into(),
        back: PATH.into(),
        password: true,
        ..Question::default()
    }
}

/// `POST /settings/nostr/unlink`
pub(super) async fn unlink(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    let unlinked = nostr::unlink(&app.forge, &member.viewer, form.text("current_password")).await;
    match (unlinked, &member.viewer.user.npub) {
        (Err(NostrError::Confirm(error)), Some(npub)) => {
            Ok(asked(&app, &member, "nostr", question(npub), unconfirmed(error)?))
        }
        (unlinked, _) => changed(&app, &member, unlinked, "key-unlinked"),
    }
}

fn changed(app: &App, member: &Member, end: Result<(), NostrError>, what: &str) -> Result<Response, Problem> {
    let errors = match end {
        Ok(()) => return Ok(respond::see_other(&format!("{PATH}?done={what}"))),
        Err(NostrError::Fault(fault)) => return Err(fault.into()),
        Err(error @ (NostrError::KeyTaken | NostrError::HasKey | NostrError::Unlink(_))) => {
            return Err(Problem::new(StatusCode::CONFLICT, sentence(&error.to_string())));
        }
        Err(NostrError::Confirm(error)) => unconfirmed(error)?,
        Err(error) => Errors::of(&[], &error),
    };
    Ok(respond::form_again(&page(app, member, errors)))
}
