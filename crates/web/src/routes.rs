//! Which address leads where.

use crate::{App, api, git, layers, ops, pages, relay, well_known};
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};

/// What every address of the API starts with.
pub const API: &str = "/api/v3";

/// First segments of every fixed route; none of them can be a user's name.
pub const FIRST_SEGMENTS: &[&str] = &[
    ".well-known",
    "admin",
    "api",
    "assets",
    "explore",
    "forgot",
    "healthz",
    "home",
    "invite",
    "login",
    "logout",
    "metrics",
    "new",
    "notifications",
    "r",
    "readyz",
    "reset",
    "search",
    "settings",
    "setup",
    "signup",
    "transfers",
    "trending",
    "verify",
];

/// The address of every page, for tests that walk them.
pub fn page_paths() -> Vec<&'static str> {
    pages::routes().into_iter().map(|(path, _)| path).collect()
}

/// All routes.
pub fn router(app: App) -> Router {
    let router = outside_the_api().into_iter().fold(Router::new(), |router, (path, serve)| router.route(path, serve));
    let door = from_fn_with_state(app.clone(), relay::door);
    let router = router.merge(pages::router(&app)).merge(api::router(&app)).fallback(not_found);
    let public_url = app.forge.settings().public_url.clone();
    layers::around(router.layer(door).with_state(app), &public_url)
}

/// Routes as data, so that tests can walk all of them.
fn outside_the_api() -> Vec<(&'static str, MethodRouter<App>)> {
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

/// Programs are answered in JSON, people in words.
async fn not_found(State(app): State<App>, request: Request) -> Response {
    let path = request.uri().path();
    match path == "/api" || path.starts_with("/api/") {
        true => api::not_found(),
        false => pages::nowhere(app, request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_core::names::{InvalidName, RESERVED_REPO_NAMES};
    use abide_core::{RepoName, UserName};
    use std::collections::BTreeSet;

    /// Every path of the router, from the tables that it is made of.
    fn paths() -> Vec<String> {
        let outside = outside_the_api().into_iter().chain(pages::routes()).map(|(path, _)| path.to_owned());
        outside.chain(api::api_routes().iter().map(api::ApiRoute::full_path)).collect()
    }

    fn is_fixed(segment: &str) -> bool {
        !segment.is_empty() && !segment.starts_with('{')
    }

    fn fixed_first_segments() -> BTreeSet<String> {
        let segments = paths().into_iter().filter_map(|path| path.split('/').nth(1).map(str::to_owned));
        segments.filter(|segment| is_fixed(segment)).collect()
    }

    #[test]
    fn no_user_can_have_the_name_of_a_route() {
        for segment in fixed_first_segments() {
            let refused = segment.parse::<UserName>().unwrap_err();
            assert!(matches!(refused, InvalidName::Reserved | InvalidName::UserAlphabet), "/{segment} is routed");
        }
    }

    #[test]
    fn the_first_segments_are_those_that_are_routed() {
        let listed: BTreeSet<_> = FIRST_SEGMENTS.iter().map(|&segment| segment.to_owned()).collect();
        assert_eq!(fixed_first_segments(), listed);
    }

    #[test]
    fn no_repository_can_have_the_name_of_a_route_below_its_owner() {
        for path in paths() {
            let mut segments = path.split('/').skip(1);
            let (first, second) = (segments.next().unwrap_or_default(), segments.next().unwrap_or_default());
            if !is_fixed(first) && is_fixed(second) {
                assert!(RESERVED_REPO_NAMES.contains(&second), "{path} is routed");
                assert_eq!(second.parse::<RepoName>(), Err(InvalidName::Reserved), "{path} is routed");
            }
        }
    }

    #[test]
    fn no_route_of_the_api_is_declared_twice() {
        let routes = api::api_routes();
        let distinct: BTreeSet<_> = routes.iter().map(|route| (route.method, route.path)).collect();
        assert_eq!(distinct.len(), routes.len());
    }

    #[test]
    fn what_changes_something_needs_a_login_and_more_than_a_read_scope() {
        use abide_core::scope::Scope;
        for route in api::api_routes().into_iter().filter(|route| route.method != "GET") {
            let closed = matches!(route.access, api::Access::Logged(_) | api::Access::Both(..));
            assert!(closed, "{route:?} is open to everyone");
            let reads = |scope: &Scope| matches!(scope, Scope::RepoRead | Scope::UserRead | Scope::KeysRead);
            assert!(!route.access.scopes().iter().all(reads), "{route:?} writes with a read scope");
        }
    }
}
