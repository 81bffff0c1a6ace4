//! Combines pages, REST and the other routes of the HTTP server.

use abide_web::App;
use abide_web_api::ApiLimits;
use axum::Router;

/// All routes of the server.
pub(crate) fn router(app: App, limits: ApiLimits) -> Router {
    let pages = abide_web_pages::router(&app, abide_web_api::not_found);
    let api = abide_web_api::router(&app, limits);
    abide_web::router(app, pages.merge(api))
}

#[cfg(test)]
mod tests {
    use abide_core::names::{InvalidName, RESERVED_REPO_NAMES};
    use abide_core::{RepoName, UserName};
    use std::collections::BTreeSet;

    /// First segments of all fixed routes; user names must differ from them.
    const FIRST_SEGMENTS: &[&str] = &[
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

    /// All paths of the router, from its route tables.
    fn paths() -> Vec<String> {
        let outside = abide_web::paths().into_iter().chain(abide_web_pages::page_paths()).map(str::to_owned);
        outside.chain(abide_web_api::api_routes().iter().map(abide_web_api::ApiRoute::full_path)).collect()
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
        let routes = abide_web_api::api_routes();
        let distinct: BTreeSet<_> = routes.iter().map(|route| (route.method, route.path)).collect();
        assert_eq!(distinct.len(), routes.len());
    }

    #[test]
    fn what_changes_something_needs_a_login_and_more_than_a_read_scope() {
        use abide_core::scope::Scope;
        for route in abide_web_api::api_routes().into_iter().filter(|route| route.method != "GET") {
            let closed = matches!(route.access, abide_web_api::Access::Logged(_) | abide_web_api::Access::Both(..));
            assert!(closed, "{route:?} is open to everyone");
            let reads = |scope: &Scope| matches!(scope, Scope::RepoRead | Scope::UserRead | Scope::KeysRead);
            assert!(!route.access.scopes().iter().all(reads), "{route:?} writes with a read scope");
        }
    }

    #[test]
    fn every_route_with_a_secret_is_logged_without_it() {
        for route in abide_web_pages::page_paths().into_iter().filter(|route| route.contains("{token}")) {
            let first = route.split('/').nth(1).unwrap_or_default();
            assert!(abide_web::SECRET_SEGMENTS.contains(&first), "{route}");
        }
    }
}
