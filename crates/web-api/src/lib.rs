//! ROAD: REST below `/api/v3`, in the shapes of GitHub's, so that its clients work unchanged.
//!
//! * `routes.rs`: every route, with who may call it and what it does. `scoped.rs`: the only way to add one, and what
//!   happens around each: login, scope, limit (`limit.rs`), `ETag` (`fresh.rs`).
//! * `about.rs`: what a route says about itself; `openapi.rs` makes the document of it, `docs.rs` what people see.
//! * `error.rs`: what went wrong, in GitHub's body; every use case's errors are mapped there and nowhere else.
//! * `shape/`: what answers are made of. `page.rs`: pages and their links; `keyset.rs`: of logs. `input.rs`: bodies.
//!   `segments.rs`: what stands in an address. `media.rs`: in which form an answer is wanted. `patch.rs`, `bytes.rs`: answers that are no JSON.
//! * One file per area, named after it.

mod about;
mod admin;
mod app;
mod audit;
mod bytes;
mod collaborators;
mod comments;
mod commits;
mod contents;
mod deleted;
pub mod docs;
mod error;
mod events;
mod follows;
mod forks;
mod fresh;
mod grasp;
mod hooks;
mod input;
mod issues;
mod keys;
mod keyset;
mod labels;
mod limit;
mod media;
mod meta;
mod milestones;
mod notifications;
mod objects;
mod openapi;
mod page;
mod patch;
mod redirects;
mod refs;
mod repos;
mod routes;
mod scoped;
mod search;
mod segments;
mod shape;
mod stars;
mod streams;
mod topics;
mod transfers;
mod user;
mod watches;

use abide_web::{compress, held};
use app::App;
use axum::Router;
use axum::middleware::from_fn;
use axum::response::{IntoResponse as _, Response};
use error::ApiError;
use routes::routes;

pub use limit::ApiLimits;
pub use openapi::document as openapi_document;
pub use scoped::{Access, ApiRoute};

/// Every route of the API with who may call it, as declared.
pub fn api_routes() -> Vec<ApiRoute> {
    routes().declared().iter().map(|declared| declared.route).collect()
}

/// The routes of the API.
pub fn router(web: &abide_web::App, limits: ApiLimits) -> Router {
    let app = App::new(web.clone(), limits);
    let router = routes().into_router(&app).method_not_allowed_fallback(|| async { ApiError::method_not_allowed() });
    router.layer(from_fn(held::hold)).layer(from_fn(compress::compress)).with_state(app)
}

/// The answer to an address of the API that leads nowhere.
pub fn not_found() -> Response {
    ApiError::not_found().into_response()
}
