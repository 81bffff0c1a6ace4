//! Comparison of two branches, tags or commits.

use super::commit::asked_file;
use super::head::{Elsewhere, Head, Room, Shown};
use super::view::CommitLine;
use crate::App;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::respond;
use crate::show::diff::Shown as DiffShown;
use crate::show::text::count;
use crate::visitor::Visitor;
use abide_forge::browse::{BrowseError, Comparison};
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/compare.html")]
struct ComparePage {
    frame: Frame,
    head: Head,
    base: String,
    head_name: String,
    /// Suggested branches and tags, up to a limit.
    names: Vec<String>,
    result: Option<Compared>,
    trouble: Option<String>,
}

struct Compared {
    distance: String,
    commits: Vec<CommitLine>,
    diff: DiffShown,
    newest: String,
}

const MAX_SUGGESTIONS: usize = 200;

/// `GET /{owner}/{repo}/compare/{base}...{head}`: the form that people type.
pub(super) async fn spec(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let spec = String::from_utf8_lossy(&page_path.rest(3)).into_owned();
    let (base, head) = spec.split_once("...").or_else(|| spec.split_once("..")).unwrap_or(("", &spec));
    let base = if base.is_empty() { room.repo().default_branch.short() } else { base };
    page(&app, &room, base, head, asked_file(&page_path)).await
}

/// `GET /{owner}/{repo}/compare?base=…&head=…`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    page(&app, &room, &page_path.query_text("base"), &page_path.query_text("head"), asked_file(&page_path)).await
}

async fn page(app: &App, room: &Room, base: &str, head: &str, file: Option<usize>) -> Shown {
    let (result, trouble) = match base.is_empty() || head.is_empty() {
        true => (None, None),
        false => match compare(room, base, head, file).await {
            Ok(compared) => (Some(compared), None),
            Err(BrowseError::Fault(fault)) => return Err(Elsewhere::from(fault)),
            Err(error) => (None, Some(error.to_string())),
        },
    };
    Ok(respond::page(&ComparePage {
        frame: Frame::new(app, &room.visitor, format!("Compare · {}", room.repo().shown())),
        head: room.head(app, "branches").await,
        base: base.to_owned(),
        head_name: head.to_owned(),
        names: ref_names(room),
        result,
        trouble,
    }))
}

fn ref_names(room: &Room) -> Vec<String> {
    let of_kind = |prefix: &'static str| {
        let refs = room.browser.refs().prefixed(prefix.as_bytes()).take(MAX_SUGGESTIONS);
        refs.filter_map(move |found| std::str::from_utf8(&found.name).ok()?.strip_prefix(prefix).map(str::to_owned))
    };
    of_kind("refs/heads/").chain(of_kind("refs/tags/")).collect()
}

async fn compare(room: &Room, base: &str, head: &str, file: Option<usize>) -> Result<Compared, BrowseError> {
    let encoded = |name: &str| form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>();
    let here = format!("/{}/compare?base={}&head={}&file=", room.repo().slug(), encoded(base), encoded(head));
    let (from, to) = (room.browser.revision(base).await?, room.browser.revision(head).await?);
    let comparison = room.browser.compare(from.commit, to.commit).await?;
    Ok(Compared {
        distance: distance(&comparison, base),
        commits: comparison.commits.iter().map(CommitLine::from).collect(),
        diff: DiffShown::of(&comparison.diff, &here, file),
        newest: to.commit.to_string(),
    })
}

fn distance(comparison: &Comparison, base: &str) -> String {
    let distance = comparison.distance;
    let more = if distance.exact { "" } else { "at least " };
    let ahead = count(distance.ahead, "commit", "commits");
    match distance.behind {
        0 => format!("{more}{ahead} ahead of {base}"),
        behind => {
            let behind = count(behind, "commit", "commits");
            format!("{more}{ahead} ahead of {base}, {behind} behind")
        }
    }
}
