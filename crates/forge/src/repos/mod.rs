//! Repositories: finding, creating, forking, changing, sharing, and their lifecycle.
//!
//! Lifecycle operations: [`rename`], [`transfer`], [`marks`] (archived, visibility), [`delete`], [`restore`],
//! [`purge`]. Each loads and locks the row, asks `abide-core`, and writes state, audit row and event in one
//! transaction. Their refusals are always a [`LifeError`]. [`redirects`]: old names. [`trail`]: the audit log of a
//! repository.

pub mod collaborators;
pub mod create;
pub mod delete;
pub mod edit;
pub mod find;
pub mod fork;
pub mod list;
pub mod marks;
pub mod purge;
pub mod redirects;
mod refusal;
pub mod rename;
pub mod restore;
pub mod search;
pub mod topics;
pub mod trail;
pub mod transfer;

pub use crate::open;
pub use abide_store::repos::{Page, Repo};
pub use refusal::{Class, LifeError};
