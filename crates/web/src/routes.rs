//! Which address leads where.

use crate::{App, api, git, layers, ops};
use axum::Router;
use axum::response::IntoResponse;
use axum::routing::{get, post};

/// First segments of every fixed route; none of them can be a user's name.
pub const FIRST_SEGMENTS: &[&str] = &["api", "healthz", "metrics", "r", "readyz"];

/// All routes.
pub fn router(app: App) -> Router {
    let git = Router::new()
        .route("/{owner}/{repo}/info/refs", get(git::info_refs))
        .route("/{owner}/{repo}/git-upload-pack", post(git::upload_pack))
        .route("/{owner}/{repo}/git-receive-pack", post(git::receive_pack))
        .route("/r/{repo}/info/refs", get(git::info_refs))
        .route("/r/{repo}/git-upload-pack", post(git::upload_pack))
        .route("/r/{repo}/git-receive-pack", post(git::receive_pack));
    let ops = Router::new()
        .route("/", get(front))
        .route("/healthz", get(ops::healthz))
        .route("/readyz", get(ops::readyz))
        .route("/metrics", get(ops::metrics));
    let router = Router::new()
        .merge(git)
        .merge(ops)
        .nest("/api/v3", api::router(app.clone()))
        .fallback(not_found)
        .with_state(app);
    layers::around(router)
}

async fn front() -> impl IntoResponse {
    "This is Abide, a git forge. Repositories are at /<owner>/<name>.git, the API is at /api/v3.\n"
}

async fn not_found() -> impl IntoResponse {
    (axum::http::StatusCode::NOT_FOUND, "Not found\n")
}
