//! One issue: its text, its timeline, and its forms.

use super::{issue, number, rendered};
use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::links::Links;
use crate::path::PagePath;
use crate::repo::head::{Elsewhere, Head, Room, Shown};
use crate::respond;
use crate::visitor::Visitor;
use abide_core::issues::timeline::{Detail, LabelDetail, MilestoneDetail, StateDetail, TitleDetail};
use abide_core::policy::{Action, IssueAction};
use abide_core::{Timestamp, WatchLevel};
use abide_forge::attention::watch;
use abide_forge::issues::{
    Detailed, Entry, IssueError, Label, Milestone, Person, Reason, State as IssueState, change, comment, labels,
    milestones, show as look, subscribe,
};
use abide_forge::notify::inbox;
use abide_forge::repos::Page;
use askama::Template;
use axum::extract::State;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "repo/issues/show.html")]
struct IssuePage {
    frame: Frame,
    head: Head,
    errors: Errors,
    typed: String,
    detailed: Detailed,
    body: Arc<str>,
    happened: Vec<Happened>,
    links: Links,
    first: bool,
    page: usize,
    can: Can,
    subscribed: bool,
    labels: Vec<Label>,
    people: Vec<Person>,
    milestones: Vec<Milestone>,
}

impl IssuePage {
    fn is_in(&self, milestone: &Milestone) -> bool {
        self.detailed.issue.milestone_id == Some(milestone.id)
    }
}

/// Permissions of the visitor.
struct Can {
    comment: bool,
    edit: bool,
    close: bool,
    triage: bool,
    hear: bool,
}

/// One line of the timeline, or one comment.
struct Happened {
    who: String,
    at: Timestamp,
    what: What,
}

enum What {
    Said { id: String, body: Arc<str>, edited: bool, can_edit: bool },
    Labelled { label: String, colour: String, on: bool },
    Change { text: String, to: Option<(String, String)> },
}

const PER_PAGE: usize = 50;
/// Labels, people and milestones in the menus; the API lists more.
const CHOICES: Page = Page { limit: 200, offset: 0 };

/// `GET /{owner}/{repo}/issues/{number}`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let issue = issue(&app, &room, &page_path).await?;
    if inbox::opened(&app.forge, &room.visitor.caller(), room.repo(), &issue).await? {
        room.visitor.reads_one();
    }
    Ok(respond::page(&page(&app, &room, &page_path, Errors::none(), String::new()).await?))
}

/// `POST /{owner}/{repo}/issues/{number}`: comments, closes or reopens, or comments and does one of both.
pub(super) async fn say(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let number = number(&page_path)?;
    let (caller, body, then) = (room.visitor.caller(), form.text("body"), form.text("then"));
    let mut at = String::new();
    if !body.trim().is_empty() || then.is_empty() {
        match comment::add(&app.forge, &caller, room.repo(), number, &body).await {
            Ok(said) => at = format!("#comment-{}", said.id),
            Err(error @ (IssueError::Invalid { .. } | IssueError::TooMany { .. })) => {
                let errors = Errors::of(&["body"], &error);
                return Ok(respond::form_again(&page(&app, &room, &page_path, errors, body).await?));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let done = match then.as_str() {
        "close" => close(&app, &room, number, Reason::Completed).await?,
        "not-planned" => close(&app, &room, number, Reason::NotPlanned).await?,
        "reopen" => {
            change::reopen(&app.forge, &caller, room.repo(), number).await?;
            "?done=reopened"
        }
        _ => "",
    };
    Ok(respond::see_other(&format!("/{}/issues/{number}{done}{at}", room.repo().slug())))
}

async fn close(app: &App, room: &Room, number: i64, reason: Reason) -> Result<&'static str, Elsewhere> {
    change::close(&app.forge, &room.visitor.caller(), room.repo(), number, Some(reason)).await?;
    Ok("?done=closed")
}

async fn page(
    app: &App,
    room: &Room,
    page_path: &PagePath,
    errors: Errors,
    typed: String,
) -> Result<IssuePage, Elsewhere> {
    let (caller, repo) = (room.visitor.caller(), room.repo());
    let detailed = look::detail(&app.forge, issue(app, room, page_path).await?).await?;
    let found = &detailed.issue;
    let number = page_path.page();
    let part = Page { limit: PER_PAGE as i64, offset: ((number - 1) * PER_PAGE) as i64 };
    let (entries, total) = look::timeline(&app.forge, &caller, found, part).await?;
    let may = |action| look::may(&caller, repo, action, found.author_id);
    let can = Can {
        comment: room.visitor.viewer().is_some() && room.may(Action::IssueComment),
        edit: may(IssueAction::Edit),
        close: may(IssueAction::Close),
        triage: may(IssueAction::Triage),
        hear: room.visitor.viewer().is_some(),
    };
    let (mut labels, mut people, mut milestones) = (Vec::new(), Vec::new(), Vec::new());
    if can.triage {
        labels = labels::list(&app.forge, repo, CHOICES).await?.0;
        people = look::assignable(&app.forge, repo, CHOICES).await?.0;
        milestones = milestones::list(&app.forge, repo, Some(IssueState::Open), CHOICES).await?.0;
    }
    let subscribed = match (subscribe::of(&app.forge, &caller, found).await?, caller.user_id()) {
        (Some(said), _) => said.subscribed,
        // Watchers of all activity are subscribed without a subscription of their own.
        (None, Some(user)) => watch::current_level(&app.forge, user, repo.id).await? == WatchLevel::All,
        (None, None) => false,
    };
    let head = room.head(app, "issues").await;
    let said = entries.iter().filter_map(|entry| entry.comment.as_ref()).map(|said| said.body.clone());
    let texts = std::iter::once(found.body.clone()).chain(said).collect();
    let mut bodies = rendered(app, room, texts).await?.into_iter();
    let body = bodies.next().unwrap_or_default();
    let happened = entries.iter().map(|entry| happened(room, entry, &mut bodies)).collect();
    let path = format!("{}/issues/{}", head.url, found.number);
    Ok(IssuePage {
        frame: Frame::new(app, &room.visitor, format!("{} · Issue {} · {}", found.title, found.number, repo.shown())),
        body,
        happened,
        links: Links::around(&path, page_path, number, total > (number * PER_PAGE) as i64),
        first: number == 1,
        page: number,
        errors,
        typed,
        can,
        subscribed,
        labels,
        people,
        milestones,
        detailed,
        head,
    })
}

/// One entry; `bodies` yields the rendered comments in order.
fn happened(room: &Room, entry: &Entry, bodies: &mut impl Iterator<Item = Arc<str>>) -> Happened {
    let detail = Detail::read(&entry.kind, &entry.detail);
    let change = |text: String| What::Change { text, to: None };
    let what = match (entry.kind.as_str(), detail, &entry.comment, &entry.source) {
        (_, _, Some(said), _) => What::Said {
            id: said.id.to_string(),
            body: bodies.next().unwrap_or_default(),
            edited: said.edited_at.is_some(),
            can_edit: look::may(&room.visitor.caller(), room.repo(), IssueAction::Edit, entry.actor_id),
        },
        (kind, Detail::Label(LabelDetail { label }), ..) => {
            What::Labelled { label: label.name, colour: label.color, on: kind == "labeled" }
        }
        ("cross-referenced", _, _, Some(source)) => {
            let slug = entry.source_slug.clone().unwrap_or_else(|| room.repo().slug());
            let name = format!("{slug}#{} {}", source.number, source.title);
            let url = format!("/{slug}/issues/{}", source.number);
            What::Change { text: "mentioned this in".into(), to: Some((url, name)) }
        }
        ("referenced" | "closed", detail, ..) if entry.commit.is_some() => {
            let slug = entry.source_slug.clone().unwrap_or_else(|| room.repo().slug());
            let commit = entry.commit.clone().unwrap_or_default();
            let subject = if let Detail::Commit(of) = detail { of.subject } else { String::new() };
            let name = format!("{} {subject}", commit.get(..10).unwrap_or(&commit));
            let text = if entry.kind == "closed" { "closed this with" } else { "mentioned this in" };
            What::Change { text: text.into(), to: Some((format!("/{slug}/commit/{commit}"), name)) }
        }
        ("closed", Detail::State(StateDetail { state_reason: Some(reason) }), ..) => {
            change(format!("closed this as {}", reason.as_str().replace('_', " ")))
        }
        ("closed", ..) => change("closed this".into()),
        ("reopened", ..) => change("reopened this".into()),
        (_, Detail::Title(TitleDetail { from, to }), ..) => {
            change(format!("changed the title from “{from}” to “{to}”"))
        }
        (kind, Detail::Assignee(of), ..) => change(format!("{kind} {}", of.assignee)),
        (kind, Detail::Milestone(MilestoneDetail { milestone }), ..) => change(match kind == "milestoned" {
            true => format!("added this to the {} milestone", milestone.title),
            false => format!("removed this from the {} milestone", milestone.title),
        }),
        (other, ..) => change(other.to_owned()),
    };
    let who = entry.actor_name.as_ref().map_or_else(|| "someone".to_owned(), |name| name.shown().into_owned());
    Happened { who, at: entry.created_at, what }
}
