//! The webhooks of a repository.

use crate::App;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::repo::head::{Head, Room, Shown};
use crate::respond;
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_forge::repos::Page;
use abide_forge::webhooks::show::{self, Seen};
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/settings/webhooks.html")]
struct HooksPage {
    frame: Frame,
    head: Head,
    section: &'static str,
    can_manage: bool,
    hooks: Vec<Seen>,
}

/// Webhooks on the page; the default limit per repository is lower.
const SHOWN: i64 = 200;

/// `GET /{owner}/{repo}/settings/webhooks`
pub(in crate::repo) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::WebhookList).await?;
    let page = Page { limit: SHOWN, offset: 0 };
    let (hooks, _) = show::list(&app.forge, &room.visitor.caller(), room.repo(), page).await?;
    Ok(respond::page(&HooksPage {
        frame: Frame::new(&app, &room.visitor, format!("Webhooks · {}", room.repo().shown())),
        head: room.head(&app, "settings").await,
        section: "webhooks",
        can_manage: room.may(Action::WebhookManage),
        hooks,
    }))
}
