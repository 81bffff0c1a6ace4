//! The topics of a repository.

use super::error::ApiError;
use super::input::Input;
use super::repos;
use super::scoped::Who;
use super::segments::Segments;
use super::shape::TopicNames;
use crate::App;
use abide_core::Topic;
use abide_core::policy::Action;
use abide_forge::repos::topics;
use axum::Json;
use axum::extract::State;

fn shaped(topics: &[Topic]) -> Json<TopicNames> {
    Json(TopicNames { names: topics.iter().map(Topic::to_string).collect() })
}

pub(super) async fn show(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
) -> Result<Json<TopicNames>, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoRead).await?;
    Ok(shaped(&topics::of(&app.forge, &repo).await?))
}

pub(super) async fn replace(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    Input(body): Input<TopicNames>,
) -> Result<Json<TopicNames>, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::RepoRead).await?;
    Ok(shaped(&topics::replace(&app.forge, &caller, &repo, &body.names).await?))
}
