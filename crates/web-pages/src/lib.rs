//! ROAD: HTML pages, rendered on the server and complete without JavaScript.
//!
//! * `visitor.rs`: the visitor of a page, by cookie; `dress.rs`: layers around every page (headers, error pages).
//! * `sign.rs`: forms that a nostr key signs. `form.rs`: the only way to read a form; it checks the CSRF token.
//!   `frame.rs`: data of the layout.
//! * `ask.rs`: confirmation of an action that a second click does not undo.
//! * `problem.rs`: error pages; the errors of all use cases are mapped there.
//! * `accounts/`: sign-in and sign-up. `settings/`: the visitor's account. `admin/`: site administration. `member.rs`:
//!   access to these.
//! * `transfers.rs`: transfer offers. `notifications.rs`: the inbox. `profile/`: pages of a user.
//! * `feed.rs`: feeds of events, as pages and as Atom.
//! * `repo/`: everything below `/{owner}/{repo}`; one file per page elsewhere.
//!
//! `crate::show` formats times, sizes, Markdown and source code.

mod accounts;
mod admin;
mod api_docs;
mod app;
mod ask;
mod assets;
mod dress;
mod errors;
mod explore;
mod feed;
mod form;
mod frame;
mod front;
mod links;
mod listed;
mod member;
mod new_repo;
mod notifications;
mod path;
mod problem;
mod profile;
mod repo;
mod respond;
mod settings;
mod show;
mod sign;
mod transfers;
mod visitor;

use abide_web::{compress, held};
use app::App;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, get};

pub(crate) use problem::Problem;

/// Path and handler of a page.
pub(crate) type Route = (&'static str, MethodRouter<App>);

/// All pages with their layers. `api_not_found` answers unknown paths of the API with JSON; other unknown paths get a
/// page.
pub fn router(web: &abide_web::App, api_not_found: fn() -> Response) -> Router {
    let app = App::new(web.clone());
    let not_found = async move |State(app): State<App>, request: Request| {
        let path = request.uri().path();
        match path == "/api" || path.starts_with("/api/") {
            true => api_not_found(),
            false => dress::nowhere(app, request).await,
        }
    };
    let pages = routes().into_iter().fold(Router::new(), |router, (path, serve)| router.route(path, serve));
    let dressed = pages.layer(from_fn_with_state(app.clone(), dress::dress));
    dressed.layer(from_fn(held::hold)).layer(from_fn(compress::compress)).fallback(not_found).with_state(app)
}

/// Paths of all pages, for tests that visit them.
pub fn page_paths() -> Vec<&'static str> {
    routes().into_iter().map(|(path, _)| path).collect()
}

fn routes() -> Vec<Route> {
    let mut all = vec![
        ("/", get(front::show)),
        ("/assets/{name}", get(assets::serve)),
        ("/api/docs", get(api_docs::show)),
        ("/explore", get(explore::show)),
        ("/explore/activity", get(feed::explore)),
        ("/explore/atom", get(feed::explore_atom)),
        ("/trending", get(feed::trending)),
        ("/home/atom", get(feed::home_atom)),
        ("/search", get(explore::show)),
        ("/new", get(new_repo::show).post(new_repo::create)),
        ("/{owner}", get(profile::show)),
        ("/{owner}/followers", get(profile::followers).post(profile::change)),
        ("/{owner}/following", get(profile::following)),
        ("/{owner}/activity", get(profile::activity::show)),
        ("/{owner}/atom", get(profile::activity::atom)),
    ];
    all.extend(accounts::routes());
    all.extend(settings::routes());
    all.extend(transfers::routes());
    all.extend(notifications::routes());
    all.extend(admin::routes());
    all.extend(repo::routes());
    all
}
