//! Sign-up.

use super::enter;
use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond::{self, safe_next};
use crate::visitor::Visitor;
use abide_forge::accounts::invites;
use abide_forge::accounts::sign_up::{self, SignUpError, SignUpMode};
use abide_forge::accounts::{login, password, setup};
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

#[derive(Template)]
#[template(path = "accounts/sign_up.html")]
struct SignUpPage {
    frame: Frame,
    errors: Errors,
    typed: Typed,
    shortest: usize,
}

#[derive(Template)]
#[template(path = "accounts/sign_up_closed.html")]
struct ClosedPage {
    frame: Frame,
    why: &'static str,
}

/// Input of the form, which is shown again after an error.
#[derive(Default)]
struct Typed {
    name: String,
    email: String,
    invite: String,
    /// Page to return to after the sign-up.
    next: String,
}

const TITLE: &str = "Create an account";
const CLOSED: &str = "Sign-up is closed. Ask the site administrator for an account.";
const NO_INVITE: &str = "You need an invitation to create an account here. Ask the site administrator for one, and open \
    the link in it.";
const NOT_SET_UP: &str = "This site is not set up yet. Open the link that the server printed when it started; it creates the \
    first administrator.";
const DEAD_INVITE: &str = "This invitation was used, cancelled or has expired. Ask for a new one.";

/// `GET /signup`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Result<Response, Problem> {
    form(&app, &visitor, &page_path, page_path.query_text("invite")).await
}

/// `GET /invite/{token}`
pub(super) async fn invited(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
) -> Result<Response, Problem> {
    form(&app, &visitor, &page_path, page_path.segment(1).to_owned()).await
}

async fn form(app: &App, visitor: &Visitor, page_path: &PagePath, invite: String) -> Result<Response, Problem> {
    if visitor.viewer().is_some() {
        return Ok(respond::see_other(safe_next(page_path.query("next").as_deref())));
    }
    let next = safe_next(page_path.query("next").as_deref()).to_owned();
    let why = match app.forge.settings().signup.mode {
        SignUpMode::Open => None,
        SignUpMode::Closed => Some(CLOSED),
        SignUpMode::Invite if invite.is_empty() => Some(NO_INVITE),
        SignUpMode::Invite if invites::is_open(&app.forge, &invite).await? => None,
        SignUpMode::Invite => Some(DEAD_INVITE),
    };
    let why = match why {
        Some(_) if setup::is_needed(&app.forge).await? => Some(NOT_SET_UP),
        why => why,
    };
    Ok(match why {
        Some(why) => respond::page(&ClosedPage { frame: Frame::new(app, visitor, TITLE), why }),
        None => respond::page(&page(app, visitor, Errors::none(), Typed { invite, next, ..Typed::default() })),
    })
}

fn page(app: &App, visitor: &Visitor, errors: Errors, typed: Typed) -> SignUpPage {
    SignUpPage { frame: Frame::with_forms(app, visitor, TITLE), errors, typed, shortest: password::MIN_LEN }
}

/// `POST /signup`
pub(super) async fn sign_up(
    State(app): State<App>,
    visitor: Visitor,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Problem> {
    let typed = Typed {
        name: form.text("name"),
        email: form.text("email"),
        invite: form.text("invite"),
        next: safe_next(Some(&form.text("next"))).to_owned(),
    };
    let request = sign_up::Request {
        name: typed.name.clone(),
        email: typed.email.clone(),
        password: form.text("password").into(),
        invite: form.filled("invite").map(Into::into),
    };
    let closed =
        |why| respond::html(StatusCode::FORBIDDEN, &ClosedPage { frame: Frame::new(&app, &visitor, TITLE), why });
    match sign_up::sign_up(&app.forge, visitor.ip(), request).await {
        Ok(user) => {
            let cookie = login::open_session(&app.forge, user, visitor.agent(), visitor.ip()).await?;
            let done = if typed.invite.is_empty() { "welcome" } else { "joined" };
            let to = if typed.next == "/" { format!("/?done={done}") } else { typed.next };
            enter(&app, &headers, cookie, &to).await
        }
        Err(SignUpError::Fault(fault)) => Err(fault.into()),
        Err(SignUpError::Throttled { retry_after }) => Err(Problem::too_often(retry_after)),
        Err(SignUpError::Closed) => Ok(closed(CLOSED)),
        Err(SignUpError::Invite) => Ok(closed(if typed.invite.is_empty() { NO_INVITE } else { DEAD_INVITE })),
        Err(SignUpError::Field(error)) => {
            let errors = Errors::of(&["name", "email", "password"], &error);
            Ok(respond::form_again(&page(&app, &visitor, errors, typed)))
        }
    }
}
