//! Reads objects for pages and the API, in this process.
//!
//! * [`Reader`]: objects of a repository; the entry point of everything below. Its methods block: call them on the
//!   blocking pool. It reads no configuration, attributes or replacement refs, so a repository cannot change its
//!   results.
//! * [`address`]: splits a page address into ref and path.
//! * [`tree`], [`blob`], [`commit`], [`tag`], [`readme`]: single objects.
//! * [`log`], [`ancestry`], [`last_commits`]: history walks, along the commit-graph where there is one.
//! * [`diff`] between commits, trees and blobs.
//! * [`path_log`], [`blame`], [`stream`]: one bounded git process each, where git does better; [`file_log`] follows a
//!   file through its renames with several.
//!
//! Everything is bounded: lists have limits, walks a deadline or a count, objects a size. A flag in the result says
//! when something was left out. Names, paths and messages are bytes; the caller decides how to display them.

pub mod address;
pub mod ancestry;
pub mod blame;
pub mod blob;
mod clock;
pub mod commit;
pub mod diff;
mod error;
pub mod file_log;
mod history;
pub mod last_commits;
pub mod log;
mod objects;
pub mod path_log;
pub mod readme;
mod ref_times;
pub mod stream;
pub mod tag;
pub mod tree;

pub use address::{RefOrOid, split_ref};
pub use ancestry::AheadBehind;
pub use blob::Blob;
pub use commit::{Commit, Signature};
pub use diff::{Comparison, Diff, DiffLimits};
pub use error::ReadError;
pub use file_log::{FileLog, FileStep};
pub use last_commits::{Known, LastCommits};
pub use log::{Count, LogPage};
pub(crate) use objects::oid as from_gix;
pub use objects::{ObjectKind, Reader, present};
pub use tag::TagObject;
pub use tree::{Entry, EntryKind, Listing};
