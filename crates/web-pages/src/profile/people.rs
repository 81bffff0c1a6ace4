//! Followers of a user, and users they follow.

use super::{PER_PAGE, Side};
use crate::App;
use crate::form::Form;
use crate::frame::Frame;
use crate::links::Links;
use crate::path::PagePath;
use crate::repo::Shown;
use crate::respond;
use crate::visitor::Visitor;
use abide_forge::attention::{Part, Person, follow};
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "profile/people.html")]
struct PeoplePage {
    frame: Frame,
    side: Side,
    title: &'static str,
    nobody: &'static str,
    people: Vec<Person>,
    links: Links,
}

/// `GET /{user}/followers`
pub(crate) async fn followers(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let side = Side::of(&app, &visitor, &page_path, "followers").await?;
    let people = follow::followers(&app.forge, side.user.id, part(&page_path)).await?;
    Ok(page(&app, &visitor, &page_path, side, "Followers", people))
}

/// `GET /{user}/following`
pub(crate) async fn following(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let side = Side::of(&app, &visitor, &page_path, "following").await?;
    let people = follow::following(&app.forge, side.user.id, part(&page_path)).await?;
    Ok(page(&app, &visitor, &page_path, side, "Following", people))
}

/// `POST /{user}/followers`: the visitor follows or unfollows the user.
pub(crate) async fn change(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let side = Side::of(&app, &visitor, &page_path, "followers").await?;
    let caller = visitor.caller();
    match form.text("follow").as_str() {
        "0" => follow::unfollow(&app.forge, &caller, &side.user).await?,
        _ => follow::follow(&app.forge, &caller, &side.user).await?,
    };
    Ok(respond::see_other(&format!("/{}", side.name)))
}

/// One more than are shown, to know whether there are older ones.
fn part(page_path: &PagePath) -> Part {
    Part::behind(page_path.behind(), PER_PAGE as i64 + 1)
}

fn page(
    app: &App,
    visitor: &Visitor,
    page_path: &PagePath,
    side: Side,
    title: &'static str,
    mut people: Vec<Person>,
) -> axum::response::Response {
    let links =
        Links::older(&format!("/{}/{}", side.name, side.tab), page_path, &mut people, PER_PAGE, Person::sort_key);
    let nobody =
        if side.tab == "followers" { "This account has no followers." } else { "This account follows no one." };
    let frame = Frame::new(app, visitor, format!("{title} · {}", side.name));
    respond::page(&PeoplePage { frame, side, title, nobody, people, links })
}
