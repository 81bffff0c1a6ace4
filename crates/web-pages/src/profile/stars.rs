//! Stars of a user: latest first, or searched and sorted.

use super::{PER_PAGE, Side};
use crate::App;
use crate::frame::Frame;
use crate::links::Links;
use crate::listed::Listed;
use crate::path::PagePath;
use crate::repo::Shown;
use crate::respond;
use crate::visitor::Visitor;
use abide_forge::attention::star::{self, Query, StarOrder};
use abide_forge::attention::{Kept, Part};
use abide_forge::repos::Page;
use askama::Template;

#[derive(Template)]
#[template(path = "profile/stars.html")]
struct StarsPage {
    frame: Frame,
    side: Side,
    query: String,
    order: StarOrder,
    orders: &'static [(StarOrder, &'static str)],
    repos: Vec<Listed>,
    links: Links,
}

const ORDERS: [(StarOrder, &str); 5] = [
    (StarOrder::Starred, "Recently starred"),
    (StarOrder::Oldest, "First starred"),
    (StarOrder::Updated, "Recently changed"),
    (StarOrder::Stars, "Most stars"),
    (StarOrder::Name, "Name"),
];

pub(super) async fn show(app: &App, visitor: &Visitor, page_path: &PagePath) -> Shown {
    let side = Side::of(app, visitor, page_path, "stars").await?;
    let (caller, user) = (visitor.caller(), side.user.id);
    let (query, order) =
        (page_path.query_text("q"), page_path.query_text("sort").parse().unwrap_or(StarOrder::Starred));
    let path = format!("/{}", side.name);
    let (kept, links) = if query.trim().is_empty() && order == StarOrder::Starred {
        let part = Part::behind(page_path.behind(), PER_PAGE as i64 + 1);
        let (mut kept, _) = star::of_user(&app.forge, &caller, user, part).await?;
        let links = Links::older(&path, page_path, &mut kept, PER_PAGE, Kept::sort_key);
        (kept, links)
    } else {
        let page = page_path.page();
        let wanted = Page { limit: PER_PAGE as i64, offset: ((page - 1) * PER_PAGE) as i64 };
        let asked = Query { text: query.clone(), order };
        let (kept, total) = star::find_of_user(&app.forge, &caller, user, &asked, wanted).await?;
        (kept, Links::around(&path, page_path, page, total > (page * PER_PAGE) as i64))
    };
    let repos = Listed::all(app, visitor, kept.into_iter().map(|kept| kept.repo).collect()).await?;
    let frame = Frame::new(app, visitor, format!("Stars · {}", side.name));
    Ok(respond::page(&StarsPage { frame, side, query, order, orders: &ORDERS, repos, links }))
}
