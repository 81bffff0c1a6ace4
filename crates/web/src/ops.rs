//! Health and metrics, for whoever runs the server.

use crate::App;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;

/// The process is alive.
pub(crate) async fn healthz() -> impl IntoResponse {
    "ok\n"
}

/// The process can do its work: the database answers and there is room on the disk.
pub(crate) async fn readyz(State(app): State<App>) -> impl IntoResponse {
    match abide_forge::ready::check(&app.forge).await {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(fault) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {fault}\n")),
    }
}

/// Numbers for Prometheus.
pub(crate) async fn metrics(State(app): State<App>) -> impl IntoResponse {
    if let Err(error) = abide_forge::ready::gauge(&app.forge).await {
        tracing::warn!(%error, "could not read gauges from the database");
    }
    if let Err(error) = abide_forge::grasp::measure(&app.forge).await {
        tracing::warn!(%error, "cannot count purgatory entries");
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], (app.metrics)())
}
