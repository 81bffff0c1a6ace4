//! Adding a webhook and changing one.

use super::{at, enter};
use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::repo::head::{Elsewhere, Head, Room, Shown};
use crate::respond;
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_core::webhooks::Kinds;
use abide_forge::webhooks::show::{self, Seen};
use abide_forge::webhooks::{Change, Delivery, HookError, Secret, create, edit};
use askama::Template;
use axum::extract::State;

/// Deliveries that the page of a hook shows.
const RECENT: i64 = 10;

#[derive(Template)]
#[template(path = "repo/settings/webhook.html")]
struct HookPage {
    frame: Frame,
    head: Head,
    section: &'static str,
    errors: Errors,
    can_manage: bool,
    typed: Typed,
    kinds: Vec<Choice>,
    /// The webhook and its latest deliveries; `None` for a new one.
    seen: Option<Seen>,
    /// Base URL of its pages.
    base: String,
    recent: Vec<Delivery>,
}

/// Contents of the form.
struct Typed {
    url: String,
    form: bool,
    everything: bool,
    events: Vec<String>,
    active: bool,
}

/// An event with its checkbox.
struct Choice {
    name: &'static str,
    about: &'static str,
    ticked: bool,
}

fn about(name: &str) -> &'static str {
    match name {
        "push" => "Branches or tags created, updated or deleted.",
        "repository" => "Repository renamed, transferred, archived, made public or private, deleted or restored.",
        "star" => "Star added or removed.",
        "watch" => "Star added, under GitHub's legacy event name.",
        "issues" => "Issue opened, closed, edited, labelled or assigned.",
        "issue_comment" => "Comment created, edited or deleted.",
        "pull_request" => "Pull request or patch over nostr opened, updated, closed or merged.",
        "member" => "Collaborator added or removed, or role changed.",
        _ => "",
    }
}

impl Typed {
    fn new() -> Self {
        let events = Kinds::usual().words().into_iter().map(str::to_owned).collect();
        Self { url: String::new(), form: false, everything: false, events, active: true }
    }

    fn of(seen: &Seen) -> Self {
        let hook = &seen.hook;
        Self {
            url: hook.url.clone(),
            form: hook.content_type.as_str() == "form",
            everything: hook.events.are_everything(),
            events: hook.events.words().into_iter().map(str::to_owned).collect(),
            active: hook.active,
        }
    }

    fn read(form: &Form) -> Self {
        Self {
            url: form.text("url"),
            form: form.text("content_type") == "form",
            everything: form.text("which") == "all",
            events: form.all("event").map(str::to_owned).collect(),
            active: form.ticked("active"),
        }
    }

    fn change(&self, form: &Form) -> Change {
        let secret = match form.filled("secret") {
            _ if form.ticked("remove_secret") => Secret::Remove,
            Some(_) => Secret::Set(form.text("secret").into()),
            None => Secret::Keep,
        };
        Change {
            url: Some(self.url.clone()),
            content_type: Some(form.text("content_type")),
            secret,
            insecure_ssl: false,
            events: Some(if self.everything { vec!["*".to_owned()] } else { self.events.clone() }),
            active: Some(self.active),
        }
    }
}

/// `GET /{owner}/{repo}/settings/webhooks/new`
pub(in crate::repo) async fn blank(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::WebhookManage).await?;
    Ok(respond::page(&page(&app, &room, None, Typed::new(), Errors::none()).await?))
}

/// `POST /{owner}/{repo}/settings/webhooks`
pub(in crate::repo) async fn create(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
    form: Form,
) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::WebhookManage).await?;
    let typed = Typed::read(&form);
    match create::create(&app.forge, &room.visitor.caller(), room.repo(), &typed.change(&form)).await {
        Ok(hook) => Ok(respond::see_other(&at(&room, &format!("/{}?done=hook-added", hook.id)))),
        Err(error) => {
            let errors = refused(error)?;
            Ok(respond::form_again(&page(&app, &room, None, typed, errors).await?))
        }
    }
}

/// `GET /{owner}/{repo}/settings/webhooks/{hook}`
pub(in crate::repo) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let (room, seen) = enter(&app, visitor, &page_path, Action::WebhookList).await?;
    let typed = Typed::of(&seen);
    Ok(respond::page(&page(&app, &room, Some(seen), typed, Errors::none()).await?))
}

/// `POST /{owner}/{repo}/settings/webhooks/{hook}`
pub(in crate::repo) async fn save(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let (room, seen) = enter(&app, visitor, &page_path, Action::WebhookManage).await?;
    let typed = Typed::read(&form);
    match edit::edit(&app.forge, &room.visitor.caller(), room.repo(), seen.hook.id, &typed.change(&form)).await {
        Ok(hook) => Ok(respond::see_other(&at(&room, &format!("/{}?done=saved", hook.id)))),
        Err(error) => {
            let errors = refused(error)?;
            Ok(respond::form_again(&page(&app, &room, Some(seen), typed, errors).await?))
        }
    }
}

/// Errors of the form; other errors get a page of their own.
fn refused(error: HookError) -> Result<Errors, Problem> {
    match error {
        HookError::Invalid { field, rule } => {
            let field = if ["url", "secret", "events"].contains(&field) { field } else { "" };
            Ok(Errors::at(field, &rule))
        }
        HookError::TooMany(_) => Ok(Errors::at("", &error.to_string())),
        other => Err(other.into()),
    }
}

async fn page(app: &App, room: &Room, seen: Option<Seen>, typed: Typed, errors: Errors) -> Result<HookPage, Elsewhere> {
    let recent = match &seen {
        Some(seen) => show::deliveries(&app.forge, &seen.hook, None, RECENT).await?,
        None => Vec::new(),
    };
    let kinds = Kinds::choices().map(|kind| Choice {
        name: kind.as_str(),
        about: about(kind.as_str()),
        ticked: typed.events.iter().any(|event| event == kind.as_str()),
    });
    let title = if seen.is_some() { "Webhook" } else { "New webhook" };
    Ok(HookPage {
        frame: Frame::new(app, &room.visitor, format!("{title} · {}", room.repo().shown())),
        head: room.head(app, "settings").await,
        section: "webhooks",
        errors,
        can_manage: room.may(Action::WebhookManage),
        kinds: kinds.collect(),
        typed,
        base: seen.as_ref().map(|seen| at(room, &format!("/{}", seen.hook.id))).unwrap_or_default(),
        seen,
        recent,
    })
}
