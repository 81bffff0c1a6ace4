//! Deleting a repository.

use super::ask;
use super::transfer;
use crate::App;
use crate::ask::Question;
use crate::form::Form;
use crate::path::PagePath;
use crate::repo::head::{Elsewhere, Room, Shown};
use crate::respond;
use crate::show::time;
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_forge::repos::delete;
use axum::extract::State;
use axum::http::StatusCode;

/// `GET /{owner}/{repo}/settings/delete`
pub(in crate::repo) async fn ask(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::RepoDelete).await?;
    let question = question(&app, &room).await?;
    Ok(ask::ask(&app, &room, question).await)
}

/// `POST /{owner}/{repo}/settings/delete`
pub(in crate::repo) async fn delete(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
    form: Form,
) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::RepoDelete).await?;
    if let Some(errors) = ask::unconfirmed(&room, &form.text("confirmation")) {
        let question = question(&app, &room).await?;
        return Ok(ask::again(&app, &room, StatusCode::BAD_REQUEST, question, errors).await);
    }
    delete::delete(&app.forge, &room.visitor.caller(), room.repo()).await?;
    // Only the owner can restore it, so only the owner is redirected to that page.
    let to = if room.is_owner() { "/settings/repositories" } else { "/" };
    Ok(respond::see_other(&format!("{to}?done=deleted")))
}

async fn question(app: &App, room: &Room) -> Result<Question, Elsewhere> {
    let until = time::exact(app.forge.clock().now().plus(app.forge.settings().lifecycle.grace));
    let who = if room.is_owner() { "You".to_owned() } else { format!("Only {}", room.owner()) };
    let mut consequences = vec![
        "It disappears at once from pages, git and the API. Its name becomes available.".to_owned(),
        format!("{who} can restore it until {until}, with all its data."),
        "After that it is deleted permanently. Existing clones and forks are not affected.".to_owned(),
    ];
    if let Some(offer) = transfer::waiting(app, room).await? {
        let to = offer.transfer.recipient_name.map(|name| name.to_string()).unwrap_or_default();
        consequences.push(format!("The transfer offer to {to} is cancelled."));
    }
    Ok(Question {
        title: "Delete".into(),
        consequences,
        button: "Delete this repository".into(),
        fields: vec![ask::confirmation(room)],
        ..ask::at(room, "delete")
    })
}
