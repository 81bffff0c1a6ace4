//! ROAD: everything that speaks HTTP. Translates requests into use cases of `abide-forge`, and their answers back.
//!
//! * [`serve`]: the accept loop, with limits on connections, slow headers and slow readers.
//! * `git/`: smart HTTP. `api/`: REST in GitHub's shapes below `/api/v3`. `pages/`: what people see, with
//!   `show/` for how it looks. `ops.rs`: health and metrics.
//! * `relay/`: the WebSocket at `/`, and what the relay says about itself.
//! * `auth.rs`: who comes with which token. `layers.rs`: request ids, CORS, the access log. `compress.rs`: answers in gzip.
//!   `held.rs`: answers that are being made or wait for their clients, counted for each network.
//!
//! Nothing here decides or stores anything.

mod api;
mod app;
mod auth;
mod compress;
mod forwarded;
mod git;
mod held;
mod layers;
mod logged;
mod ops;
mod pages;
mod relay;
mod routes;
mod server;
mod show;
mod slow;
mod well_known;

pub use api::{Access, ApiLimits, ApiRoute, api_routes, openapi_document};
pub use app::App;
pub use ipnet::IpNet;
pub use routes::{API, FIRST_SEGMENTS, page_paths, router};
pub use server::{Options, serve};
