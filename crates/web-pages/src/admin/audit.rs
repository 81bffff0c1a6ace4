//! The audit log of the site.

use crate::App;
use crate::frame::Frame;
use crate::links::Links;
use crate::member::Admin;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use abide_forge::accounts::admin::{self, AuditFilter, AuditRow};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

const PER_PAGE: usize = 100;

#[derive(Template)]
#[template(path = "admin/audit.html")]
struct AuditPage {
    frame: Frame,
    section: &'static str,
    filter: Typed,
    rows: Vec<AuditRow>,
    links: Links,
}

struct Typed {
    action: String,
    actor: String,
    repo: String,
}

/// `GET /admin/audit`
pub(super) async fn show(State(app): State<App>, by: Admin, page_path: PagePath) -> Result<Response, Problem> {
    let filled = |name: &str| page_path.query(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let filter = AuditFilter { action: filled("action"), actor: filled("actor"), repo: filled("repo") };
    let before = page_path.query("before").and_then(|id| id.parse().ok());
    let mut rows = admin::audit(&app.forge, &by.by, &filter, before, PER_PAGE as i64 + 1).await?;
    let typed = Typed {
        action: filter.action.unwrap_or_default(),
        actor: filter.actor.unwrap_or_default(),
        repo: filter.repo.unwrap_or_default(),
    };
    let links = Links::behind(&mut rows, PER_PAGE, before, |row| row.record.id, |before| link(&typed, before));
    let frame = Frame::new(&app, &by.visitor, "Audit log");
    Ok(respond::page(&AuditPage { frame, section: "audit", filter: typed, rows, links }))
}

/// URL of the page after a row with the same filter; of the first page without a row.
fn link(filter: &Typed, before: Option<i64>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (key, value) in [("action", &filter.action), ("actor", &filter.actor), ("repo", &filter.repo)] {
        if !value.is_empty() {
            query.append_pair(key, value);
        }
    }
    if let Some(id) = before {
        query.append_pair("before", &id.to_string());
    }
    format!("/admin/audit?{}", query.finish())
}
