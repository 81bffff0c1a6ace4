//! The relay and signed repositories: events and their relations, purgatory, quotas of keys.

pub mod deleted;
pub mod events;
pub mod news;
pub mod pr_refs;
pub mod purgatory;
pub mod query;
pub mod quotas;
pub mod relations;
pub mod repos;
pub mod reservations;
pub mod statuses;
