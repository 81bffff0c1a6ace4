//! Invitations.

use super::ask;
use crate::App;
use crate::ask::{Question, lines};
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Admin;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use abide_forge::accounts::invites::{self, Invite, InviteError};
use abide_forge::accounts::sign_up::SignUpMode;
use abide_forge::mail;
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "admin/invites.html")]
struct InvitesPage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    email: String,
    mode: &'static str,
    /// The new invitation link, and a sentence about its mail.
    link: Option<(String, String)>,
    invites: Vec<Invite>,
}

/// `GET /admin/invites`
pub(super) async fn show(State(app): State<App>, by: Admin) -> Result<Response, Problem> {
    Ok(respond::page(&page(&app, &by, Errors::none(), String::new(), None).await?))
}

async fn page(
    app: &App,
    by: &Admin,
    errors: Errors,
    email: String,
    link: Option<(String, String)>,
) -> Result<InvitesPage, Problem> {
    Ok(InvitesPage {
        frame: Frame::new(app, &by.visitor, "Invitations"),
        section: "invites",
        errors,
        email,
        mode: match app.forge.settings().signup.mode {
            SignUpMode::Invite => "Only people with an invitation can create an account.",
            SignUpMode::Open => "Anyone can create an account, with or without an invitation.",
            SignUpMode::Closed => "Sign-up is closed, so invitations cannot be used.",
        },
        link,
        invites: invites::list(&app.forge, &by.by).await?,
    })
}

/// `POST /admin/invites`
pub(super) async fn create(State(app): State<App>, by: Admin, form: Form) -> Result<Response, Problem> {
    match invites::create(&app.forge, &by.by, form.filled("email")).await {
        Ok(link) => {
            let made = Some((link, delivery(&app, form.filled("email"))));
            Ok(respond::secret(&page(&app, &by, Errors::none(), String::new(), made).await?))
        }
        Err(InviteError::Access(access)) => Err(access.into()),
        Err(error) => {
            let errors = Errors::of(&["email"], &error);
            Ok(respond::form_again(&page(&app, &by, errors, form.text("email"), None).await?))
        }
    }
}

/// How the invitation reaches the invited person.
fn delivery(app: &App, email: Option<String>) -> String {
    match (email, mail::outbox(&app.forge)) {
        (None, _) => "Pass it on yourself.".into(),
        (Some(email), None) => format!("It is also mailed to {email}."),
        (Some(email), Some(_)) => {
            format!(
                "No mail server is configured: pass it on to {email} yourself. The mail is in outbox/ of the data directory."
            )
        }
    }
}

/// `GET /admin/invites/revoke?id=…`
pub(super) async fn ask_revoke(State(app): State<App>, by: Admin, page_path: PagePath) -> Result<Response, Problem> {
    let id = page_path.id()?;
    let invites = invites::list(&app.forge, &by.by).await?;
    let invite = invites.into_iter().find(|invite| invite.id == id).ok_or_else(Problem::not_found)?;
    let question = Question {
        title: "Cancel this invitation?".into(),
        about: invite.address.unwrap_or_else(|| "Invitation by link".to_owned()),
        consequences: lines([
            "Its link stops working. No one can create an account with it.",
            "You can invite the same person again.",
        ]),
        action: "/admin/invites/revoke".into(),
        button: "Cancel invitation".into(),
        back: "/admin/invites".into(),
        hidden: vec![("id", id.to_string())],
        ..Question::default()
    };
    Ok(ask(&app, &by, "invites", question))
}

/// `POST /admin/invites/revoke`
pub(super) async fn revoke(State(app): State<App>, by: Admin, form: Form) -> Result<Response, Problem> {
    match invites::revoke(&app.forge, &by.by, form.id()?).await? {
        true => Ok(respond::see_other("/admin/invites?done=removed")),
        false => Err(Problem::not_found()),
    }
}
