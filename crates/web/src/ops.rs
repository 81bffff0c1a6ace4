//! Health checks and metrics for the operator.

use crate::server::MetricsAllow;
use crate::{App, auth, forwarded};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Liveness: the process runs.
pub(crate) async fn healthz() -> impl IntoResponse {
    "ok\n"
}

/// Readiness: the database responds and the disk has free space.
pub(crate) async fn readyz(State(app): State<App>) -> impl IntoResponse {
    match abide_forge::ready::check(&app.forge).await {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(fault) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {fault}\n")),
    }
}

/// Metrics for Prometheus.
pub(crate) async fn metrics(State(app): State<App>, request: Request) -> Response {
    if !may_measure(&request) {
        let refusal = "only clients in server.metrics_allow may read the metrics\n";
        return (StatusCode::FORBIDDEN, refusal).into_response();
    }
    if let Err(error) = abide_forge::ready::gauge(&app.forge).await {
        tracing::warn!(%error, "could not read gauges from the database");
    }
    if let Err(error) = abide_forge::grasp::measure(&app.forge).await {
        tracing::warn!(%error, "cannot count purgatory entries");
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], (app.metrics)()).into_response()
}

/// Whether the client is in `server.metrics_allow`. A forwarded request counts as one of the proxy's client even if the
/// proxy is not trusted: most proxies connect from loopback, which is allowed by default.
fn may_measure(request: &Request) -> bool {
    let Some(client) = auth::peer(request.extensions()) else { return false };
    let Some(MetricsAllow(allowed)) = request.extensions().get::<MetricsAllow>() else { return false };
    let last_hop = forwarded::last_hop(request.headers());
    allowed.iter().any(|network| network.contains(&client.to_canonical()))
        && last_hop.is_none_or(|hop| hop == Some(client))
}
