//! Issues of a repository, with comments, labels and milestones.
//!
//! Every change locks the repository's row first, so the numbers of issues and the order of a timeline need no other
//! lock. [`create`], [`change`] (text, state, labels, assignees, milestone, together in one transaction), [`comment`],
//! [`subscribe`]; [`labels`] and [`milestones`] of a repository; [`list`], [`search`] and [`show`] to read; [`keywords`] for
//! closing keywords in commits; [`review`] for review requests. Every error is an [`IssueError`]. [`involve`] subscribes
//! participants.

mod assign;
pub mod change;
pub mod comment;
mod context;
pub mod create;
mod involve;
pub mod keywords;
mod label;
pub mod labels;
pub mod list;
mod milestone;
pub mod milestones;
mod refusal;
pub mod review;
pub mod search;
pub mod show;
mod state;
pub mod subscribe;
mod text;

pub use abide_core::issues::{Reason, State};
pub use abide_store::issues::comments::{Comment, Order};
pub use abide_store::issues::labels::Label;
pub use abide_store::issues::milestones::Milestone;
pub use abide_store::issues::people::{Person, Subscription};
pub use abide_store::issues::timeline::Entry;
pub use abide_store::issues::{Counts, Issue};
pub use refusal::{Class, IssueError};
pub use show::Detailed;
