//! Sign-in with a nostr key.

use super::enter;
use super::login::{LoginPage, ask_code};
use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::problem::Problem;
use crate::respond::{self, safe_next};
use crate::sign::Sign;
use crate::visitor::Visitor;
use abide_forge::accounts::login::Outcome;
use abide_forge::accounts::nostr::{self, NostrError};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

/// Path of the form.
pub(crate) const PATH: &str = "/login/nostr";

/// `POST /login/nostr`
pub(super) async fn log_in(
    State(app): State<App>,
    visitor: Visitor,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Problem> {
    let next = safe_next(Some(&form.text("next"))).to_owned();
    let answer = Sign::answer(&visitor, &form, PATH);
    let error = match nostr::login(&app.forge, &answer, visitor.agent(), visitor.ip()).await {
        Ok(Outcome::In(cookie)) => return enter(&app, &headers, cookie, &named(&next)).await,
        Ok(Outcome::SecondFactor(ticket)) => return Ok(ask_code(&app, &visitor, ticket, next)),
        Err(NostrError::Throttled { retry_after }) => return Err(Problem::too_often(retry_after)),
        Err(NostrError::Fault(fault)) => return Err(fault.into()),
        Err(error) => error,
    };
    let status = match error {
        NostrError::Closed | NostrError::NeedsInvite | NostrError::Suspended => StatusCode::FORBIDDEN,
        _ => StatusCode::BAD_REQUEST,
    };
    let page = LoginPage::new(&app, &visitor, Errors::of(&[], &error), String::new(), next);
    Ok(respond::html(status, &page))
}

/// Redirects through the page for choosing a name, which accounts with a name skip.
fn named(next: &str) -> String {
    let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
    format!("/settings/name?next={next}")
}
