//! Changing who may read a repository.

use super::ask;
use crate::App;
use crate::ask::Question;
use crate::errors::Errors;
use crate::form::Form;
use crate::path::PagePath;
use crate::repo::head::{Room, Shown};
use crate::respond;
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_core::repo::Visibility;
use abide_forge::repos::marks;
use axum::extract::State;
use axum::http::StatusCode;

/// `GET /{owner}/{repo}/settings/visibility`
pub(in crate::repo) async fn ask(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::RepoVisibility).await?;
    room.ensure_ours_to_give()?;
    Ok(ask::ask(&app, &room, question(&room)).await)
}

/// `POST /{owner}/{repo}/settings/visibility`
pub(in crate::repo) async fn set(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::RepoVisibility).await?;
    let Ok(wanted) = form.text("visibility").parse::<Visibility>() else {
        let errors = Errors::at("visibility", "the visibility is public or private");
        return Ok(ask::again(&app, &room, StatusCode::BAD_REQUEST, question(&room), errors).await);
    };
    let repo = marks::set_visibility(&app.forge, &room.visitor.caller(), room.repo(), wanted).await?;
    Ok(respond::see_other(&format!("/{}/settings?done={wanted}", repo.slug())))
}

fn question(room: &Room) -> Question {
    let target = room.repo().visibility.opposite();
    let (title, button, consequences) = match target {
        Visibility::Public => (
            "Make public",
            "Make it public",
            [
                "Everyone can read and clone it, with its whole history.",
                "Check old commits for passwords and keys first. You cannot take back what someone has read.",
                "Forks do not change: private forks stay private.",
            ],
        ),
        Visibility::Private => (
            "Make private",
            "Make it private",
            [
                "Only the owner and collaborators can read it. Everyone else gets 404 Not Found.",
                "Existing clones and forks are not affected.",
                "Stars and watches are kept, and shown again if it becomes public again.",
            ],
        ),
    };
    Question {
        title: title.into(),
        consequences: consequences.map(str::to_owned).to_vec(),
        button: button.into(),
        hidden: vec![("visibility", target.to_string())],
        ..ask::at(room, "visibility")
    }
}
