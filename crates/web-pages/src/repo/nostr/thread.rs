//! A nostr thread: an issue, a patch or a pull request with its comments. Read-only: replies are signed in a nostr
//! client.

use super::{badge, governed};
use crate::App;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::repo::head::{Head, Room, Shown};
use crate::repo::issues::rendered;
use crate::repo::view::short;
use crate::respond;
use crate::show::patch;
use crate::show::text::readable;
use crate::visitor::Visitor;
use abide_forge::notify::inbox;
use abide_forge::threads::list::Kind;
use abide_forge::threads::show::{self as threads, Thread, What as Entry};
use abide_nostr::nip19;
use askama::Template;
use axum::extract::State;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "repo/nostr/thread.html")]
struct ThreadPage {
    frame: Frame,
    head: Head,
    thread: Thread,
    shown: String,
    kind: &'static str,
    status: (&'static str, &'static str),
    /// Text as safe HTML.
    body: Arc<str>,
    /// The diff of a patch, as HTML.
    diff: Option<String>,
    change: Option<Change>,
    happened: Vec<Happened>,
}

/// The commit that a pull request proposes.
struct Change {
    oid: String,
    short: String,
    /// URL of the comparison, if the commit was pushed.
    compare: Option<String>,
}

struct Happened {
    id: String,
    author: String,
    shown: String,
    at: i64,
    what: What,
}

enum What {
    Said(Arc<str>),
    Became(&'static str, &'static str),
    Updated(String),
}

/// `GET /{owner}/{repo}/nostr/{event}`
pub(in crate::repo) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let governed = governed(&app, &room).await?;
    let absent = || Problem::absent("This event does not exist here, or belongs to another repository.");
    let id = nip19::parse_event_id(page_path.segment(3)).map_err(|_| absent())?;
    let thread = threads::thread(&app.forge, &room.visitor.caller(), &governed, &id).await?.ok_or_else(absent)?;
    if inbox::opened_thread(&app.forge, &room.visitor.caller(), room.repo(), &thread).await? {
        room.visitor.reads_one();
    }
    let issue = thread.kind == Kind::Issue;
    let head = room.head(&app, if issue { "issues" } else { "pr_events" }).await;
    let patch = (thread.kind == Kind::Patch).then(|| patch::split(&thread.content));
    let text = patch.as_ref().map_or(thread.content.as_str(), |(message, _)| message);
    let (body, happened) = said(&app, &room, text, &thread).await?;
    Ok(respond::page(&ThreadPage {
        frame: Frame::new(&app, &room.visitor, format!("{} · {}", thread.title, room.repo().shown())),
        shown: readable(&thread.author),
        kind: match thread.kind {
            Kind::Issue => "issue",
            Kind::Patch => "patch",
            Kind::PullRequest => "pull request",
        },
        status: badge(thread.status, issue),
        body,
        diff: patch.and_then(|(_, diff)| diff).map(patch::table),
        change: change(&room, &head, &thread),
        happened,
        head,
        thread,
    }))
}

/// The thread's text and its comments, rendered in one slot.
async fn said(app: &App, room: &Room, text: &str, thread: &Thread) -> Result<(Arc<str>, Vec<Happened>), Problem> {
    let comments = thread.entries.iter().filter_map(|entry| match &entry.what {
        Entry::Said(text) => Some(text.clone()),
        Entry::Became(..) | Entry::Updated(_) => None,
    });
    let texts = std::iter::once(text.to_owned()).chain(comments).collect();
    let mut rendered = rendered(app, room, texts).await?.into_iter();
    let body = rendered.next().unwrap_or_default();
    let issue = thread.kind == Kind::Issue;
    let happened = thread.entries.iter().map(|entry| Happened {
        id: entry.id.clone(),
        author: entry.author.clone(),
        shown: readable(&entry.author),
        at: entry.at,
        what: match &entry.what {
            Entry::Said(_) => What::Said(rendered.next().unwrap_or_default()),
            Entry::Became(status) => {
                let (word, class) = badge(*status, issue);
                What::Became(word, class)
            }
            Entry::Updated(commit) => What::Updated(short(commit.as_deref().unwrap_or_default())),
        },
    });
    Ok((body, happened.collect()))
}

/// The head commit of a pull request, with the URL of the comparison if its ref was pushed.
fn change(room: &Room, head: &Head, thread: &Thread) -> Option<Change> {
    let tip = thread.tip.as_ref()?;
    let oid = tip.commit?.to_string();
    let here = room.browser.refs().get(format!("refs/nostr/{}", tip.event).as_bytes());
    let compare = here.filter(|found| found.oid.to_string() == oid).map(|_| {
        let base = tip.merge_base.map_or_else(|| head.default_branch_query.clone(), |base| base.to_string());
        format!("{}/compare/{base}...{oid}", head.url)
    });
    Some(Change { short: short(&oid), oid, compare })
}
