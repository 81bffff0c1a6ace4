//! The front page: the visitor's feed and repositories, or a description of the site.

use super::frame::Frame;
use super::links::Links;
use super::listed::Listed;
use super::path::PagePath;
use super::problem::Problem;
use super::respond;
use super::visitor::Visitor;
use super::{explore, feed};
use crate::App;
use crate::show::sentence::Sentence;
use abide_forge::accounts::setup;
use abide_forge::feeds::Feed;
use abide_forge::repos::{Page, list, transfer};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "front.html")]
struct FrontPage {
    frame: Frame,
    repos: Vec<Listed>,
    /// No account exists yet.
    needs_set_up: bool,
}

#[derive(Template)]
#[template(path = "home/repos.html")]
struct ReposPage {
    frame: Frame,
    tab: &'static str,
    repos: Vec<Listed>,
    page: usize,
    links: Links,
    /// Open transfer offers to the visitor.
    offers: i64,
}

#[derive(Template)]
#[template(path = "home/activity.html")]
struct HomePage {
    frame: Frame,
    tab: &'static str,
    sentences: Vec<Sentence>,
    links: Links,
    /// Some repositories of the visitor, for the sidebar.
    repos: Vec<Listed>,
    offers: i64,
}

const PER_PAGE: usize = 30;
/// Repositories in the sidebar.
const BESIDE: i64 = 10;
/// Repositories on the front page of visitors who are not signed in.
const RECENT: i64 = 10;

/// `GET /`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Result<Response, Problem> {
    let Some(user) = visitor.user() else {
        let page = Page { limit: RECENT, offset: 0 };
        let repos = explore::latest(&app, &visitor, page).await?;
        let repos = Listed::all(&app, &visitor, repos).await?;
        return Ok(respond::page(&FrontPage {
            frame: Frame::new(&app, &visitor, "Git hosting where links never break"),
            repos,
            needs_set_up: setup::is_needed(&app.forge).await?,
        }));
    };
    let offers = transfer::to_answer(&app.forge, &visitor.caller()).await?;
    let in_pages = page_path.query("page").is_some() || page_path.query_text("tab") == "repositories";
    if !in_pages {
        let (sentences, links) = feed::page(&app, &visitor.caller(), Feed::Home(user.id), "/", &page_path).await?;
        let (repos, _) = list::of_member(&app.forge, user.id, Page { limit: BESIDE, offset: 0 }).await?;
        let repos = Listed::all(&app, &visitor, repos).await?;
        let frame = Frame::new(&app, &visitor, "Home");
        return Ok(respond::page(&HomePage { frame, tab: "activity", sentences, links, repos, offers }));
    }
    let page = page_path.page();
    let wanted = Page { limit: PER_PAGE as i64, offset: ((page - 1) * PER_PAGE) as i64 };
    let (repos, total) = list::of_member(&app.forge, user.id, wanted).await?;
    let repos = Listed::all(&app, &visitor, repos).await?;
    Ok(respond::page(&ReposPage {
        frame: Frame::new(&app, &visitor, "Your repositories"),
        links: Links::around("/", &page_path, page, total > (page * PER_PAGE) as i64),
        tab: "repositories",
        offers,
        repos,
        page,
    }))
}
