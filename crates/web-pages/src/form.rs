//! Forms. The extractor checks the CSRF token, so no handler can omit the check.

use super::accounts::nostr;
use super::problem::Problem;
use super::visitor;
use crate::App;
use abide_forge::disk::{self, Writer};
use axum::extract::{FromRequest, Request};
use http_body_util::LengthLimitError;
use std::error::Error as _;
use std::time::Duration;

/// Name of the field with the CSRF token.
pub(crate) const TOKEN_FIELD: &str = "_token";

/// Largest form of a visitor who is signed in: keys, descriptions and the like.
const LARGEST: usize = 256 * 1024;

/// Largest form of anyone else: names, passwords, signed proofs. Bodies are in memory while they arrive, one for each
/// connection.
const LARGEST_OF_STRANGERS: usize = 16 * 1024;

/// Time to receive a form.
const LONGEST: Duration = Duration::from_secs(30);

/// The fields of a submitted form.
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// A field as typed; empty if it is not there.
    pub(crate) fn text(&self, name: &str) -> String {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()).unwrap_or_default()
    }

    /// A field without white space around it; `None` if nothing is left.
    pub(crate) fn filled(&self, name: &str) -> Option<String> {
        let text = self.text(name).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Id of the row that the form is about; 404 if it is not a number.
    pub(crate) fn id(&self) -> Result<i64, Problem> {
        self.text("id").parse().map_err(|_| Problem::not_found())
    }

    /// All fields with their values, in order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.iter()
    }

    /// Whether a box was ticked.
    pub(crate) fn ticked(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// All values of a repeated field.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Last path segments of forms that free space, delete or revoke, or sign in someone who does.
const WORK_ON_A_FULL_DISK: [&str; 19] = [
    "login",
    "code",
    "logout",
    "remove",
    "delete",
    "revoke",
    "end",
    "end-others",
    "end-all",
    "unlink",
    "off",
    "release",
    "suspend",
    "take-admin",
    "decline",
    "cancel",
    "archive",
    "read",
    "done",
];

fn works_on_a_full_disk(path: &str) -> bool {
    // Sign-in is served too; new accounts for keys and sign-ups without an invitation are refused later.
    path == nostr::PATH || path.rsplit('/').next().is_some_and(|last| WORK_ON_A_FULL_DISK.contains(&last))
}

/// Error for a form that could not be read.
fn unread(error: &axum::Error) -> Problem {
    match error.source().is_some_and(|cause| cause.is::<LengthLimitError>()) {
        true => Problem::form_too_large(),
        false => Problem::form_too_slow(),
    }
}

impl FromRequest<App> for Form {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let visitor = visitor::found(request.extensions()).ok_or_else(Problem::foreign_form)?;
        let path = request.uri().path();
        if !works_on_a_full_disk(path) {
            disk::ensure_room(&app.forge, Writer::Account)?;
        }
        let largest = if visitor.user().is_some() { LARGEST } else { LARGEST_OF_STRANGERS };
        let body = tokio::time::timeout(LONGEST, axum::body::to_bytes(request.into_body(), largest)).await;
        let body = body.map_err(|_| Problem::form_too_slow())?.map_err(|error| unread(&error))?;
        let form = Self(form_urlencoded::parse(&body).into_owned().collect());
        if visitor.owns_form(app, &form.text(TOKEN_FIELD)) { Ok(form) } else { Err(Problem::foreign_form()) }
    }
}
