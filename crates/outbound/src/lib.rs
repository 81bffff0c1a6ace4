//! THE GATE: the only way out. Every request to a URL that a user entered goes through here.
//!
//! * [`OutboundUrl`]: an `http` or `https` URL, parsed once, in any spelling.
//! * [`guard`]: refused IP prefixes, with a reason for each.
//! * [`AllowList`]: the operator's exceptions.
//! * [`Gate`]: looks a name up once, refuses it if *any* address is refused, and connects only to the checked
//!   addresses. It limits time, size and concurrency. [`Gate::vet`] and [`Gate::connect`] serve other protocols;
//!   [`Gate::post`] speaks HTTP and follows no redirect.
//!
//! A [`Resolver`] looks names up, so that tests need no network.

mod address;
mod allow;
mod gate;
pub mod guard;
mod post;
mod resolve;

pub use address::{AddressError, Host, OutboundUrl, Scheme};
pub use allow::{AllowError, AllowList};
pub use gate::{Gate, GateError, OutboundLimits, Vetted};
pub use post::{Answer, Post};
pub use resolve::{Resolver, SystemResolver};

pub use http;
