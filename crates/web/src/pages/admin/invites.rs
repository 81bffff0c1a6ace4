//! Invitations.

use crate::App;
use crate::pages::errors::Errors;
use crate::pages::form::Form;
use crate::pages::frame::Frame;
use crate::pages::member::Admin;
use crate::pages::problem::Problem;
use crate::pages::respond;
use abide_forge::accounts::invites::{self, Invite, InviteError};
use abide_forge::accounts::sign_up::SignUpMode;
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
    /// The link that was just made.
    link: Option<String>,
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
    link: Option<String>,
) -> Result<InvitesPage, Problem> {
    Ok(InvitesPage {
        frame: Frame::new(app, &by.visitor, "Invitations"),
        section: "invites",
        errors,
        email,
        mode: match app.forge.settings().signup_mode {
            SignUpMode::Invite => "Only people with an invitation can make an account.",
            SignUpMode::Open => "Anyone can make an account, with an invitation or without.",
            SignUpMode::Closed => "Nobody can make an account now, so invitations do not help.",
        },
        link,
        invites: invites::list(&app.forge, &by.viewer).await?,
    })
}

/// `POST /admin/invites`
pub(super) async fn create(State(app): State<App>, by: Admin, form: Form) -> Result<Response, Problem> {
    match invites::create(&app.forge, &by.viewer, form.filled("email")).await {
        Ok(link) => Ok(respond::secret(&page(&app, &by, Errors::none(), String::new(), Some(link)).await?)),
        Err(InviteError::Access(access)) => Err(access.into()),
        Err(error) => {
            let errors = Errors::of(&["email"], &error);
            Ok(respond::form_again(&page(&app, &by, errors, form.text("email"), None).await?))
        }
    }
}

/// `POST /admin/invites/revoke`
pub(super) async fn revoke(State(app): State<App>, by: Admin, form: Form) -> Result<Response, Problem> {
    match invites::revoke(&app.forge, &by.viewer, form.id()?).await? {
        true => Ok(respond::see_other("/admin/invites?done=removed")),
        false => Err(Problem::not_found()),
    }
}
