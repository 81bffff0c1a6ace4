//! When git data and events are fetched from other servers.
//!
//! * [`attempts`]: the time of the next attempt for one identifier.
//! * [`window`]: requests to one domain or address within a sliding window.
//! * [`relays`]: connections to other relays.
//! * [`sources`]: the clone URLs that one run tries, and their order.

pub mod attempts;
pub mod relays;
pub mod sources;
pub mod window;
