//! Pages of a user: `repos.rs` repositories, `stars.rs` stars, `people.rs` followers and followed users, `activity.rs`
//! events.

pub(super) mod activity;
mod people;
mod repos;
mod stars;

pub(super) use people::{change, followers, following};

use super::path::PagePath;
use super::problem::Problem;
use super::repo::{Elsewhere, Shown};
use super::respond;
use super::visitor::Visitor;
use crate::App;
use crate::show::text;
use abide_core::UserName;
use abide_forge::accounts::{self, User};
use abide_forge::attention::{follow, star};
use abide_forge::repos::{Page, list};
use axum::extract::State;

const PER_PAGE: usize = 30;

/// Sidebar of all pages about a user.
struct Side {
    user: User,
    name: String,
    display_name: String,
    repos: String,
    stars: String,
    followers: String,
    following: String,
    /// Whether the visitor follows the user; `None` if the visitor cannot.
    followed: Option<bool>,
    tab: &'static str,
}

impl Side {
    /// Loads the sidebar of the user in the path. An old name, or the key of an account with a name, redirects to the
    /// same page with the current name.
    async fn of(app: &App, visitor: &Visitor, page_path: &PagePath, tab: &'static str) -> Result<Self, Elsewhere> {
        let found = match page_path.segment(0).parse::<UserName>() {
            Ok(name) => accounts::find_by_any_name(&app.forge, &name).await?,
            Err(_) => accounts::nostr::find(&app.forge, page_path.segment(0)).await?,
        };
        let user = found.ok_or_else(Problem::not_found)?;
        let name = user.handle().map(|handle| handle.to_string()).unwrap_or_default();
        if name != page_path.segment(0) {
            let rest = page_path.raw_rest(1);
            let slash = if rest.is_empty() { "" } else { "/" };
            return Err(Elsewhere::To(respond::moved(&format!("/{name}{slash}{rest}{}", page_path.raw_query()))));
        }
        let (caller, none) = (visitor.caller(), Page { limit: 0, offset: 0 });
        let (_, repos) = list::of_owner(&app.forge, &caller, user.id, none).await?;
        let (_, stars) = star::of_user(&app.forge, &caller, user.id, none).await?;
        let (followers, following) = follow::counts(&app.forge, user.id).await?;
        let followed = match caller.user_id() {
            Some(me) if me != user.id => Some(follow::follows(&app.forge, me, user.id).await?),
            _ => None,
        };
        Ok(Self {
            display_name: user.display_name.clone().unwrap_or_default(),
            repos: text::tally(&repos),
            stars: text::tally(&stars),
            followers: text::tally(&followers),
            following: text::tally(&following),
            user,
            name,
            followed,
            tab,
        })
    }
}

/// `GET /{user}`
pub(super) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    match page_path.query("tab").as_deref() {
        Some("stars") => stars::show(&app, &visitor, &page_path).await,
        _ => repos::show(&app, &visitor, &page_path).await,
    }
}
