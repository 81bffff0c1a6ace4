//! Sign-in, sign-out, sign-up, set-up of the first admin, password reset, verification of addresses.

mod login;
pub(super) mod nostr;
mod reset;
mod setup;
mod sign_up;
mod verify;

use super::Route;
use super::problem::Problem;
use super::respond;
use super::visitor::{Cookies, Visitor};
use crate::App;
use abide_forge::accounts::sessions::{self, Cookie};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};

pub(super) fn routes() -> Vec<Route> {
    vec![
        ("/login", get(login::show).post(login::log_in)),
        ("/login/code", get(login::begin_again).post(login::second_factor)),
        (nostr::PATH, get(login::begin_again).post(nostr::log_in)),
        ("/logout", post(login::log_out)),
        ("/signup", get(sign_up::show).post(sign_up::sign_up)),
        ("/invite/{token}", get(sign_up::invited)),
        ("/setup/{token}", get(setup::show).post(setup::set_up)),
        ("/forgot", get(reset::ask).post(reset::send)),
        ("/reset/{token}", get(reset::show).post(reset::set)),
        ("/verify/{token}", get(verify::show).post(verify::confirm)),
    ]
}

/// Response after sign-in: sets a new session cookie and ends the browser's previous session.
async fn enter(app: &App, headers: &HeaderMap, cookie: Cookie, to: &str) -> Result<Response, Problem> {
    end_session(app, headers).await?;
    Ok(with_cookie(respond::see_other(to), &Cookies::of(app).new_session(app, cookie.0.expose())))
}

/// Ends the session of this browser, if it has one.
async fn end_session(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    match Visitor::session_cookie(app, headers) {
        Some(cookie) => Ok(sessions::log_out(&app.forge, &cookie).await?),
        None => Ok(()),
    }
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Error page for a used or expired link.
fn dead_link(what_to_do: &str) -> Problem {
    Problem::new(StatusCode::GONE, format!("This link was already used or has expired. {what_to_do}"))
}
