//! Offering a transfer of a repository.

use super::ask;
use crate::App;
use crate::ask::{Field, Question};
use crate::form::Form;
use crate::path::PagePath;
use crate::repo::head::{Elsewhere, Room, Shown};
use crate::respond;
use crate::show::time;
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_core::transfer::Status;
use abide_forge::repos::transfer::{self, Offer};
use axum::extract::State;
use axum::http::StatusCode;

/// `GET /{owner}/{repo}/settings/transfer`
pub(in crate::repo) async fn ask(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::RepoTransfer).await?;
    room.ensure_ours_to_give()?;
    if let Some(offer) = waiting(&app, &room).await? {
        return Ok(respond::see_other(&format!("/transfers/{}", offer.transfer.id)));
    }
    let question = question(&app, &room, String::new());
    Ok(ask::ask(&app, &room, question).await)
}

/// `POST /{owner}/{repo}/settings/transfer`
pub(in crate::repo) async fn offer(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::RepoTransfer).await?;
    let typed = form.text("new_owner");
    if let Some(errors) = ask::unconfirmed(&room, &form.text("confirmation")) {
        let question = question(&app, &room, typed);
        return Ok(ask::again(&app, &room, StatusCode::BAD_REQUEST, question, errors).await);
    }
    match transfer::offer(&app.forge, &room.visitor.caller(), room.repo(), &typed).await {
        Ok(offer) => Ok(respond::see_other(&format!("/{}/settings?done=offered", offer.repo.slug()))),
        Err(error) => {
            let (status, errors) = ask::refused(error)?;
            Ok(ask::again(&app, &room, status, question(&app, &room, typed), errors).await)
        }
    }
}

/// The open transfer offer; an expired one is not open.
pub(super) async fn waiting(app: &App, room: &Room) -> Result<Option<Offer>, Elsewhere> {
    let now = app.forge.clock().now();
    let offer = transfer::pending(&app.forge, &room.visitor.caller(), room.repo()).await?;
    Ok(offer.filter(|offer| offer.status(now) == Status::Pending))
}

fn question(app: &App, room: &Room, typed: String) -> Question {
    let slug = room.repo().slug();
    let whose = if room.is_owner() { "Your".to_owned() } else { format!("{}'s", room.owner()) };
    let within = time::days(app.forge.settings().lifecycle.transfer_ttl);
    Question {
        title: "Transfer".into(),
        consequences: vec![
            format!(
                "Nothing changes until the new owner accepts. The offer expires after {within}, and you can cancel it."
            ),
            "The new owner gets the repository with all its data.".to_owned(),
            format!("{whose} access ends, unless the new owner grants it again. Collaborators keep their roles."),
            format!("The old URL {slug} redirects to it, for browsers, clones and the API."),
        ],
        button: "Transfer this repository".into(),
        fields: vec![
            Field {
                name: "new_owner",
                label: "New owner".to_owned(),
                hint: "User name of the new owner, who can see name, description and size of the repository even if it is private.",
                typed,
            },
            ask::confirmation(room),
        ],
        ..ask::at(room, "transfer")
    }
}
