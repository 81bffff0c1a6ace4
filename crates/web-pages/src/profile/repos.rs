//! Repositories of a user.

use super::{PER_PAGE, Side};
use crate::App;
use crate::frame::Frame;
use crate::links::Links;
use crate::listed::Listed;
use crate::path::PagePath;
use crate::repo::Shown;
use crate::respond;
use crate::visitor::Visitor;
use abide_forge::repos::{Page, list};
use askama::Template;

#[derive(Template)]
#[template(path = "profile/repos.html")]
struct ReposPage {
    frame: Frame,
    side: Side,
    repos: Vec<Listed>,
    links: Links,
}

pub(super) async fn show(app: &App, visitor: &Visitor, page_path: &PagePath) -> Shown {
    let side = Side::of(app, visitor, page_path, "repos").await?;
    let page = page_path.page();
    let wanted = Page { limit: PER_PAGE as i64, offset: ((page - 1) * PER_PAGE) as i64 };
    let (repos, total) = list::of_owner(&app.forge, &visitor.caller(), side.user.id, wanted).await?;
    let links = Links::around(&format!("/{}", side.name), page_path, page, total > (page * PER_PAGE) as i64);
    let repos = Listed::all(app, visitor, repos).await?;
    Ok(respond::page(&ReposPage { frame: Frame::new(app, visitor, side.name.clone()), side, repos, links }))
}
