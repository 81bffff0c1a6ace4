//! The list of issues, with its filter.

use super::filtered;
use crate::App;
use crate::errors::Errors;
use crate::frame::Frame;
use crate::links::Links;
use crate::path::PagePath;
use crate::repo::head::{Elsewhere, Head, Room, Shown};
use crate::repo::nostr::pr_events::Row;
use crate::respond;
use crate::visitor::Visitor;
use abide_core::issues::filter::{Filter, Sort};
use abide_core::policy::Action;
use abide_forge::issues::list::{self, MAX_TOTAL, Wish};
use abide_forge::issues::{Counts, Detailed, State as IssueState, show as look};
use abide_forge::repos::Page;
use abide_forge::threads;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;

#[derive(Template)]
#[template(path = "repo/issues/list.html")]
struct ListPage {
    frame: Frame,
    head: Head,
    errors: Errors,
    typed: String,
    open: Tab,
    closed: Tab,
    issues: Vec<Detailed>,
    /// Whether the filter has only a state.
    plain: bool,
    sorts: Vec<Order>,
    can_open: bool,
    links: Links,
    /// Issues that came by nostr, on the first page.
    by_nostr: Vec<Row>,
    more_by_nostr: Option<String>,
}

/// Link to the list in another state.
struct Tab {
    url: String,
    here: bool,
    /// Number of issues, if it is known without a query.
    count: Option<i64>,
}

/// Link to the list in another order.
struct Order {
    name: &'static str,
    url: String,
    here: bool,
}

const PER_PAGE: usize = 25;

const ORDERS: [(&str, Sort, bool); 6] = [
    ("Newest", Sort::Created, false),
    ("Oldest", Sort::Created, true),
    ("Recently updated", Sort::Updated, false),
    ("Least recently updated", Sort::Updated, true),
    ("Most commented", Sort::Comments, false),
    ("Least commented", Sort::Comments, true),
];

/// `GET /{owner}/{repo}/issues`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let typed = page_path.query("q").unwrap_or_else(|| "is:open".into());
    let (filter, errors) = match Filter::parse(&typed) {
        Ok(filter) => (filter, Errors::none()),
        Err(error) => (Filter { impossible: true, ..Filter::default() }, Errors::at("q", &error.to_string())),
    };
    let number = page_path.page().min(MAX_TOTAL as usize / PER_PAGE);
    let page = Page { limit: PER_PAGE as i64, offset: ((number - 1) * PER_PAGE) as i64 };
    let wish = Wish { filter: filter.clone(), ..Wish::default() };
    let (found, total) = list::list(&app.forge, room.repo(), &wish, page).await?;
    let counts = look::counts(&app.forge, room.repo()).await?;
    let head = room.head(&app, "issues").await;
    let path = format!("{}/issues", head.url);
    let to = |filter: &Filter| filtered(&head.url, &filter.to_string());
    let sorted = |(name, sort, ascending)| Order {
        name,
        url: to(&Filter { sort, ascending, ..filter.clone() }),
        here: (filter.sort, filter.ascending) == (sort, ascending),
    };
    let plain = filter.is_plain();
    let nostr = by_nostr(&app, &room, &page_path, plain && number == 1).await?;
    let more = format!("{path}?nostr={}", nostr_page(&page_path) + 1);
    let failed = errors.has("q");
    let tabs = |state| tab(&filter, state, to(&filter.in_state(state)), plain.then_some(counts));
    Ok(respond::html(
        if failed { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK },
        &ListPage {
            frame: Frame::new(&app, &room.visitor, format!("Issues · {}", room.repo().shown())),
            open: tabs(IssueState::Open),
            closed: tabs(IssueState::Closed),
            issues: look::detailed(&app.forge, found).await?,
            sorts: ORDERS.into_iter().map(sorted).collect(),
            plain,
            can_open: room.offers(Action::IssueCreate),
            links: Links::around(&path, &page_path, number, total > (number * PER_PAGE) as i64),
            more_by_nostr: nostr.more.then_some(more),
            by_nostr: nostr.lines.into_iter().map(Row::from).collect(),
            errors,
            typed,
            head,
        },
    ))
}

/// Issues that came by nostr. Only the unfiltered list has them, because filters do not support them.
async fn by_nostr(app: &App, room: &Room, page_path: &PagePath, shown: bool) -> Result<threads::list::Page, Elsewhere> {
    let governed = threads::governed(&app.forge, room.repo()).await?.filter(|_| shown);
    match governed {
        Some(governed) => {
            let (caller, page) = (room.visitor.caller(), nostr_page(page_path));
            Ok(threads::list::issues(&app.forge, &caller, &governed, page, PER_PAGE).await?)
        }
        None => Ok(threads::list::Page::default()),
    }
}

fn nostr_page(page_path: &PagePath) -> usize {
    page_path.query("nostr").and_then(|page| page.parse().ok()).unwrap_or(1).clamp(1, threads::list::MAX_PAGES)
}

fn tab(filter: &Filter, state: IssueState, url: String, counts: Option<Counts>) -> Tab {
    let count = counts.map(|counts| if state == IssueState::Open { counts.open } else { counts.closed });
    Tab { url, here: filter.state == Some(state), count }
}
