//! Fetches exact objects from another git server: the client side of smart HTTP, without the HTTP.
//!
//! No git process talks to the network. A [`Remote`] makes one exchange at a time (the caller builds it over the outbound
//! gate), this module speaks the protocol over it, and the pack goes through
//! [`Incoming::receive`](crate::Incoming::receive) like the pack of a push.
//!
//! * [`Source::discover`]: what the server offers. [`Source::probe`]: which objects it has, for about 150 bytes in each
//!   direction. [`Source::pack`]: the pack with the wanted objects.
//! * `offer.rs`, `demux.rs`: parsers of answers, sans-IO. `request.rs`: our requests. `reply.rs`: checks of an HTTP answer
//!   and the size limit of its packets.
//!
//! Version 2 of the protocol is spoken where the server has it, else version 0. Answers are hostile input: each part has a
//! limit, and nothing but a pack is longer than one packet in memory.
//!
//! Not here: time limits of a whole fetch, rates, retries, redirects, and the choice of servers.

mod demux;
mod discover;
mod error;
mod offer;
mod pack;
mod probe;
mod remote;
mod reply;
mod request;

pub use demux::{Demux, Step};
pub use discover::Source;
pub use error::{FetchClass, FetchError};
pub use offer::{Offer, OldOffer, V2Offer, parse_offer};
pub use pack::PackReader;
pub use probe::{Presence, Probe};
pub use remote::{Answering, Body, Remote, RemoteError, RemoteRequest, Reply};
pub use request::{MAX_HAVES, MAX_WANTS};
