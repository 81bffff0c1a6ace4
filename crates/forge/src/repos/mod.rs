//! Repositories: finding, creating, forking, changing, sharing, deleting.

pub mod collaborators;
pub mod create;
pub mod delete;
pub mod edit;
pub mod find;
pub mod fork;
pub mod list;
pub mod open;
pub mod search;
pub mod topics;

pub use abide_store::repos::{Page, Repo};
