//! One's deleted repositories, and restoring them.

use crate::App;
use crate::form::Form;
use crate::frame::Frame;
use crate::links::Links;
use crate::member::Member;
use crate::path::PagePath;
use crate::problem::{Problem, sentence};
use crate::respond;
use abide_core::Timestamp;
use abide_forge::repos::{Class, LifeError, Page, Repo, restore, transfer};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

const PER_PAGE: usize = 30;

#[derive(Template)]
#[template(path = "settings/repositories.html")]
struct RepositoriesPage {
    frame: Frame,
    section: &'static str,
    rows: Vec<Row>,
    page: usize,
    links: Links,
    /// Open transfer offers to the visitor.
    offers: i64,
}

struct Row {
    repo: Repo,
    deleted_at: Timestamp,
    until: Timestamp,
    in_time: bool,
    /// Error of the last attempt to restore it.
    error: Option<String>,
    /// The name under which to restore it.
    typed: String,
}

/// A repository that could not be restored.
struct Refused {
    id: String,
    typed: String,
    status: StatusCode,
    error: String,
}

/// `GET /settings/repositories`
pub(super) async fn show(State(app): State<App>, member: Member, page_path: PagePath) -> Result<Response, Problem> {
    Ok(respond::page(&list(&app, &member, &page_path, page_path.page(), None).await?))
}

/// `POST /settings/repositories/restore/{id}`
pub(super) async fn restore(
    State(app): State<App>,
    member: Member,
    page_path: PagePath,
    form: Form,
) -> Result<Response, Problem> {
    let (id, typed) = (page_path.segment(3), form.filled("name"));
    let error = match restore::restore(&app.forge, &member.viewer.caller, id, typed.as_deref()).await {
        Ok(repo) => {
            let folded = typed.as_deref().is_some_and(|typed| repo.name.folds(typed));
            let done = if folded { "restored-folded" } else { "restored" };
            return Ok(respond::see_other(&format!("/{}?done={done}", repo.slug())));
        }
        Err(error) => error,
    };
    let status = match error.class() {
        Class::Invalid(Some(_)) => StatusCode::BAD_REQUEST,
        Class::Conflict => StatusCode::CONFLICT,
        Class::Gone => StatusCode::GONE,
        _ => return Err(error.into()),
    };
    let message = match error {
        LifeError::NameTaken => {
            "you already have another repository with this name; restore this one under a different name".to_owned()
        }
        ref other => other.to_string(),
    };
    let refused = Refused { id: id.to_owned(), typed: typed.unwrap_or_default(), status, error: sentence(&message) };
    let page = form.text("page").parse().unwrap_or(1);
    let shown = list(&app, &member, &page_path, page, Some(&refused)).await?;
    // Errors about repositories outside the list get a page of their own.
    match shown.rows.iter().any(|row| row.error.is_some()) {
        true => Ok(respond::html(refused.status, &shown)),
        false => Err(error.into()),
    }
}

async fn list(
    app: &App,
    member: &Member,
    page_path: &PagePath,
    page: usize,
    refused: Option<&Refused>,
) -> Result<RepositoriesPage, Problem> {
    let page = page.clamp(1, 1_000_000);
    let caller = &member.viewer.caller;
    let wanted = Page { limit: PER_PAGE as i64, offset: ((page - 1) * PER_PAGE) as i64 };
    let (repos, total) = restore::list(&app.forge, caller, wanted).await?;
    let frame = Frame::new(app, &member.visitor, "Deleted repositories");
    let now = frame.now.0;
    let rows = repos.into_iter().filter_map(|repo| {
        let (deleted_at, until) = (repo.deleted_at?, restore::until(&app.forge, &repo)?);
        let refused = refused.filter(|refused| refused.id == repo.id.to_string());
        let typed = refused.map(|refused| refused.typed.clone()).filter(|typed| !typed.is_empty());
        Some(Row {
            deleted_at,
            until,
            in_time: now < until,
            error: refused.map(|refused| refused.error.clone()),
            typed: typed.unwrap_or_else(|| repo.name.to_string()),
            repo,
        })
    });
    Ok(RepositoriesPage {
        section: "repositories",
        rows: rows.collect(),
        links: Links::around("/settings/repositories", page_path, page, total > (page * PER_PAGE) as i64),
        offers: transfer::to_answer(&app.forge, caller).await?,
        page,
        frame,
    })
}
