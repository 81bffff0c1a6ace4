//! Purgatory: events that wait for git data, and git data that waits for its event.

use crate::App;
use crate::frame::Frame;
use crate::member::Admin;
use crate::problem::Problem;
use crate::respond;
use crate::show::text::{shortened, shown, size, url_segment};
use abide_forge::grasp::status::{self, Contents, ContentsEntry};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

/// Rows of each kind on the page.
const SHOWN: i64 = 200;

#[derive(Template)]
#[template(path = "admin/purgatory.html")]
struct PurgatoryPage {
    frame: Frame,
    section: &'static str,
    counts: [(&'static str, i64); 4],
    bytes: String,
    rows: Vec<Row>,
    most: i64,
}

struct Row {
    entry: ContentsEntry,
    /// URL of the repository's status page, and the identifier as text.
    repo: Option<(String, String)>,
    size: String,
}

impl From<ContentsEntry> for Row {
    fn from(entry: ContentsEntry) -> Self {
        let repo = entry.repo.as_ref().map(|(owner, identifier)| {
            (format!("/{owner}/{}", url_segment(identifier)), shortened(&shown(identifier.as_bytes()), 60).into_owned())
        });
        let bytes = u64::try_from(entry.bytes).unwrap_or(0);
        Self { repo, size: if bytes == 0 { String::new() } else { size(bytes) }, entry }
    }
}

/// `GET /admin/purgatory`
pub(super) async fn show(State(app): State<App>, by: Admin) -> Result<Response, Problem> {
    let Contents { totals, entries } = status::contents(&app.forge, SHOWN).await?;
    Ok(respond::page(&PurgatoryPage {
        frame: Frame::new(&app, &by.visitor, "Pending nostr repositories"),
        section: "purgatory",
        counts: [
            ("Announcements", totals.announcements),
            ("States", totals.states),
            ("Pull requests", totals.pr_events),
            ("Commits without a pull request", totals.placeholders),
        ],
        bytes: size(u64::try_from(totals.bytes).unwrap_or(0)),
        rows: entries.into_iter().map(Row::from).collect(),
        most: SHOWN,
    }))
}
