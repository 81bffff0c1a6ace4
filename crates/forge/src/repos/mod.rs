//! Repositories: finding, creating, changing, sharing, deleting.

pub mod collaborators;
pub mod create;
pub mod delete;
pub mod edit;
pub mod find;
pub mod list;
pub mod open;

pub use abide_store::repos::{Page, Repo};
