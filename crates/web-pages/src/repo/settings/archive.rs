//! Archiving and unarchiving a repository.

use super::ask;
use crate::App;
use crate::ask::{Harm, Question};
use crate::form::Form;
use crate::path::PagePath;
use crate::repo::head::{Room, Shown};
use crate::respond;
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_forge::repos::marks;
use axum::extract::State;

/// `GET /{owner}/{repo}/settings/archive`
pub(in crate::repo) async fn ask(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::RepoArchive).await?;
    let question = Question {
        title: "Archive".into(),
        consequences: vec![
            "It becomes read-only: no pushes, and no changes to issues, description or collaborators.".into(),
            "Everyone who can read it now can still read, clone and fork it.".into(),
            "You can unarchive it at any time. You can rename, transfer or delete it while it is archived.".into(),
        ],
        button: "Archive this repository".into(),
        ..ask::at(&room, "archive")
    };
    Ok(ask::ask(&app, &room, question).await)
}

/// `POST /{owner}/{repo}/settings/archive`
pub(in crate::repo) async fn archive(State(app): State<App>, visitor: Visitor, page_path: PagePath, _: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let repo = marks::archive(&app.forge, &room.visitor.caller(), room.repo()).await?;
    Ok(respond::see_other(&format!("/{}/settings?done=archived", repo.slug())))
}

/// `GET /{owner}/{repo}/settings/unarchive`
pub(in crate::repo) async fn ask_back(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::RepoUnarchive).await?;
    let question = Question {
        title: "Unarchive".into(),
        consequences: vec!["Everyone who could push before it was archived can push again.".into()],
        button: "Unarchive this repository".into(),
        harm: Harm::None,
        ..ask::at(&room, "unarchive")
    };
    Ok(ask::ask(&app, &room, question).await)
}

/// `POST /{owner}/{repo}/settings/unarchive`
pub(in crate::repo) async fn unarchive(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
    _: Form,
) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let repo = marks::unarchive(&app.forge, &room.visitor.caller(), room.repo()).await?;
    Ok(respond::see_other(&format!("/{}/settings?done=unarchived", repo.slug())))
}
