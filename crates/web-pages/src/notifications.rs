//! The inbox: notifications, marking and muting them, and the unsubscribe link of mails.

use super::Route;
use super::form::Form;
use super::frame::Frame;
use super::links::Links;
use super::member::Member;
use super::path::PagePath;
use super::problem::Problem;
use super::respond;
use super::visitor::Visitor;
use crate::App;
use abide_core::{RepoId, Timestamp};
use abide_forge::Access;
use abide_forge::attention::Part;
use abide_forge::notify::{Filter, Item, Reason, State as Seen, Subject, Waiting, inbox, unsubscribe};
use abide_forge::repos::transfer;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};

/// Paths below it need neither a sign-in nor a form token: the secret in the URL identifies the recipient of the mail.
pub(super) const UNSUBSCRIBE: &str = "/notifications/unsubscribe/";

const PER_PAGE: usize = 50;

pub(super) fn routes() -> Vec<Route> {
    vec![
        ("/notifications", get(show).post(mark_all)),
        ("/notifications/{id}/open", post(open)),
        ("/notifications/{id}/read", post(read)),
        ("/notifications/{id}/done", post(done)),
        ("/notifications/{id}/mute", post(mute)),
        ("/notifications/{id}/unmute", post(unmute)),
        ("/notifications/unsubscribe/{token}", get(ask_unsubscribe).post(end)),
    ]
}

/// Short text of a notification's reason.
pub(super) fn because(reason: Reason) -> &'static str {
    match reason {
        Reason::ReviewRequested => "Review requested",
        Reason::Mention => "Mentioned",
        Reason::Assign => "Assigned",
        Reason::Lifecycle => "Repository change",
        Reason::Author => "Author",
        Reason::Comment | Reason::Manual => "Subscribed",
        Reason::Watching => "Watching",
    }
}

/// One row of the inbox.
struct Row {
    item: Item,
    slug: String,
    why: &'static str,
    unread: bool,
    /// URL of the thread. Notifications about a repository have none: a button opens them.
    link: Option<String>,
}

impl Row {
    fn of(item: Item) -> Self {
        let slug = item.repo.slug();
        let event = item.event.as_ref().map(|(id, _)| format!("/{slug}/nostr/{id}"));
        let link = item.issue.map(|(number, _)| format!("/{slug}/issues/{number}")).or(event);
        Self { why: because(item.reason), unread: item.state == Seen::Unread, link, slug, item }
    }
}

#[derive(Template)]
#[template(path = "notifications/inbox.html")]
struct InboxPage {
    frame: Frame,
    rows: Vec<Row>,
    waiting: Vec<Waiting>,
    all: bool,
    repo: Option<RepoId>,
    /// Time of the page, in microseconds: "Mark all as read" leaves later notifications unread.
    until: i64,
    /// URL that the forms return to.
    back: String,
    links: Links,
}

impl InboxPage {
    fn only(&self, waiting: &Waiting) -> bool {
        self.repo == Some(waiting.repo)
    }
}

fn asked(page_path: &PagePath) -> Filter {
    let repo = page_path.query("repo").and_then(|text| text.parse().ok());
    Filter { all: page_path.query("all").is_some(), repo, ..Filter::default() }
}

fn path_of(filter: &Filter) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if filter.all {
        query.append_pair("all", "1");
    }
    if let Some(repo) = filter.repo {
        query.append_pair("repo", &repo.to_string());
    }
    match query.finish() {
        query if query.is_empty() => "/notifications".into(),
        query => format!("/notifications?{query}"),
    }
}

/// `GET /notifications`
async fn show(State(app): State<App>, member: Member, page_path: PagePath) -> Result<Response, Problem> {
    let (caller, filter) = (&member.viewer.caller, asked(&page_path));
    let part = Part::behind(page_path.behind(), PER_PAGE as i64 + 1);
    let mut items = inbox::list(&app.forge, caller, filter, part).await?;
    let waiting = inbox::waiting(&app.forge, caller).await?;
    let links = Links::older("/notifications", &page_path, &mut items, PER_PAGE, Item::sort_key);
    let frame = Frame::new(&app, &member.visitor, "Notifications");
    let until = frame.now.0.micros();
    let rows = items.into_iter().map(Row::of).collect();
    let (all, repo, back) = (filter.all, filter.repo, path_of(&filter));
    Ok(respond::page(&InboxPage { frame, rows, waiting, all, repo, until, back, links }))
}

/// URL of the inbox with the filter of the form's page; other URLs are not accepted.
fn back(form: &Form) -> String {
    let asked = form.text("back");
    let query = asked.strip_prefix("/notifications?").unwrap_or_default();
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let find = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let repo = find("repo").and_then(|text| text.parse().ok());
    path_of(&Filter { all: find("all").is_some(), repo, ..Filter::default() })
}

/// `POST /notifications`: marks everything that the page could show as read.
async fn mark_all(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    let until = form.text("until").parse().ok().map(Timestamp::from_micros);
    let repo = form.filled("repo").and_then(|text| text.parse().ok());
    inbox::mark_all(&app.forge, &member.viewer.caller, repo, until).await?;
    Ok(respond::see_other(&back(&form)))
}

async fn found(app: &App, member: &Member, page_path: &PagePath) -> Result<Item, Access> {
    inbox::show(&app.forge, &member.viewer.caller, page_path.segment(1)).await
}

/// `POST /notifications/{id}/open`: marks the notification as read and redirects to its subject.
async fn open(State(app): State<App>, member: Member, page_path: PagePath, _: Form) -> Result<Response, Problem> {
    let item = found(&app, &member, &page_path).await?;
    inbox::mark(&app.forge, &member.viewer.caller, &item, Seen::Read).await?;
    // All changes of a repository share one thread. An open offer takes precedence over the latest change, because it
    // needs an answer.
    let offer = match item.subject {
        Subject::Repo => transfer::pending_with(&app.forge, &member.viewer.caller, item.repo.id).await?,
        Subject::Issue | Subject::NostrThread => None,
    };
    let row = Row::of(item);
    let link = offer.map(|offer| format!("/transfers/{offer}")).or(row.link);
    Ok(respond::see_other(&link.unwrap_or_else(|| format!("/{}", row.slug))))
}

/// `POST /notifications/{id}/read`
async fn read(State(app): State<App>, member: Member, page_path: PagePath, form: Form) -> Result<Response, Problem> {
    let item = found(&app, &member, &page_path).await?;
    inbox::mark(&app.forge, &member.viewer.caller, &item, Seen::Read).await?;
    Ok(respond::see_other(&back(&form)))
}

/// `POST /notifications/{id}/done`
async fn done(State(app): State<App>, member: Member, page_path: PagePath, form: Form) -> Result<Response, Problem> {
    let item = found(&app, &member, &page_path).await?;
    inbox::mark(&app.forge, &member.viewer.caller, &item, Seen::Done).await?;
    Ok(respond::see_other(&back(&form)))
}

/// `POST /notifications/{id}/mute`
async fn mute(State(app): State<App>, member: Member, page_path: PagePath, form: Form) -> Result<Response, Problem> {
    set_muted(&app, &member, &page_path, &form, true).await
}

/// `POST /notifications/{id}/unmute`
async fn unmute(State(app): State<App>, member: Member, page_path: PagePath, form: Form) -> Result<Response, Problem> {
    set_muted(&app, &member, &page_path, &form, false).await
}

async fn set_muted(
    app: &App,
    member: &Member,
    page_path: &PagePath,
    form: &Form,
    muted: bool,
) -> Result<Response, Problem> {
    let item = found(app, member, page_path).await?;
    let caller = &member.viewer.caller;
    inbox::set_muted(&app.forge, caller, &item, muted).await?;
    if muted {
        inbox::mark(&app.forge, caller, &item, Seen::Read).await?;
    }
    Ok(respond::see_other(&back(form)))
}

#[derive(Template)]
#[template(path = "notifications/unsubscribe.html")]
struct UnsubscribePage {
    frame: Frame,
    token: String,
    ended: bool,
}

fn no_link_of_ours() -> Problem {
    let detail = "This unsubscribe link is invalid or incomplete. Nothing was changed. Copy the whole link from the \
        mail, or sign in and change your notification settings.";
    Problem::new(StatusCode::FORBIDDEN, detail)
}

/// `GET /notifications/unsubscribe/{token}`: asks only, because programs follow links in mails.
async fn ask_unsubscribe(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Result<Response, Problem> {
    let token = page_path.segment(2).to_owned();
    match unsubscribe::is_good(&app.forge, &token).await? {
        true => {
            let frame = Frame::new(&app, &visitor, "Unsubscribe");
            Ok(respond::page(&UnsubscribePage { frame, token, ended: false }))
        }
        false => Err(no_link_of_ours()),
    }
}

/// `POST /notifications/unsubscribe/{token}`: by the button, or by the recipient's mail program.
async fn end(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Result<Response, Problem> {
    let token = page_path.segment(2).to_owned();
    match unsubscribe::unsubscribe(&app.forge, &token).await? {
        true => {
            let frame = Frame::new(&app, &visitor, "Unsubscribed");
            Ok(respond::page(&UnsubscribePage { frame, token, ended: true }))
        }
        false => Err(no_link_of_ours()),
    }
}
