//! A repository's webhooks: `list.rs` lists them, `edit.rs` adds and changes one, `remove.rs` deletes one after a
//! question, `deliveries.rs` shows and repeats deliveries.

pub(in crate::repo) mod deliveries;
pub(in crate::repo) mod edit;
pub(in crate::repo) mod list;
pub(in crate::repo) mod remove;

use crate::App;
use crate::Route;
use crate::path::PagePath;
use crate::repo::head::{Elsewhere, Room};
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_forge::webhooks::show::{self, Seen};
use axum::routing::{get, post};

pub(in crate::repo) fn routes() -> Vec<Route> {
    vec![
        ("/{owner}/{repo}/settings/webhooks", get(list::show).post(edit::create)),
        ("/{owner}/{repo}/settings/webhooks/new", get(edit::blank)),
        ("/{owner}/{repo}/settings/webhooks/{hook}", get(edit::show).post(edit::save)),
        ("/{owner}/{repo}/settings/webhooks/{hook}/delete", get(remove::ask).post(remove::remove)),
        ("/{owner}/{repo}/settings/webhooks/{hook}/ping", post(deliveries::ping)),
        ("/{owner}/{repo}/settings/webhooks/{hook}/test", post(deliveries::test)),
        ("/{owner}/{repo}/settings/webhooks/{hook}/deliveries", get(deliveries::list)),
        ("/{owner}/{repo}/settings/webhooks/{hook}/deliveries/{delivery}", get(deliveries::show)),
        ("/{owner}/{repo}/settings/webhooks/{hook}/deliveries/{delivery}/redeliver", post(deliveries::redeliver)),
    ]
}

/// Path segments of the webhook and the delivery.
const HOOK: usize = 4;
const DELIVERY: usize = 6;

/// Opens the repository and one of its hooks.
async fn enter(app: &App, visitor: Visitor, page_path: &PagePath, action: Action) -> Result<(Room, Seen), Elsewhere> {
    let room = Room::enter(app, visitor, page_path, action).await?;
    let seen = show::hook(&app.forge, &room.visitor.caller(), room.repo(), page_path.segment(HOOK)).await?;
    Ok((room, seen))
}

fn at(room: &Room, tail: &str) -> String {
    format!("/{}/settings/webhooks{tail}", room.repo().slug())
}
