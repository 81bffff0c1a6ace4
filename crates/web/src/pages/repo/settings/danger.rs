//! What cannot be undone with a second click. Each has a page of its own that tells the consequence first.

use crate::App;
use crate::pages::errors::Errors;
use crate::pages::form::Form;
use crate::pages::frame::Frame;
use crate::pages::path::Address;
use crate::pages::problem::Problem;
use crate::pages::repo::head::{Head, Room, Shown};
use crate::pages::respond;
use crate::pages::visitor::Visitor;
use abide_core::policy::Action;
use abide_core::repo::Visibility;
use abide_forge::repos::{delete, marks};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;

#[derive(Template)]
#[template(path = "repo/settings/confirm.html")]
struct ConfirmPage {
    frame: Frame,
    head: Head,
    section: &'static str,
    errors: Errors,
    consequences: Vec<String>,
    action: String,
    button: &'static str,
    /// Whether the repository's name must be typed.
    typed_slug: bool,
    confirm_label: String,
    hidden: Vec<(&'static str, &'static str)>,
}

/// `GET /{owner}/{repo}/settings/visibility`
pub(in crate::pages::repo) async fn ask_visibility(
    State(app): State<App>,
    visitor: Visitor,
    address: Address,
) -> Shown {
    let room = Room::open(&app, visitor, &address).await?;
    room.ensure(&app, Action::RepoVisibility).await?;
    let private = room.repo().visibility == Visibility::Private;
    let (title, consequences, target) = match private {
        true => (
            "Make it public?",
            vec![
                "Everyone will be able to read and clone it, with its whole history.".to_owned(),
                "Look for passwords and keys in old commits first: what was read once cannot be recalled.".to_owned(),
            ],
            "public",
        ),
        false => (
            "Make it private?",
            vec![
                "Only you and collaborators will be able to read it; to everyone else it will not exist.".to_owned(),
                "Clones and forks that others have made already cannot be recalled.".to_owned(),
            ],
            "private",
        ),
    };
    let head = room.head(&app, "settings").await;
    Ok(respond::page(&ConfirmPage {
        frame: Frame::new(&app, &room.visitor, title),
        section: "general",
        errors: Errors::none(),
        consequences,
        action: format!("{}/settings/visibility", head.url),
        button: if private { "Make it public" } else { "Make it private" },
        typed_slug: false,
        confirm_label: String::new(),
        hidden: vec![("visibility", target)],
        head,
    }))
}

/// `POST /{owner}/{repo}/settings/visibility`
pub(in crate::pages::repo) async fn visibility(
    State(app): State<App>,
    visitor: Visitor,
    address: Address,
    form: Form,
) -> Shown {
    let room = Room::open(&app, visitor, &address).await?;
    let wanted: Visibility = form
        .text("visibility")
        .parse()
        .map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "The visibility is public or private."))?;
    let repo = marks::set_visibility(&app.forge, &room.visitor.caller(), room.repo(), wanted).await?;
    Ok(respond::see_other(&format!("/{}/settings?done=saved", repo.slug())))
}

/// `GET /{owner}/{repo}/settings/delete`
pub(in crate::pages::repo) async fn ask_delete(State(app): State<App>, visitor: Visitor, address: Address) -> Shown {
    let room = Room::open(&app, visitor, &address).await?;
    room.ensure(&app, Action::RepoDelete).await?;
    Ok(respond::page(&delete_page(&app, &room, Errors::none()).await))
}

/// `POST /{owner}/{repo}/settings/delete`
pub(in crate::pages::repo) async fn delete(
    State(app): State<App>,
    visitor: Visitor,
    address: Address,
    form: Form,
) -> Shown {
    let room = Room::open(&app, visitor, &address).await?;
    room.ensure(&app, Action::RepoDelete).await?;
    if form.text("confirmation").trim() != room.repo().slug() {
        let errors = Errors::at("confirmation", &format!("type {} to confirm", room.repo().slug()));
        return Ok(respond::form_again(&delete_page(&app, &room, errors).await));
    }
    delete::delete(&app.forge, &room.visitor.caller(), room.repo()).await?;
    Ok(respond::see_other("/?done=deleted"))
}

async fn delete_page(app: &App, room: &Room, errors: Errors) -> ConfirmPage {
    let head = room.head(app, "settings").await;
    ConfirmPage {
        frame: Frame::new(app, &room.visitor, "Delete this repository?"),
        section: "general",
        errors,
        consequences: vec![
            "It disappears for everyone at once: pages, clones over the network, the API. Its name becomes free."
                .into(),
            "Nothing is removed from the disk right away: its identity and history are kept, and it can be restored."
                .into(),
        ],
        action: format!("{}/settings/delete", head.url),
        button: "Delete this repository",
        typed_slug: true,
        confirm_label: format!("Type {} to confirm", room.repo().slug()),
        hidden: Vec::new(),
        head,
    }
}
