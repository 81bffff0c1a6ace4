//! Access tokens. A secret is shown once, on the page that responds to the form, and is never part of a URL.

use super::{ask, sudo};
use crate::App;
use crate::ask::{Question, lines};
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Member;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use abide_core::scope::{Scope, Scopes};
use abide_forge::accounts::add_token::{self, AddTokenError};
use abide_forge::accounts::{Token, tokens};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::time::Duration;

#[derive(Template)]
#[template(path = "settings/tokens.html")]
struct TokensPage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    typed: Typed,
    lifetimes: [(&'static str, &'static str); 5],
    scopes: Vec<Choice>,
    /// The secret of the new token.
    secret: Option<String>,
    tokens: Vec<Token>,
}

/// A scope that a token may have.
struct Choice {
    name: &'static str,
    about: &'static str,
    ticked: bool,
}

/// Permissions of each scope. Scopes without a use yet are not offered.
const SCOPES: [(Scope, &str); 9] = [
    (Scope::RepoRead, "Read all repositories you can read, including private ones: clone, fetch, API."),
    (Scope::Repo, "Full access to your repositories: push, create, change, delete."),
    (Scope::UserRead, "Read your account: profile, e-mail addresses, follows."),
    (Scope::User, "Read and change your account: profile, follows."),
    (Scope::KeysRead, "Read your SSH keys."),
    (Scope::Keys, "Add and remove SSH keys. An SSH key gives access to everything you can read and push to."),
    (Scope::Notifications, "Read and manage notifications. For private repositories, also needs repo:read."),
    (
        Scope::Hooks,
        "Manage webhooks of repositories you administer. For private repositories, and to read deliveries, also needs \
         repo:read.",
    ),
    (Scope::Admin, "Use site administration."),
];

/// Days and label of each lifetime. Empty: no expiration.
const LIFETIMES: [(&str, &str); 5] =
    [("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "1 year"), ("", "Never")];
const USUAL: &str = "90";

/// Input of the form, which is shown again after an error.
struct Typed {
    label: String,
    expires: String,
    scopes: Vec<String>,
}

impl Typed {
    fn nothing() -> Self {
        Self { label: String::new(), expires: USUAL.to_owned(), scopes: Vec::new() }
    }
}

/// `GET /settings/tokens`
pub(super) async fn show(State(app): State<App>, member: Member) -> Result<Response, Problem> {
    Ok(respond::page(&page(&app, &member, Errors::none(), Typed::nothing(), None).await?))
}

async fn page(
    app: &App,
    member: &Member,
    errors: Errors,
    typed: Typed,
    secret: Option<String>,
) -> Result<TokensPage, Problem> {
    let user = &member.viewer.user;
    let offered = SCOPES.into_iter().filter(|(scope, _)| *scope != Scope::Admin || user.site_admin);
    let mut tokens = tokens::list(&app.forge, user.id).await?;
    tokens.retain(|token| token.revoked_at.is_none());
    tokens.reverse();
    Ok(TokensPage {
        frame: Frame::new(app, &member.visitor, "Access tokens"),
        section: "tokens",
        errors,
        lifetimes: LIFETIMES,
        scopes: offered
            .map(|(scope, about)| Choice {
                name: scope.as_str(),
                about,
                ticked: typed.scopes.iter().any(|ticked| ticked == scope.as_str()),
            })
            .collect(),
        typed,
        secret,
        tokens,
    })
}

/// `POST /settings/tokens`
pub(super) async fn create(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    if let Some(ask) = sudo::ask(&app, &member, &form, "tokens", "/settings/tokens").await? {
        return Ok(ask);
    }
    let typed = Typed {
        label: form.text("label"),
        expires: form.text("expires"),
        scopes: form.all("scope").map(str::to_owned).collect(),
    };
    match add(&app, &member, &typed).await? {
        Ok(secret) => Ok(respond::secret(&page(&app, &member, Errors::none(), Typed::nothing(), Some(secret)).await?)),
        Err(errors) => Ok(respond::form_again(&page(&app, &member, errors, typed, None).await?)),
    }
}

/// Creates the token, or returns the errors of the form.
async fn add(app: &App, member: &Member, typed: &Typed) -> Result<Result<String, Errors>, Problem> {
    let Ok(scopes) = Scopes::parse(&typed.scopes.join(",")) else {
        return Ok(Err(Errors::at("scope", "select at least one scope")));
    };
    let expires_at = match typed.expires.as_str() {
        "" => None,
        days => match LIFETIMES.iter().find(|(choice, _)| *choice == days).and_then(|_| days.parse::<u64>().ok()) {
            Some(days) => Some(app.forge.clock().now().plus(Duration::from_secs(days * 86_400))),
            None => return Ok(Err(Errors::at("expires", "select an expiration from the list"))),
        },
    };
    let user = member.viewer.user.id;
    match add_token::add_token(&app.forge, &member.viewer.caller, user, &typed.label, scopes, expires_at).await {
        Ok(secret) => Ok(Ok(secret)),
        Err(AddTokenError::Fault(fault)) => Err(fault.into()),
        Err(AddTokenError::TooOften { retry_after }) => Err(Problem::too_often(retry_after)),
        Err(error) => Ok(Err(Errors::of(&["label", "expires"], &error))),
    }
}

/// `GET /settings/tokens/revoke?id=…`
pub(super) async fn ask_revoke(
    State(app): State<App>,
    member: Member,
    page_path: PagePath,
) -> Result<Response, Problem> {
    let id = page_path.id()?;
    let tokens = tokens::list(&app.forge, member.viewer.user.id).await?;
    let token = tokens.into_iter().find(|token| token.id == id && token.revoked_at.is_none());
    let token = token.ok_or_else(Problem::not_found)?;
    let question = Question {
        title: "Revoke this access token?".into(),
        about: token.label,
        consequences: lines([
            "Everything that uses it stops working at once: git over HTTP, the API, scripts.",
            "A revoked token cannot be restored. Create a new one if you need it again.",
        ]),
        action: "/settings/tokens/revoke".into(),
        button: "Revoke token".into(),
        back: "/settings/tokens".into(),
        hidden: vec![("id", id.to_string())],
        ..Question::default()
    };
    Ok(ask(&app, &member, "tokens", question))
}

/// `POST /settings/tokens/revoke`
pub(super) async fn revoke(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    match tokens::revoke(&app.forge, &member.viewer.caller, member.viewer.user.id, form.id()?).await? {
        true => Ok(respond::see_other("/settings/tokens?done=revoked")),
        false => Err(Problem::not_found()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_web_api::api_routes;

    #[test]
    fn every_scope_that_opens_something_can_be_chosen() {
        for route in api_routes() {
            for needed in route.access.scopes() {
                assert!(SCOPES.iter().any(|(scope, _)| *scope == needed), "{route:?} needs {needed}");
            }
        }
    }
}
