//! Reading objects for pages and the API, in this process.
//!
//! * [`Reader`]: a repository's objects; everything below hangs on it. Its methods block: call them on the blocking
//!   pool. No configuration, no attributes, no replacement refs are read, so nothing in a repository changes how.
//! * [`address`]: which part of a page's address is the ref and which the path.
//! * [`tree`], [`blob`], [`commit`], [`tag`], [`readme`]: one thing at a time.
//! * [`log`], [`ancestry`], [`last_commits`]: walks through the history, along the commit-graph where there is one.
//! * [`diff`]: what changed.
//! * [`path_log`], [`blame`], [`stream`]: what git itself does better, by one bounded process each; [`file_log`] follows
//!   a file through its renames with a few of them.
//!
//! Nothing here is unbounded: lists have limits, walks a deadline or a count, objects a size. What was left out is said
//! by a flag in the answer. Names, paths and messages are bytes; who shows them decides how.

pub mod address;
pub mod ancestry;
pub mod blame;
pub mod blob;
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
