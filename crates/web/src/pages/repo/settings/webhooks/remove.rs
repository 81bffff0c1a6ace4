//! Removing a webhook, after telling what goes with it.

use super::{at, enter};
use crate::App;
use crate::pages::form::Form;
use crate::pages::frame::Frame;
use crate::pages::path::Address;
use crate::pages::repo::head::{Head, Shown};
use crate::pages::respond;
use crate::pages::visitor::Visitor;
use abide_core::policy::Action;
use abide_forge::webhooks::remove;
use abide_forge::webhooks::show::Seen;
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/settings/webhook_delete.html")]
struct DeletePage {
    frame: Frame,
    head: Head,
    section: &'static str,
    seen: Seen,
}

/// `GET /{owner}/{repo}/settings/webhooks/{hook}/delete`
pub(in crate::pages::repo) async fn ask(State(app): State<App>, visitor: Visitor, address: Address) -> Shown {
    let (room, seen) = enter(&app, visitor, &address, Action::WebhookManage).await?;
    Ok(respond::page(&DeletePage {
        frame: Frame::new(&app, &room.visitor, format!("Delete a webhook · {}", room.repo().shown())),
        head: room.head(&app, "settings").await,
        section: "webhooks",
        seen,
    }))
}

/// `POST /{owner}/{repo}/settings/webhooks/{hook}/delete`
pub(in crate::pages::repo) async fn remove(
    State(app): State<App>,
    visitor: Visitor,
    address: Address,
    _form: Form,
) -> Shown {
    let (room, seen) = enter(&app, visitor, &address, Action::WebhookManage).await?;
    remove::remove(&app.forge, &room.visitor.caller(), room.repo(), seen.hook.id).await?;
    Ok(respond::see_other(&at(&room, "?done=removed")))
}
