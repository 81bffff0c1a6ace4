//! ROAD: the HTTP server. It translates requests into use cases of `abide-forge`, and their results into responses.
//!
//! * [`serve`]: the accept loop, with limits on connections, slow headers and slow readers. `routes.rs`: the routes.
//! * `git/`: smart HTTP. `relay/`: the WebSocket at `/`, and the NIP-11 document. `ops.rs`: health and metrics.
//! * [`auth`]: credentials of a request. `layers.rs`: request ids, CORS, the access log. [`compress`]: answers in gzip.
//!   [`held`]: limits on concurrent requests and unread responses per network.
//!
//! REST is in `abide-web-api`, pages are in `abide-web-pages`. Both use this crate; the binary combines the three.
//! Nothing here decides or stores anything.

mod app;
pub mod auth;
pub mod compress;
mod forwarded;
mod git;
pub mod held;
mod layers;
mod logged;
mod ops;
mod relay;
mod routes;
mod server;
mod slow;
mod url;
mod well_known;

pub use app::App;
pub use ipnet::IpNet;
pub use logged::SECRET_SEGMENTS;
pub use routes::{API, paths, router};
pub use server::{Options, Peer, serve};
pub use url::{path as url_path, segment as url_segment};
pub use well_known::relay as relay_url;
