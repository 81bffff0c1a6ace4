//! Facts about this server.

use super::limit::Standing;
use super::scoped::Who;
use crate::App;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

pub(super) async fn root(State(app): State<App>) -> Json<Value> {
    let api = |path: &str| app.url(&format!("/api/v3{path}"));
    Json(json!({
        "current_user_url": api("/user"),
        "current_user_repositories_url": api("/user/repos{?per_page,page}"),
        "issue_search_url": api("/search/issues?q={query}{&page,per_page,sort,order}"),
        "issues_url": api("/issues"),
        "openapi_url": api("/openapi.json"),
        "rate_limit_url": api("/rate_limit"),
        "repository_url": api("/repos/{owner}/{repo}"),
        "repository_search_url": api("/search/repositories?q={query}{&page,per_page,sort}"),
        "user_url": api("/users/{user}"),
        "user_repositories_url": api("/users/{user}/repos{?per_page,page}"),
    }))
}

pub(super) async fn meta(State(app): State<App>) -> Json<Value> {
    Json(json!({
        "verifiable_password_authentication": false,
        "installed_version": env!("CARGO_PKG_VERSION"),
        "software": "abide",
        "ssh_url": app.forge.settings().ssh_url,
    }))
}

/// Rate limits of the caller.
#[derive(Serialize, ToSchema)]
pub(super) struct Rates {
    resources: Resources,
    rate: Standing,
}

/// Rate limits that are counted separately.
#[derive(Serialize, ToSchema)]
struct Resources {
    core: Standing,
}

pub(super) async fn rate_limit(State(app): State<App>, Who(caller): Who) -> Json<Rates> {
    let rate = app.api.standing(&caller);
    Json(Rates { resources: Resources { core: rate }, rate })
}
