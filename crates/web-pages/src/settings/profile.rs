//! Profile of an account.

use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Member;
use crate::problem::Problem;
use crate::respond;
use abide_forge::accounts::profile::{self, ProfileError, Request};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "settings/profile.html")]
struct ProfilePage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    typed: Request,
}

fn page(app: &App, member: &Member, errors: Errors, typed: Request) -> ProfilePage {
    ProfilePage { frame: Frame::new(app, &member.visitor, "Profile"), section: "profile", errors, typed }
}

/// `GET /settings/profile`
pub(super) async fn show(State(app): State<App>, member: Member) -> Response {
    let user = member.viewer.user.clone();
    let typed = Request {
        display_name: user.display_name.unwrap_or_default(),
        bio: user.bio,
        website: user.website,
        location: user.location,
    };
    respond::page(&page(&app, &member, Errors::none(), typed))
}

/// `POST /settings/profile`
pub(super) async fn save(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    let typed = Request {
        display_name: form.text("display_name"),
        bio: form.text("bio"),
        website: form.text("website"),
        location: form.text("location"),
    };
    match profile::edit(&app.forge, &member.viewer.caller, typed.clone()).await {
        Ok(()) => Ok(respond::see_other("/settings/profile?done=saved")),
        Err(ProfileError::Access(access)) => Err(access.into()),
        Err(ProfileError::Field(error)) => {
            let errors = Errors::of(&["display_name", "bio", "website", "location"], &error);
            Ok(respond::form_again(&page(&app, &member, errors, typed)))
        }
    }
}
