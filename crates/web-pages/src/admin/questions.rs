//! Confirmations of actions on an account.

use super::ask;
use super::users::target;
use crate::App;
use crate::ask::{Question, lines};
use crate::member::Admin;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::show::text;
use abide_core::UserName;
use abide_forge::accounts::{self, User, admin};
use axum::extract::State;
use axum::response::Response;

/// The account in the path, and its name on the page.
async fn account(app: &App, page_path: &PagePath) -> Result<(User, String), Problem> {
    let user = accounts::by_id(&app.forge, target(page_path)?).await?.ok_or_else(Problem::not_found)?;
    let name = user.handle().map(|handle| text::readable(&handle.to_string())).unwrap_or_default();
    Ok((user, name))
}

/// A question whose form goes to `verb` below the account's page, and which returns there.
fn at(user: &User, verb: &str) -> Question {
    let back = format!("/admin/users/{}", user.id);
    Question { action: format!("{back}/{verb}"), back, ..Question::default() }
}

/// `GET /admin/users/{id}/suspend`
pub(super) async fn suspend(State(app): State<App>, by: Admin, page_path: PagePath) -> Result<Response, Problem> {
    let (user, name) = account(&app, &page_path).await?;
    let question = Question {
        title: format!("Suspend {name}?"),
        consequences: lines([
            "They are signed out everywhere and cannot sign in.",
            "Their access tokens, SSH keys and nostr key stop working.",
            "Their public repositories stay readable.",
            "You can lift the suspension at any time.",
        ]),
        button: "Suspend account".into(),
        ..at(&user, "suspend")
    };
    Ok(ask(&app, &by, "users", question))
}

/// `GET /admin/users/{id}/reset-two-factor`
pub(super) async fn reset_factor(State(app): State<App>, by: Admin, page_path: PagePath) -> Result<Response, Problem> {
    let (user, name) = account(&app, &page_path).await?;
    let question = Question {
        title: format!("Reset two-factor authentication of {name}?"),
        consequences: lines([
            "Verify first that the person who asks owns this account.",
            "They can sign in with their password alone until they set up two-factor authentication again.",
            "Their recovery codes stop working, and they are signed out everywhere.",
            "A mail is sent to their primary address, and the audit log records the reset.",
        ]),
        button: "Reset two-factor authentication".into(),
        ..at(&user, "reset-two-factor")
    };
    Ok(ask(&app, &by, "users", question))
}

/// `GET /admin/users/{id}/give-admin`
pub(super) async fn give_admin(State(app): State<App>, by: Admin, page_path: PagePath) -> Result<Response, Problem> {
    let (user, name) = account(&app, &page_path).await?;
    let question = Question {
        title: format!("Make {name} an administrator?"),
        consequences: lines([
            "They can suspend accounts (including yours) and reset the two-factor authentication of others.",
            "They can invite people and read the audit log with all IP addresses.",
            "They can make others administrators, and remove your admin rights.",
        ]),
        button: "Make administrator".into(),
        ..at(&user, "give-admin")
    };
    Ok(ask(&app, &by, "users", question))
}

/// `GET /admin/users/{id}/take-admin`
pub(super) async fn take_admin(State(app): State<App>, by: Admin, page_path: PagePath) -> Result<Response, Problem> {
    let (user, name) = account(&app, &page_path).await?;
    let mut consequences = lines(["The account and its repositories stay, without access to site administration."]);
    if user.id == by.viewer.user.id {
        consequences.push("This is your own account: only another administrator can undo this.".into());
    }
    let question = Question {
        title: format!("Remove admin rights from {name}?"),
        consequences,
        button: "Remove admin rights".into(),
        ..at(&user, "take-admin")
    };
    Ok(ask(&app, &by, "users", question))
}

/// `GET /admin/users/{id}/release?name=…`
pub(super) async fn release(State(app): State<App>, by: Admin, page_path: PagePath) -> Result<Response, Problem> {
    let (user, name) = account(&app, &page_path).await?;
    let old: UserName = page_path.query_text("name").parse().map_err(|_| Problem::not_found())?;
    let old_names = admin::old_names(&app.forge, &by.by, user.id).await?;
    let old = old_names.into_iter().find(|known| known.name == old).ok_or_else(Problem::not_found)?.name.to_string();
    let question = Question {
        title: "Release this name?".into(),
        consequences: vec![
            format!("Links and clones with this name no longer redirect to {name}."),
            "Anyone may take the name, and the old links with it.".to_owned(),
            "This cannot be undone.".to_owned(),
        ],
        about: old.clone(),
        button: "Release name".into(),
        hidden: vec![("name", old)],
        ..at(&user, "release")
    };
    Ok(ask(&app, &by, "users", question))
}
