//! Repositories: finding, creating, forking, changing, sharing, and their whole life.
//!
//! The life of a repository: [`rename`], [`transfer`], [`marks`] (archived, visibility), [`delete`], [`restore`],
//! [`purge`]. Each loads and locks the row, asks `abide-core`, and writes state, audit row and event in one transaction;
//! why not is always a [`LifeError`]. [`redirects`]: old names. [`trail`]: what was done.

pub mod collaborators;
pub mod create;
pub mod delete;
pub mod edit;
pub mod find;
pub mod fork;
pub mod list;
pub mod marks;
pub mod open;
pub mod purge;
pub mod redirects;
mod refusal;
pub mod rename;
pub mod restore;
pub mod search;
pub mod topics;
pub mod trail;
pub mod transfer;

pub use abide_store::repos::{Page, Repo};
pub use refusal::{Class, LifeError};
