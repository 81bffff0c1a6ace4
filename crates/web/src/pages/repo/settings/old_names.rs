//! The names that a repository had, which still lead to it.

use crate::App;
use crate::pages::form::Form;
use crate::pages::frame::Frame;
use crate::pages::path::Address;
use crate::pages::repo::head::{Head, Room, Shown};
use crate::pages::respond;
use crate::pages::visitor::Visitor;
use abide_core::Timestamp;
use abide_core::policy::Action;
use abide_forge::repos::redirects;
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/settings/old_names.html")]
struct OldNamesPage {
    frame: Frame,
    head: Head,
    section: &'static str,
    can_release: bool,
    names: Vec<OldName>,
}

struct OldName {
    id: i64,
    slug: String,
    since: Timestamp,
    last_used: Option<Timestamp>,
}

/// `GET /{owner}/{repo}/settings/old-names`
pub(in crate::pages::repo) async fn show(State(app): State<App>, visitor: Visitor, address: Address) -> Shown {
    let room = Room::open(&app, visitor, &address).await?;
    let list = redirects::list(&app.forge, &room.visitor.caller(), room.repo()).await?;
    let names = list.into_iter().map(|old| OldName {
        id: old.id.get(),
        slug: format!("{}/{}", old.owner.as_ref().map(ToString::to_string).unwrap_or_default(), old.name),
        since: old.since,
        last_used: old.last_used,
    });
    Ok(respond::page(&OldNamesPage {
        frame: Frame::new(&app, &room.visitor, format!("Old names · {}", room.repo().shown())),
        head: room.head(&app, "settings").await,
        section: "old-names",
        can_release: room.may(Action::RedirectRelease),
        names: names.collect(),
    }))
}

/// `POST /{owner}/{repo}/settings/old-names/release`
pub(in crate::pages::repo) async fn release(
    State(app): State<App>,
    visitor: Visitor,
    address: Address,
    form: Form,
) -> Shown {
    let room = Room::open(&app, visitor, &address).await?;
    redirects::release(&app.forge, &room.visitor.caller(), room.repo(), &form.text("id")).await?;
    Ok(respond::see_other(&format!("/{}/settings/old-names?done=old-name-released", room.repo().slug())))
}
