//! Stars of a repository and of a user.

use super::error::ApiError;
use super::media::Media;
use super::page::Paged;
use super::scoped::Who;
use super::segments::{Query, Segments};
use super::shape::{self, SimpleUser, Stargazer, Starred};
use super::{repos, user};
use crate::App;
use abide_core::UserId;
use abide_core::policy::Action;
use abide_forge::Caller;
use abide_forge::attention::Kept;
use abide_forge::attention::star::{self, StarOrder};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

/// 204 if the caller stars it, 404 if not.
pub(super) async fn check(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoRead).await?;
    match star::is_starred(&app.forge, &caller, &repo).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::not_found()),
    }
}

pub(super) async fn star(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::StarCreate).await?;
    star::star(&app.forge, &caller, &repo).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn unstar(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::StarCreate).await?;
    star::unstar(&app.forge, &caller, &repo).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn stargazers(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    media: Media,
    paged: Paged,
) -> Result<Response, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoRead).await?;
    let people = star::stargazers(&app.forge, &repo, paged.page()).await?;
    if media == Media::Star {
        let items: Vec<_> = people.iter().map(|person| Stargazer::of(&app, person)).collect();
        return Ok(paged.answer(&app, &items, repo.star_count));
    }
    let items: Vec<_> = people.iter().map(|person| SimpleUser::listed(&app.forge, person)).collect();
    Ok(paged.answer(&app, &items, repo.star_count))
}

/// Order of the list: `sort` is `created` (time of the star) or `updated`, `direction` is `desc` or `asc`. `None` for
/// the default order. Unknown values are ignored, as on GitHub.
fn order(query: &Query) -> Option<StarOrder> {
    match (query.get("sort"), query.get("direction")) {
        (Some("updated"), _) => Some(StarOrder::Updated),
        (_, Some("asc")) => Some(StarOrder::Oldest),
        _ => None,
    }
}

pub(super) async fn mine(
    State(app): State<App>,
    Who(caller): Who,
    query: Query,
    media: Media,
    paged: Paged,
) -> Result<Response, ApiError> {
    let user = user::own(&app, &caller).await?;
    list(&app, &caller, user.id, order(&query), media, &paged).await
}

pub(super) async fn of_user(
    State(app): State<App>,
    Who(caller): Who,
    Segments(name): Segments<String>,
    query: Query,
    media: Media,
    paged: Paged,
) -> Result<Response, ApiError> {
    let user = user::named(&app, &name).await?;
    list(&app, &caller, user.id, order(&query), media, &paged).await
}

async fn list(
    app: &App,
    caller: &Caller,
    user: UserId,
    order: Option<StarOrder>,
    media: Media,
    paged: &Paged,
) -> Result<Response, ApiError> {
    let (kept, total) = match order {
        None => star::of_user(&app.forge, caller, user, paged.page()).await?,
        Some(order) => {
            let query = star::Query { text: String::new(), order };
            star::find_of_user(&app.forge, caller, user, &query, paged.page()).await?
        }
    };
    let shaped = shape::page(app, caller, &repos_of(&kept)).await?;
    if media == Media::Star {
        let with_time = kept.iter().zip(shaped);
        let items: Vec<_> =
            with_time.map(|(kept, repo)| Starred { starred_at: shape::time(kept.since), repo }).collect();
        return Ok(paged.answer(app, &items, total));
    }
    Ok(paged.answer(app, &shaped, total))
}

/// The repositories of a list.
pub(super) fn repos_of(kept: &[Kept]) -> Vec<abide_forge::repos::Repo> {
    kept.iter().map(|kept| kept.repo.clone()).collect()
}
