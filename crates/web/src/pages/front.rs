//! The front page: one's own repositories, or what this place is.

use super::explore;
use super::frame::Frame;
use super::links::Links;
use super::path::Address;
use super::problem::Problem;
use super::respond;
use super::visitor::Visitor;
use crate::App;
use abide_forge::repos::search::Sort;
use abide_forge::repos::{Page, Repo, list, transfer};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "front.html")]
struct FrontPage {
    frame: Frame,
    repos: Vec<Repo>,
}

#[derive(Template)]
#[template(path = "dashboard.html")]
struct Dashboard {
    frame: Frame,
    repos: Vec<Repo>,
    page: usize,
    links: Links,
    /// How many repositories wait for the visitor to take them.
    offers: i64,
}

const PER_PAGE: usize = 30;
/// So many are shown to strangers.
const RECENT: i64 = 10;

/// `GET /`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, address: Address) -> Result<Response, Problem> {
    let Some(user) = visitor.user() else {
        let page = Page { limit: RECENT, offset: 0 };
        let (repos, _) = explore::find(&app, &visitor, "", "", Sort::Updated, page).await?;
        return Ok(respond::page(&FrontPage { frame: Frame::new(&app, &visitor, "A git forge"), repos }));
    };
    let page = address.page();
    let wanted = Page { limit: PER_PAGE as i64, offset: ((page - 1) * PER_PAGE) as i64 };
    let (repos, total) = list::of_member(&app.forge, user.id, wanted).await?;
    Ok(respond::page(&Dashboard {
        frame: Frame::new(&app, &visitor, "Your repositories"),
        links: Links::around("/", &address, page, total > (page * PER_PAGE) as i64),
        offers: transfer::to_answer(&app.forge, &visitor.caller()).await?,
        repos,
        page,
    }))
}
