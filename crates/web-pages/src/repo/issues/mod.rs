//! The pages of a repository's issues. Every form works without a script.

mod ask;
mod edit;
mod labels;
mod list;
mod milestones;
mod new;
mod show;
mod side;

use super::head::{Elsewhere, Room};
use crate::App;
use crate::Route;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::show::markdown::Base;
use abide_forge::issues::{Issue, show as look};
use axum::routing::{get, post};
use std::sync::Arc;

pub(super) fn routes() -> Vec<Route> {
    vec![
        ("/{owner}/{repo}/issues", get(list::show)),
        ("/{owner}/{repo}/issues/new", get(new::show).post(new::open)),
        ("/{owner}/{repo}/issues/{number}", get(show::show).post(show::say)),
        ("/{owner}/{repo}/issues/{number}/edit", get(edit::show).post(edit::save)),
        ("/{owner}/{repo}/issues/{number}/comments/{id}", get(edit::show_comment).post(edit::save_comment)),
        ("/{owner}/{repo}/issues/{number}/comments/{id}/remove", get(edit::ask_remove).post(edit::remove_comment)),
        ("/{owner}/{repo}/issues/{number}/labels", post(side::labels)),
        ("/{owner}/{repo}/issues/{number}/assignees", post(side::assignees)),
        ("/{owner}/{repo}/issues/{number}/milestone", post(side::milestone)),
        ("/{owner}/{repo}/issues/{number}/subscription", post(side::subscription)),
        ("/{owner}/{repo}/labels", get(labels::show).post(labels::save)),
        ("/{owner}/{repo}/labels/remove", get(labels::ask).post(labels::remove)),
        ("/{owner}/{repo}/milestones", get(milestones::show).post(milestones::save)),
        ("/{owner}/{repo}/milestones/remove", get(milestones::ask).post(milestones::remove)),
    ]
}

/// Issue number in the path; 404 if it is not a number.
fn number(page_path: &PagePath) -> Result<i64, Problem> {
    look::number_of(page_path.segment(3)).ok_or_else(|| Problem::absent("This issue does not exist."))
}

async fn issue(app: &App, room: &Room, page_path: &PagePath) -> Result<Issue, Elsewhere> {
    Ok(look::show(&app.forge, room.repo(), page_path.segment(3)).await?)
}

/// Markdown of issues and comments as sanitised HTML.
pub(super) async fn rendered(app: &App, room: &Room, texts: Vec<String>) -> Result<Vec<Arc<str>>, Problem> {
    let repo = room.repo();
    let base = Base { repo: repo.slug(), at: repo.default_branch.short().to_owned(), dir: Vec::new() };
    app.rendered.said(room.visitor.ip(), texts, base, app.forge.settings().public_url.clone()).await
}

/// URL of the list with a filter.
fn filtered(repo_url: &str, filter: &str) -> String {
    let query: String = form_urlencoded::byte_serialize(filter.as_bytes()).collect();
    format!("{repo_url}/issues?q={query}")
}
