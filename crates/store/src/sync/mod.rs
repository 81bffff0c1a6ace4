//! Fetching from other servers: the queue of identifiers, the clone URLs that were tried, and the domains they lead to;
//! the relays that are followed.

pub mod domains;
pub mod queue;
pub mod relays;
pub mod sources;
