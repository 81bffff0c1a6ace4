//! THE GATE: the only way out. Every request to a URL that a user entered goes through here.
//!
//! * [`OutboundUrl`], [`RelayUrl`]: an `http`, `https`, `ws` or `wss` URL, parsed once, in any spelling.
//! * [`guard`]: refused IP prefixes, with a reason for each.
//! * [`AllowList`]: the operator's exceptions.
//! * [`Gate`]: looks a name up once, refuses it if *any* address is refused, and connects only to the checked
//!   addresses. It limits time, size and concurrency. [`Gate::post`] reads the start of a response, [`Gate::open`] streams
//!   it, and neither follows a redirect; [`Gate::websocket`] opens a WebSocket. [`Gate::vet`] and [`Gate::connect`] serve
//!   other protocols.
//!
//! A [`Resolver`] looks names up, so that tests need no network.

mod address;
mod allow;
mod dial;
mod exchange;
mod gate;
pub mod guard;
mod open;
mod post;
mod relay;
mod resolve;
mod websocket;

pub use address::{AddressError, Endpoint, Host, OutboundUrl, Scheme};
pub use allow::{AllowError, AllowList};
pub use dial::Connection;
pub use gate::{Gate, GateError, OutboundLimits, Vetted};
pub use open::{Body, Request, Response};
pub use post::{Answer, Post};
pub use relay::RelayUrl;
pub use resolve::{Resolver, SystemResolver};
pub use websocket::{Socket, SocketLimits};

pub use http;
pub use tokio_tungstenite::tungstenite;
