//! Domain events: the kinds, the payload of each kind, and the JSON that the log stores.
//!
//! A use case emits an event in the transaction of its change; feeds, webhooks, notifications and mails read it later.
//! Every reader matches [`Kind`] or [`Payload`] without a wildcard, so a new kind does not compile until each reader has
//! decided about it. [`Body`] is the stored JSON; no other module indexes it by key.
//!
//! To add a kind: a line in [`payload`], a golden file in `tests/golden/events`, and the arms that the compiler asks for.

mod account;
mod body;
mod issue;
mod payload;
mod push;
mod repo;
mod webhook;

pub use account::{Follow, LinkedKey, UserCreated, UserDeleted, UserRenamed};
pub use body::{Body, RepoThen, Unreadable};
pub use issue::{
    CommentDeleted, Commented, IssueAssignee, IssueEdited, IssueField, IssueLabel, IssueMilestone, IssueOpened,
    IssueRef, IssueState, Label, Milestone, NostrAddition, Origin, ReviewRequested,
};
pub use payload::{Kind, NoDetails, Payload};
pub use push::{Person, Push, PushedCommit, PushedRef};
pub use repo::{
    AnnouncementPromoted, AnnouncementReplaced, Archived, NameChange, RedirectReleased, RepoCreated, RepoForked,
    RepoHardDeleted, RepoSnapshot, RepoSoftDeleted, RoleChange, TopicsChanged, Transfer, VisibilityChanged,
};
pub use webhook::{HookChoice, HookCreated, HookDeleted, HookEdited, HookHealth};

use crate::repo::Visibility;
use crate::words::words;

words! {
    /// Kind of thing that an event is about.
    SubjectKind {
        Repo = "repo",
        User = "user",
        Webhook = "webhook",
        Issue = "issue",
        /// A thread that came by nostr, by the row number of its first event.
        NostrThread = "nostr_thread",
    }
}

/// Whether everyone could see an event when it happened. Readers check the current permissions too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publicity {
    Public,
    Private,
}

impl From<Visibility> for Publicity {
    fn from(visibility: Visibility) -> Self {
        match visibility {
            Visibility::Public => Self::Public,
            Visibility::Private => Self::Private,
        }
    }
}

impl Publicity {
    pub fn is_public(self) -> bool {
        self == Self::Public
    }
}

#[cfg(test)]
pub(crate) mod tests;
