//! A repository's settings.
//!
//! An operation that a second click does not undo has a page of its own that lists the consequences first: `ask.rs`, and
//! a file for each operation.

pub(super) mod archive;
mod ask;
pub(super) mod audit;
pub(super) mod delete;
pub(super) mod general;
pub(super) mod old_names;
pub(super) mod people;
pub(super) mod rename;
pub(super) mod transfer;
pub(super) mod visibility;
pub(super) mod webhooks;
