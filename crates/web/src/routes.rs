//! Routes of git, the relay, health and metrics, and the layers around every route of the server.

use crate::{App, git, layers, ops, relay, well_known};
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};

/// Prefix of every path of the REST API.
pub const API: &str = "/api/v3";

/// The whole server: the routes of this crate, and those of pages and the API with their fallback.
pub fn router(app: App, pages_and_api: Router) -> Router {
    let own = routes().into_iter().fold(Router::new(), |router, (path, serve)| router.route(path, serve));
    let relay_layer = from_fn_with_state(app.clone(), relay::relay_requests);
    let public_url = app.forge.settings().public_url.clone();
    layers::around(own.with_state(app).merge(pages_and_api).layer(relay_layer), &public_url)
}

/// Every path of [`routes`], for tests that compare them with reserved names.
pub fn paths() -> Vec<&'static str> {
    routes().into_iter().map(|(path, _)| path).collect()
}

fn routes() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        ("/healthz", get(ops::healthz)),
        ("/readyz", get(ops::readyz)),
        ("/metrics", get(ops::metrics)),
        ("/.well-known/nostr.json", get(well_known::nostr_json)),
        ("/{owner}/{repo}/info/refs", get(git::info_refs)),
        ("/{owner}/{repo}/git-upload-pack", post(git::upload_pack)),
        ("/{owner}/{repo}/git-receive-pack", post(git::receive_pack)),
        ("/r/{repo}/info/refs", get(git::info_refs)),
        ("/r/{repo}/git-upload-pack", post(git::upload_pack)),
        ("/r/{repo}/git-receive-pack", post(git::receive_pack)),
    ]
}
