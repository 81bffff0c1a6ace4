//! What a repository says about itself.

use super::transfer;
use crate::App;
use crate::pages::errors::Errors;
use crate::pages::form::Form;
use crate::pages::frame::Frame;
use crate::pages::path::Address;
use crate::pages::repo::head::{Elsewhere, Head, Room, Shown};
use crate::pages::respond;
use crate::pages::visitor::Visitor;
use abide_core::Timestamp;
use abide_core::policy::Action;
use abide_forge::repos::edit::{self, EditError};
use abide_forge::repos::topics::{self, TopicsError};
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/settings/general.html")]
struct GeneralPage {
    frame: Frame,
    head: Head,
    section: &'static str,
    errors: Errors,
    typed: Typed,
    can_edit: bool,
    can_set_branch: bool,
    /// What can be done to its life, for those who can do it.
    danger: Option<Danger>,
    branches: Vec<String>,
}

struct Danger {
    /// Until when it could be restored if it were deleted now.
    restore_until: Timestamp,
    waiting: Option<Waiting>,
}

/// An offer that waits for an answer.
struct Waiting {
    id: i64,
    to: String,
    expires_at: Timestamp,
}

struct Typed {
    description: String,
    topics: String,
    default_branch: String,
}

/// `GET /{owner}/{repo}/settings`
pub(in crate::pages::repo) async fn show(State(app): State<App>, visitor: Visitor, address: Address) -> Shown {
    let room = Room::open(&app, visitor, &address).await?;
    if !room.may(Action::RepoDelete) {
        room.ensure(&app, Action::RepoEdit).await?;
    }
    let repo = room.repo();
    let topics: Vec<String> = topics::of(&app.forge, repo).await?.iter().map(ToString::to_string).collect();
    let typed = Typed {
        description: repo.description.clone(),
        topics: topics.join(" "),
        default_branch: repo.default_branch.short().to_owned(),
    };
    Ok(respond::page(&page(&app, &room, Errors::none(), typed).await?))
}

/// `POST /{owner}/{repo}/settings`
pub(in crate::pages::repo) async fn save(
    State(app): State<App>,
    visitor: Visitor,
    address: Address,
    form: Form,
) -> Shown {
    let room = Room::open(&app, visitor, &address).await?;
    let typed = Typed {
        description: form.text("description"),
        topics: form.text("topics"),
        default_branch: form.text("default_branch"),
    };
    match write(&app, &room, &typed).await? {
        Ok(()) => Ok(respond::see_other(&format!("/{}/settings?done=saved", room.repo().slug()))),
        Err(errors) => Ok(respond::form_again(&page(&app, &room, errors, typed).await?)),
    }
}

async fn write(app: &App, room: &Room, typed: &Typed) -> Result<Result<(), Errors>, Elsewhere> {
    let caller = room.visitor.caller();
    let branch = typed.default_branch.trim();
    let request = edit::Request {
        description: Some(typed.description.clone()),
        default_branch: (!branch.is_empty()).then(|| branch.to_owned()),
        ..edit::Request::default()
    };
    match edit::edit(&app.forge, &caller, room.repo(), request).await {
        Ok(_) => (),
        Err(EditError::Access(access)) => return Err(access.into()),
        Err(error) => return Ok(Err(Errors::of(&["description", "default_branch"], &error))),
    }
    let words: Vec<String> =
        typed.topics.split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    match topics::replace(&app.forge, &caller, room.repo(), &words).await {
        Ok(_) => Ok(Ok(())),
        Err(TopicsError::Access(access)) => Err(access.into()),
        Err(TopicsError::Invalid(invalid)) => Ok(Err(Errors::at("topics", &invalid.to_string()))),
    }
}

async fn danger(app: &App, room: &Room) -> Result<Option<Danger>, Elsewhere> {
    if !room.may(Action::RepoAdmin) {
        return Ok(None);
    }
    let waiting = transfer::waiting(app, room).await?.map(|offer| Waiting {
        id: offer.transfer.id.get(),
        to: offer.transfer.recipient_name.as_ref().map(ToString::to_string).unwrap_or_default(),
        expires_at: offer.transfer.expires_at,
    });
    let restore_until = app.forge.clock().now().plus(app.forge.settings().lifecycle.grace);
    Ok(Some(Danger { restore_until, waiting }))
}

async fn page(app: &App, room: &Room, errors: Errors, typed: Typed) -> Result<GeneralPage, Elsewhere> {
    const PROPOSALS: usize = 200;
    let refs = room.browser.refs().prefixed(b"refs/heads/").take(PROPOSALS);
    let branches =
        refs.filter_map(|found| Some(std::str::from_utf8(&found.name).ok()?["refs/heads/".len()..].to_owned()));
    Ok(GeneralPage {
        frame: Frame::new(app, &room.visitor, format!("Settings · {}", room.repo().shown())),
        head: room.head(app, "settings").await,
        section: "general",
        errors,
        typed,
        can_edit: room.may(Action::RepoEdit),
        can_set_branch: room.may(Action::DefaultBranchSet),
        danger: danger(app, room).await?,
        branches: branches.collect(),
    })
}
