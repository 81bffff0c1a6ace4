//! Sign-in and sign-out.

use super::{end_session, enter, nostr, with_cookie};
use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond::{self, safe_next};
use crate::sign::Sign;
use crate::visitor::{Cookies, Visitor};
use abide_forge::accounts::login::{self, LoginError, Outcome, SecondFactorTicket};
use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

#[derive(Template)]
#[template(path = "accounts/login.html")]
pub(super) struct LoginPage {
    frame: Frame,
    errors: Errors,
    /// User name or e-mail address, as typed.
    login: String,
    next: String,
    sign: Sign,
}

impl LoginPage {
    pub(super) fn new(app: &App, visitor: &Visitor, errors: Errors, login: String, next: String) -> Self {
        let sign = Sign::new(app, visitor, nostr::PATH);
        Self { frame: Frame::with_forms(app, visitor, TITLE), errors, login, next, sign }
    }
}

#[derive(Template)]
#[template(path = "accounts/login_code.html")]
struct CodePage {
    frame: Frame,
    errors: Errors,
    ticket: String,
    next: String,
}

impl CodePage {
    fn new(app: &App, visitor: &Visitor, errors: Errors, ticket: String, next: String) -> Self {
        Self { frame: Frame::with_forms(app, visitor, TITLE), errors, ticket, next }
    }
}

const TITLE: &str = "Sign in";

/// `GET /login`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Response {
    let next = page_path.query("next");
    let next = safe_next(next.as_deref());
    if visitor.viewer().is_some() {
        return respond::see_other(next);
    }
    respond::page(&LoginPage::new(&app, &visitor, Errors::none(), String::new(), next.to_owned()))
}

/// `POST /login`
pub(super) async fn log_in(
    State(app): State<App>,
    visitor: Visitor,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Problem> {
    let next = safe_next(Some(&form.text("next"))).to_owned();
    let request = login::Request {
        login: form.text("login"),
        password: form.text("password").into(),
        agent: visitor.agent().to_owned(),
        ip: visitor.ip(),
    };
    match login::login(&app.forge, request).await {
        Ok(Outcome::In(cookie)) => enter(&app, &headers, cookie, &next).await,
        Ok(Outcome::SecondFactor(ticket)) => Ok(ask_code(&app, &visitor, ticket, next)),
        Err(error) => {
            let errors = refused(error)?;
            Ok(respond::form_again(&LoginPage::new(&app, &visitor, errors, form.text("login"), next)))
        }
    }
}

/// Asks for the second factor after the password was right.
pub(super) fn ask_code(app: &App, visitor: &Visitor, ticket: SecondFactorTicket, next: String) -> Response {
    respond::page(&CodePage::new(app, visitor, Errors::none(), ticket.0.into_inner(), next))
}

/// `GET /login/code`: redirects to the password form.
pub(super) async fn begin_again() -> Response {
    respond::see_other("/login")
}

/// `POST /login/code`
pub(super) async fn second_factor(
    State(app): State<App>,
    visitor: Visitor,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Problem> {
    let next = safe_next(Some(&form.text("next"))).to_owned();
    let (ticket, code) = (form.text("ticket"), form.text("code"));
    match login::second_factor(&app.forge, &ticket, &code, visitor.agent(), visitor.ip()).await {
        Ok(cookie) => enter(&app, &headers, cookie, &next).await,
        Err(error) => {
            let errors = match error {
                LoginError::Wrong => Errors::at("code", "wrong code, or the code was already used"),
                other => refused(other)?,
            };
            Ok(respond::form_again(&CodePage::new(&app, &visitor, errors, ticket, next)))
        }
    }
}

/// Form errors of a refusal; other errors get a page of their own.
fn refused(error: LoginError) -> Result<Errors, Problem> {
    match error {
        LoginError::Throttled { retry_after } => Err(Problem::too_often(retry_after)),
        LoginError::Fault(fault) => Err(fault.into()),
        error @ (LoginError::Wrong | LoginError::Suspended) => Ok(Errors::at("", &error.to_string())),
    }
}

/// `POST /logout`
pub(super) async fn log_out(State(app): State<App>, headers: HeaderMap, _: Form) -> Result<Response, Problem> {
    end_session(&app, &headers).await?;
    Ok(with_cookie(respond::see_other("/?done=logged-out"), &Cookies::of(&app).no_session()))
}
