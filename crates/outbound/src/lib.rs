//! THE GATE: the only way out. Whatever the server sends to an address that a person typed goes through here.
//!
//! * [`Address`]: an `http` or `https` address, parsed once, whatever way it was spelled.
//! * [`guard`]: which internet addresses are nobody's business, with a reason for each.
//! * [`AllowList`]: what the operator lets through all the same.
//! * [`Gate`]: looks a name up once, refuses if *any* answer is refused, connects to exactly what was looked at, and
//!   bounds time, size and number of what is under way. [`Gate::vet`] and [`Gate::connect`] serve other protocols;
//!   [`Gate::post`] speaks HTTP and follows no redirect.
//!
//! Names are looked up by a [`Resolver`], so that tests need no network.

mod address;
mod allow;
mod gate;
pub mod guard;
mod post;
mod resolve;

pub use address::{Address, AddressError, Host, Scheme};
pub use allow::{AllowError, AllowList};
pub use gate::{Gate, GateError, Limits, Vetted};
pub use post::{Answer, Post};
pub use resolve::{Resolver, SystemResolver};

pub use http;
