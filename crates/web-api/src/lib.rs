//! ROAD: REST below `/api/v3`, in GitHub's shapes, so that its clients work unchanged.
//!
//! * `routes.rs`: all routes with access and description. `scoped.rs`: the only way to add one; it wraps each with
//!   authentication, scope, rate limit (`limit.rs`) and `ETag` (`fresh.rs`).
//! * `about.rs`: description of a route; `openapi.rs` makes the OpenAPI document of it, `docs.rs` the page at
//!   `/api/docs`.
//! * `error.rs`: errors in GitHub's format; the errors of all use cases are mapped there and nowhere else.
//! * `shape/`: types of responses. `page.rs`: pages of lists and their links; `keyset.rs`: pages of logs. `input.rs`:
//!   request bodies. `segments.rs`: path and query. `media.rs`: the `Accept` header. `patch.rs`, `bytes.rs`: responses
//!   that are not JSON.
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

/// All routes of the API with their access, as declared.
pub fn api_routes() -> Vec<ApiRoute> {
    routes().declared().iter().map(|declared| declared.route).collect()
}

/// The routes of the API.
pub fn router(web: &abide_web::App, limits: ApiLimits) -> Router {
    let app = App::new(web.clone(), limits);
    let router = routes().into_router(&app).method_not_allowed_fallback(|| async { ApiError::method_not_allowed() });
    router.layer(from_fn(held::hold)).layer(from_fn(compress::compress)).with_state(app)
}

/// Response to unknown URLs of the API.
pub fn not_found() -> Response {
    ApiError::not_found().into_response()
}
