//! What this server is.

use crate::App;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

pub(super) async fn root(State(app): State<App>) -> Json<Value> {
    let api = |path: &str| app.url(&format!("/api/v3{path}"));
    Json(json!({
        "current_user_url": api("/user"),
        "current_user_repositories_url": api("/user/repos{?per_page,page}"),
        "repository_url": api("/repos/{owner}/{repo}"),
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
