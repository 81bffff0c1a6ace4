//! The milestones of a repository.

use super::{ask, filtered};
use crate::App;
use crate::ask::Question;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::repo::head::{Elsewhere, Head, Room, Shown};
use crate::respond;
use crate::show::text;
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_core::{Timestamp, time};
use abide_forge::issues::milestones::{self, Request};
use abide_forge::issues::{IssueError, Milestone, State as MilestoneState, show as look};
use abide_forge::repos::Page;
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/issues/milestones.html")]
struct MilestonesPage {
    frame: Frame,
    head: Head,
    errors: Errors,
    title: String,
    description: String,
    due: String,
    milestones: Vec<Line>,
    can_manage: bool,
}

struct Line {
    milestone: Milestone,
    issues: String,
    due: Option<String>,
}

/// Milestones on the page; the API lists more.
const SHOWN: Page = Page { limit: 500, offset: 0 };

/// `GET /{owner}/{repo}/milestones`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    Ok(respond::page(&page(&app, &room, Errors::none(), Request::default(), String::new()).await?))
}

/// End of a day in the format of date fields.
fn end_of(day: &str) -> Option<Timestamp> {
    time::parse_rfc3339(&format!("{day}T23:59:59Z"))
}

/// `POST /{owner}/{repo}/milestones`: creates a milestone, or closes or reopens the one named by `number`.
pub(super) async fn save(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let (caller, day) = (room.visitor.caller(), form.text("due"));
    let saved = match form.filled("number") {
        Some(number) => {
            let number = look::number_of(&number).ok_or_else(Problem::not_found)?;
            let open = form.text("state") == "open";
            let state = if open { MilestoneState::Open } else { MilestoneState::Closed };
            let request = Request { state: Some(state), ..Request::default() };
            milestones::edit(&app.forge, &caller, room.repo(), number, request).await?;
            Ok(())
        }
        None => {
            let due = match day.trim() {
                "" => None,
                day => Some(end_of(day).ok_or("a date is written like 2026-01-31")),
            };
            let request = Request {
                title: Some(form.text("title")),
                description: Some(form.text("description")),
                state: None,
                due_on: due.and_then(Result::ok).map(Some),
            };
            if let Some(Err(rule)) = due {
                Err((Errors::at("due", rule), request))
            } else {
                match milestones::create(&app.forge, &caller, room.repo(), request.clone()).await {
                    Ok(_) => Ok(()),
                    Err(IssueError::Access(access)) => return Err(access.into()),
                    Err(error) => Err((Errors::of(&["title", "description"], &error), request)),
                }
            }
        }
    };
    match saved {
        Ok(()) => Ok(respond::see_other(&format!("/{}/milestones?done=saved", room.repo().slug()))),
        Err((errors, request)) => Ok(respond::form_again(&page(&app, &room, errors, request, day).await?)),
    }
}

/// `GET /{owner}/{repo}/milestones/remove?number=…`
pub(super) async fn ask(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::IssueModerate).await?;
    let number = look::number_of(&page_path.query_text("number")).ok_or_else(Problem::not_found)?;
    let milestone = milestones::show(&app.forge, room.repo(), number).await?;
    let issues = usize::try_from(milestone.open_issues + milestone.closed_issues).unwrap_or_default();
    let list = format!("/{}/milestones", room.repo().slug());
    let without = match issues {
        0 => "It has no issues.".to_owned(),
        _ => format!("It is removed from {}. The issues stay.", text::count(issues, "issue", "issues")),
    };
    let question = Question {
        title: "Delete this milestone?".into(),
        about: milestone.title,
        consequences: vec![without, "This cannot be undone. To keep it for later, close it instead.".to_owned()],
        action: format!("{list}/remove"),
        button: "Delete milestone".into(),
        back: list,
        hidden: vec![("number", number.to_string())],
        ..Question::default()
    };
    Ok(ask::ask(&app, &room, question).await)
}

/// `POST /{owner}/{repo}/milestones/remove`
pub(super) async fn remove(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let number = look::number_of(&form.text("number")).ok_or_else(Problem::not_found)?;
    milestones::remove(&app.forge, &room.visitor.caller(), room.repo(), number).await?;
    Ok(respond::see_other(&format!("/{}/milestones?done=removed", room.repo().slug())))
}

async fn page(
    app: &App,
    room: &Room,
    errors: Errors,
    typed: Request,
    due: String,
) -> Result<MilestonesPage, Elsewhere> {
    let head = room.head(app, "issues").await;
    let found = milestones::list(&app.forge, room.repo(), None, SHOWN).await?.0;
    let line = |milestone: Milestone| {
        let query = format!("is:open milestone:\"{}\"", milestone.title.replace('"', ""));
        let day = |at: Timestamp| at.to_string().split('T').next().unwrap_or_default().to_owned();
        Line { issues: filtered(&head.url, &query), due: milestone.due_on.map(day), milestone }
    };
    Ok(MilestonesPage {
        frame: Frame::new(app, &room.visitor, format!("Milestones · {}", room.repo().shown())),
        errors,
        title: typed.title.unwrap_or_default(),
        description: typed.description.unwrap_or_default(),
        due,
        milestones: found.into_iter().map(line).collect(),
        can_manage: room.may(Action::IssueModerate),
        head,
    })
}
