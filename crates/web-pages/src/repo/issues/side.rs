//! The forms beside an issue: labels, assignees, milestone, subscription.

use super::{issue, number};
use crate::App;
use crate::form::Form;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::repo::head::{Room, Shown};
use crate::respond;
use crate::visitor::Visitor;
use abide_forge::issues::change::{self, Change, Names};
use abide_forge::issues::{show as look, subscribe};
use axum::extract::State;

async fn changed(app: &App, visitor: Visitor, page_path: &PagePath, to: Change) -> Shown {
    let room = Room::open(app, visitor, page_path).await?;
    let number = number(page_path)?;
    change::change(&app.forge, &room.visitor.caller(), room.repo(), number, to).await?;
    Ok(respond::see_other(&format!("/{}/issues/{number}?done=saved", room.repo().slug())))
}

fn set(form: &Form, name: &str) -> Option<Names> {
    Some(Names::Set(form.all(name).map(str::to_owned).collect()))
}

/// `POST /{owner}/{repo}/issues/{number}/labels`
pub(super) async fn labels(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let to = Change { labels: set(&form, "label"), ..Change::default() };
    changed(&app, visitor, &page_path, to).await
}

/// `POST /{owner}/{repo}/issues/{number}/assignees`
pub(super) async fn assignees(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let to = Change { assignees: set(&form, "assignee"), ..Change::default() };
    changed(&app, visitor, &page_path, to).await
}

/// `POST /{owner}/{repo}/issues/{number}/milestone`
pub(super) async fn milestone(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let chosen = match form.filled("milestone") {
        None => None,
        Some(text) => Some(look::number_of(&text).ok_or_else(Problem::not_found)?),
    };
    changed(&app, visitor, &page_path, Change { milestone: Some(chosen), ..Change::default() }).await
}

/// `POST /{owner}/{repo}/issues/{number}/subscription`
pub(super) async fn subscription(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let issue = issue(&app, &room, &page_path).await?;
    let wanted = form.text("wanted") == "yes";
    subscribe::set(&app.forge, &room.visitor.caller(), room.repo(), &issue, wanted).await?;
    let done = if wanted { "subscribed" } else { "unsubscribed" };
    Ok(respond::see_other(&format!("/{}/issues/{}?done={done}", room.repo().slug(), issue.number)))
}
