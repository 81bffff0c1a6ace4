//! Renaming a repository.

use super::ask;
use crate::App;
use crate::ask::{Field, Question};
use crate::form::Form;
use crate::frame;
use crate::path::PagePath;
use crate::repo::head::{Room, Shown};
use crate::respond;
use crate::show::time;
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_forge::repos::rename;
use axum::extract::State;

/// `GET /{owner}/{repo}/settings/rename`
pub(in crate::repo) async fn ask(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::RepoAdmin).await?;
    let question = question(&app, &room, room.repo().name.to_string());
    Ok(ask::ask(&app, &room, question).await)
}

/// `POST /{owner}/{repo}/settings/rename`
pub(in crate::repo) async fn rename(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
    form: Form,
) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::RepoAdmin).await?;
    let typed = form.text("name");
    match rename::rename(&app.forge, &room.visitor.caller(), room.repo(), &typed).await {
        Ok(renamed) => {
            let done = frame::named(renamed.replaced, renamed.repo.name.folds(&typed), "renamed");
            Ok(respond::see_other(&format!("/{}/settings?done={done}", renamed.repo.slug())))
        }
        Err(error) => {
            let (status, errors) = ask::refused(error)?;
            Ok(ask::again(&app, &room, status, question(&app, &room, typed), errors).await)
        }
    }
}

fn question(app: &App, room: &Room, typed: String) -> Question {
    let life = &app.forge.settings().lifecycle;
    let (slug, window) = (room.repo().slug(), time::days(life.rename_window));
    Question {
        title: "Rename".into(),
        consequences: vec![
            format!("The old URL {slug} redirects here, for browsers, clones and the API."),
            format!("If you later create a repository named {}, it takes over the old URL.", room.repo().name),
            format!("A repository can be renamed {} times per {window}.", life.rename_limit),
        ],
        button: "Rename".into(),
        fields: vec![Field {
            name: "name",
            label: "New name".to_owned(),
            hint: "Lowercase letters a–z, digits, dots, underscores and hyphens. Uppercase is converted to lowercase.",
            typed,
        }],
        ..ask::at(room, "rename")
    }
}
