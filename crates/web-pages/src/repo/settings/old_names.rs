//! Old names of a repository, which redirect to it.

use super::ask;
use crate::App;
use crate::ask::Question;
use crate::form::Form;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::repo::head::{Head, Room, Shown};
use crate::respond;
use crate::show::text;
use crate::visitor::Visitor;
use abide_core::Timestamp;
use abide_core::policy::Action;
use abide_forge::repos::redirects::{self, Redirect};
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

impl From<Redirect> for OldName {
    fn from(old: Redirect) -> Self {
        let owner = old.owner.as_ref().map(ToString::to_string).unwrap_or_default();
        Self { id: old.id.get(), slug: format!("{owner}/{}", old.name), since: old.since, last_used: old.last_used }
    }
}

/// `GET /{owner}/{repo}/settings/old-names`
pub(in crate::repo) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let list = redirects::list(&app.forge, &room.visitor.caller(), room.repo()).await?;
    Ok(respond::page(&OldNamesPage {
        frame: Frame::new(&app, &room.visitor, format!("Old names · {}", room.repo().shown())),
        head: room.head(&app, "settings").await,
        section: "old-names",
        can_release: room.may(Action::RedirectRelease),
        names: list.into_iter().map(OldName::from).collect(),
    }))
}

/// `GET /{owner}/{repo}/settings/old-names/release?id=…`
pub(in crate::repo) async fn ask(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::RedirectRelease).await?;
    let list = redirects::list(&app.forge, &room.visitor.caller(), room.repo()).await?;
    let wanted = page_path.query_text("id");
    let found = list.into_iter().find(|old| old.id.to_string() == wanted).ok_or_else(Problem::not_found)?;
    let old = OldName::from(found);
    let (repo, names) = (room.repo(), format!("/{}/settings/old-names", room.repo().slug()));
    let question = Question {
        title: "Release this name?".into(),
        about: text::readable(&old.slug),
        consequences: vec![
            "Links, clones and API calls that still use this name stop working.".to_owned(),
            format!("The current URL {} and the permalink /r/{} keep working.", repo.shown(), repo.id),
            "This cannot be undone.".to_owned(),
        ],
        action: format!("{names}/release"),
        button: "Release name".into(),
        back: names,
        hidden: vec![("id", wanted)],
        ..Question::default()
    };
    Ok(ask::ask_in(&app, &room, "old-names", question).await)
}

/// `POST /{owner}/{repo}/settings/old-names/release`
pub(in crate::repo) async fn release(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
    form: Form,
) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    redirects::release(&app.forge, &room.visitor.caller(), room.repo(), &form.text("id")).await?;
    Ok(respond::see_other(&format!("/{}/settings/old-names?done=old-name-released", room.repo().slug())))
}
