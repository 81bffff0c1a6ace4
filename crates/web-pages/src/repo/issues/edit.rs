//! Changing the text of an issue or a comment, and deleting a comment.

use super::new::FormPage;
use super::{ask, issue, number};
use crate::App;
use crate::ask::{Question, lines};
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::repo::head::{Elsewhere, Room, Shown};
use crate::respond;
use crate::show::text;
use crate::visitor::Visitor;
use abide_core::UserId;
use abide_core::policy::{DenyCode, IssueAction};
use abide_forge::Access;
use abide_forge::issues::change::{self, Change};
use abide_forge::issues::{Comment, IssueError, comment, show as look};
use axum::extract::State;
use axum::http::StatusCode;

fn ensure(room: &Room, action: IssueAction, author: Option<UserId>) -> Result<(), Problem> {
    if room.visitor.viewer().is_none() {
        return Err(Access::Denied(DenyCode::LoginRequired).into());
    }
    match look::may(&room.visitor.caller(), room.repo(), action, author) {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "Only the author and people with the Write role or above can edit this.",
        )),
    }
}

/// `GET /{owner}/{repo}/issues/{number}/edit`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let issue = issue(&app, &room, &page_path).await?;
    ensure(&room, IssueAction::Edit, issue.author_id)?;
    Ok(respond::page(&page(&app, &room, issue.number, Errors::none(), issue.title, issue.body).await))
}

/// `POST /{owner}/{repo}/issues/{number}/edit`
pub(super) async fn save(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let number = number(&page_path)?;
    let (title, body) = (form.text("title"), form.text("body"));
    let to = Change { title: Some(title.clone()), body: Some(body.clone()), ..Change::default() };
    match change::change(&app.forge, &room.visitor.caller(), room.repo(), number, to).await {
        Ok(_) => Ok(respond::see_other(&format!("/{}/issues/{number}?done=saved", room.repo().slug()))),
        Err(error @ IssueError::Invalid { .. }) => {
            let errors = Errors::of(&["title", "body"], &error);
            Ok(respond::form_again(&page(&app, &room, number, errors, title, body).await))
        }
        Err(error) => Err(error.into()),
    }
}

async fn page(app: &App, room: &Room, number: i64, errors: Errors, title: String, body: String) -> FormPage {
    let head = room.head(app, "issues").await;
    FormPage {
        frame: Frame::new(app, &room.visitor, format!("Edit issue {number} · {}", room.repo().shown())),
        errors,
        heading: format!("Edit issue {number}"),
        action: format!("{}/issues/{number}/edit", head.url),
        back: format!("{}/issues/{number}", head.url),
        title: Some(title),
        body,
        button: "Save",
        head,
    }
}

/// The comment in the path; it must belong to the issue in the path.
async fn said(app: &App, room: &Room, page_path: &PagePath) -> Result<Comment, Elsewhere> {
    let found = comment::show(&app.forge, room.repo(), page_path.segment(5)).await?;
    match found.number == number(page_path)? {
        true => Ok(found),
        false => Err(Problem::absent("This comment does not exist.").into()),
    }
}

/// `GET /{owner}/{repo}/issues/{number}/comments/{id}`
pub(super) async fn show_comment(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let found = said(&app, &room, &page_path).await?;
    ensure(&room, IssueAction::Edit, found.author_id)?;
    let body = found.body.clone();
    Ok(respond::page(&comment_page(&app, &room, &found, Errors::none(), body).await))
}

/// `POST /{owner}/{repo}/issues/{number}/comments/{id}`
pub(super) async fn save_comment(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let found = said(&app, &room, &page_path).await?;
    let body = form.text("body");
    match comment::edit(&app.forge, &room.visitor.caller(), room.repo(), &found.id.to_string(), &body).await {
        Ok(_) => {
            let to = format!("/{}/issues/{}?done=saved#comment-{}", room.repo().slug(), found.number, found.id);
            Ok(respond::see_other(&to))
        }
        Err(error @ IssueError::Invalid { .. }) => {
            let errors = Errors::of(&["body"], &error);
            Ok(respond::form_again(&comment_page(&app, &room, &found, errors, body).await))
        }
        Err(error) => Err(error.into()),
    }
}

async fn comment_page(app: &App, room: &Room, comment: &Comment, errors: Errors, body: String) -> FormPage {
    let head = room.head(app, "issues").await;
    let at = format!("{}/issues/{}", head.url, comment.number);
    FormPage {
        frame: Frame::new(app, &room.visitor, format!("Edit comment · {}", room.repo().shown())),
        errors,
        heading: format!("Edit comment on issue {}", comment.number),
        action: format!("{at}/comments/{}", comment.id),
        back: at,
        title: None,
        body,
        button: "Save",
        head,
    }
}

/// Characters of a comment on the page that confirms its deletion.
const EXCERPT: usize = 200;

/// `GET /{owner}/{repo}/issues/{number}/comments/{id}/remove`
pub(super) async fn ask_remove(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let found = said(&app, &room, &page_path).await?;
    ensure(&room, IssueAction::Remove, found.author_id)?;
    let (issue, page) = (format!("/{}/issues/{}", room.repo().slug(), found.number), page_path.page());
    let question = Question {
        title: "Delete this comment?".into(),
        about: text::shortened(&found.body, EXCERPT).into_owned(),
        consequences: lines([
            "It disappears for everyone. Mails already sent are not affected.",
            "This cannot be undone.",
        ]),
        action: format!("{issue}/comments/{}/remove", found.id),
        button: "Delete comment".into(),
        back: format!("{issue}?page={page}#comment-{}", found.id),
        hidden: vec![("page", page.to_string())],
        ..Question::default()
    };
    Ok(ask::ask(&app, &room, question).await)
}

/// `POST /{owner}/{repo}/issues/{number}/comments/{id}/remove`
pub(super) async fn remove_comment(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let found = said(&app, &room, &page_path).await?;
    comment::remove(&app.forge, &room.visitor.caller(), room.repo(), &found.id.to_string()).await?;
    let page = form.text("page").parse::<usize>().ok().filter(|&page| page > 1);
    let page = page.map(|page| format!("&page={page}")).unwrap_or_default();
    Ok(respond::see_other(&format!("/{}/issues/{}?done=removed{page}", room.repo().slug(), found.number)))
}
