//! REST below `/api/v3`, in the shapes of GitHub's, so that its clients work unchanged.
//!
//! * `scoped.rs`: the only way to add a route; each says who may call it and with which scope.
//! * `error.rs`: what went wrong, in GitHub's body; every use case's errors are mapped there and nowhere else.
//! * `shape.rs`: users, repositories and keys as JSON. `page.rs`: pages and their links. `input.rs`: bodies. `segments.rs`: what
//!   stands in an address.
//! * One file per area: `user.rs`, `repos.rs`, `collaborators.rs`, `keys.rs`, `meta.rs`.

mod collaborators;
mod error;
mod input;
mod keys;
mod meta;
mod page;
mod repos;
mod scoped;
mod segments;
mod shape;
mod user;

use crate::App;
use abide_core::scope::Scope;
use axum::Router;
use axum::response::{IntoResponse as _, Response};
use error::ApiError;
use scoped::Routes;

pub use scoped::{Access, ApiRoute};

/// Every route of the API with who may call it, as declared.
pub fn api_routes() -> Vec<ApiRoute> {
    routes().declared()
}

pub(crate) fn router(app: &App) -> Router<App> {
    routes().into_router(app).method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
}

/// The answer to an address of the API that leads nowhere.
pub(crate) fn not_found() -> Response {
    ApiError::not_found().into_response()
}

/// Every route with who may call it.
fn routes() -> Routes {
    use Access::{Everyone, Logged, Open};
    Routes::new()
        .get("", Everyone, meta::root)
        .get("/", Everyone, meta::root)
        .get("/meta", Everyone, meta::meta)
        .get("/user", Logged(Scope::UserRead), user::me)
        .get("/users/{user}", Open(Scope::UserRead), user::show)
        .get("/users/{user}/repos", Open(Scope::RepoRead), repos::of_user)
        .get("/user/repos", Logged(Scope::RepoRead), repos::mine)
        .post("/user/repos", Logged(Scope::Repo), repos::create)
        .get("/user/keys", Logged(Scope::UserRead), keys::list)
        .post("/user/keys", Logged(Scope::User), keys::add)
        .get("/user/keys/{id}", Logged(Scope::UserRead), keys::show)
        .delete("/user/keys/{id}", Logged(Scope::User), keys::remove)
        .get("/repos/{owner}/{repo}", Open(Scope::RepoRead), repos::show)
        .patch("/repos/{owner}/{repo}", Logged(Scope::Repo), repos::edit)
        .delete("/repos/{owner}/{repo}", Logged(Scope::Repo), repos::delete)
        .get("/repositories/{id}", Open(Scope::RepoRead), repos::show_by_id)
        .get("/repos/{owner}/{repo}/collaborators", Logged(Scope::RepoRead), collaborators::list)
        .get("/repos/{owner}/{repo}/collaborators/{user}", Logged(Scope::RepoRead), collaborators::check)
        .get(
            "/repos/{owner}/{repo}/collaborators/{user}/permission",
            Logged(Scope::RepoRead),
            collaborators::permission,
        )
        .put("/repos/{owner}/{repo}/collaborators/{user}", Logged(Scope::Repo), collaborators::set)
        .delete("/repos/{owner}/{repo}/collaborators/{user}", Logged(Scope::Repo), collaborators::remove)
}
