//! Forms that a nostr key signs: the event to sign, and the signed event.

use super::form::Form;
use super::visitor::Visitor;
use crate::App;
use abide_forge::accounts::nostr::{self, Answer};

/// Event that a form asks a key to sign.
pub(crate) struct Sign {
    /// URL of the form, which the signature contains.
    pub url: String,
    pub challenge: String,
}

impl Sign {
    /// For a form that is sent to a path.
    pub(crate) fn new(app: &App, visitor: &Visitor, path: &'static str) -> Self {
        Self { url: app.url(path), challenge: nostr::challenge(&app.forge, visitor.bound()) }
    }

    /// Signed event of a submitted form.
    pub(crate) fn answer(visitor: &Visitor, form: &Form, path: &'static str) -> Answer {
        Answer { event: form.text("event"), challenge: form.text("challenge"), bound: visitor.bound().to_owned(), path }
    }
}
