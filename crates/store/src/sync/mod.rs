//! Fetching from other servers: the queue of identifiers, the clone URLs that were tried, and the domains they lead to.

pub mod domains;
pub mod queue;
pub mod sources;
