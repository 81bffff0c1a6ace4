//! Someone's page.

use super::frame::Frame;
use super::links::Links;
use super::path::Address;
use super::problem::Problem;
use super::respond;
use super::visitor::Visitor;
use crate::App;
use abide_core::UserName;
use abide_forge::accounts::{self, User};
use abide_forge::repos::{Page, Repo, list};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "profile.html")]
struct ProfilePage {
    frame: Frame,
    user: User,
    name: String,
    display_name: String,
    repos: Vec<Repo>,
    total: i64,
    links: Links,
}

const PER_PAGE: usize = 30;

/// `GET /{user}`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, address: Address) -> Result<Response, Problem> {
    let asked: UserName = address.segment(0).parse().map_err(|_| Problem::not_found())?;
    let user = accounts::find_by_any_name(&app.forge, &asked).await?.ok_or_else(Problem::not_found)?;
    let name = user.name.as_ref().map(ToString::to_string).unwrap_or_default();
    if name != address.segment(0) {
        return Ok(respond::moved(&format!("/{name}{}", address.raw_query())));
    }
    let page = address.page();
    let wanted = Page { limit: PER_PAGE as i64, offset: ((page - 1) * PER_PAGE) as i64 };
    let (repos, total) = list::of_owner(&app.forge, &visitor.caller(), user.id, wanted).await?;
    Ok(respond::page(&ProfilePage {
        frame: Frame::new(&app, &visitor, name.clone()),
        display_name: user.display_name.clone().unwrap_or_default(),
        links: Links::around(&format!("/{name}"), &address, page, total > (page * PER_PAGE) as i64),
        user,
        name,
        repos,
        total,
    }))
}
