//! Starring and watching a repository; lists of stargazers and watchers.

use super::head::{Head, Room, Shown};
use crate::App;
use crate::form::Form;
use crate::frame::Frame;
use crate::links::Links;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use crate::show::text;
use crate::visitor::Visitor;
use abide_core::WatchLevel;
use abide_core::policy::Action;
use abide_forge::attention::{Part, Person, star, watch};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

/// Stars and watchers in the header of a repository's pages.
pub(super) struct Attention {
    pub stars: String,
    pub watchers: String,
    pub starred: bool,
    pub level: WatchLevel,
    pub levels: &'static [(WatchLevel, &'static str, &'static str)],
    /// Whether the visitor may star and watch.
    pub can: bool,
    /// Whether the visitor may see the list of watchers.
    pub can_see_watchers: bool,
}

const LEVELS: [(WatchLevel, &str, &str); 3] = [
    (
        WatchLevel::All,
        "All activity",
        "You get notifications for all issues, pull requests and changes of the repository itself, not for pushes.",
    ),
    (
        WatchLevel::Participating,
        "Participating and @mentions",
        "You get notifications for threads you take part in or are mentioned in.",
    ),
    (WatchLevel::Ignore, "Ignore", "You get no notifications, unless someone mentions you."),
];

impl Attention {
    /// Errors count as no star and no watch, because a page without them is better than no page.
    pub(super) async fn of(app: &App, room: &Room) -> Self {
        let (caller, repo) = (room.visitor.caller(), room.repo());
        let starred = star::is_starred(&app.forge, &caller, repo).await.unwrap_or_default();
        let choice = watch::choice(&app.forge, &caller, repo).await.unwrap_or_default();
        Self {
            stars: text::tally(&repo.star_count),
            watchers: text::tally(&repo.watcher_count),
            starred,
            level: WatchLevel::current(choice.map(|choice| choice.level)),
            levels: &LEVELS,
            can: room.may(Action::StarCreate),
            can_see_watchers: room.may(Action::WatcherList),
        }
    }
}

/// `POST /{owner}/{repo}/star`
pub(super) async fn star(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let caller = room.visitor.caller();
    match form.text("starred").as_str() {
        "0" => star::unstar(&app.forge, &caller, room.repo()).await?,
        _ => star::star(&app.forge, &caller, room.repo()).await?,
    };
    Ok(back(&form))
}

/// `POST /{owner}/{repo}/watch`
pub(super) async fn watch(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let level: WatchLevel = form
        .text("level")
        .parse()
        .map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "Choose one of the three levels."))?;
    watch::set(&app.forge, &room.visitor.caller(), room.repo(), level).await?;
    Ok(back(&form))
}

/// Redirects to the page of the button.
fn back(form: &Form) -> Response {
    respond::see_other(respond::safe_next(form.filled("next").as_deref()))
}

#[derive(Template)]
#[template(path = "repo/people.html")]
struct PeoplePage {
    frame: Frame,
    head: Head,
    title: &'static str,
    icon: &'static str,
    since: &'static str,
    nobody: (&'static str, &'static str),
    people: Vec<Person>,
    links: Links,
}

const PER_PAGE: usize = 50;

/// `GET /{owner}/{repo}/stargazers`
pub(super) async fn stargazers(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let mut people = star::stargazers(&app.forge, room.repo(), part(&page_path)).await?;
    let head = room.head(&app, "").await;
    let links = links(&head, "stargazers", &page_path, &mut people);
    Ok(respond::page(&PeoplePage {
        frame: Frame::new(&app, &room.visitor, format!("Stargazers · {}", room.repo().shown())),
        head,
        title: "Stargazers",
        icon: "i-star",
        since: "Starred",
        nobody: ("No stars yet", "People who star it find it in their list of stars."),
        people,
        links,
    }))
}

/// `GET /{owner}/{repo}/watchers`
pub(super) async fn watchers(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let mut people = watch::watchers(&app.forge, &room.visitor.caller(), room.repo(), part(&page_path)).await?;
    let head = room.head(&app, "").await;
    let links = links(&head, "watchers", &page_path, &mut people);
    Ok(respond::page(&PeoplePage {
        frame: Frame::new(&app, &room.visitor, format!("Watchers · {}", room.repo().shown())),
        head,
        title: "Watchers",
        icon: "i-eye",
        since: "Since",
        nobody: ("No watchers yet", "Collaborators watch it as soon as they are added."),
        people,
        links,
    }))
}

/// One more than are shown, to know whether there are older ones.
fn part(page_path: &PagePath) -> Part {
    Part::behind(page_path.behind(), PER_PAGE as i64 + 1)
}

fn links(head: &Head, page: &str, page_path: &PagePath, people: &mut Vec<Person>) -> Links {
    Links::older(&format!("{}/{page}", head.url), page_path, people, PER_PAGE, Person::sort_key)
}
