//! Shapes of responses, with GitHub's field names.
//!
//! Each is a type, so that the OpenAPI document is generated from what is sent. `user.rs`: people and their keys.
//! `repo.rs`: repositories. `git.rs`: refs, commits and objects. `change.rs`: what a commit changed. `content.rs`: files.
//! `issue.rs`: issues, labels, milestones. `life.rs`: offers, deleted repositories, old names, what was done.
//! `event.rs`: what happened, and who acts on it. `attention.rs`: stars, watches, follows. `hook.rs`: webhooks.
//! `notification.rs`: notifications. `admin.rs`: site administration.

mod admin;
mod attention;
mod change;
mod content;
mod event;
mod git;
mod hook;
mod issue;
mod life;
mod notification;
mod repo;
mod user;

pub(super) use admin::{AdminUser, Job};
pub(super) use attention::{Stargazer, Starred, Subscription};
pub(super) use change::{ChangedFile, Comparison, Stats};
pub(super) use content::Content;
pub(super) use event::{Consumer, Event, SetAside};
pub(super) use git::{
    Branch, CommitItem, FullCommit, GitBlob, GitCommit, GitRef, GitTag, GitTree, ShortBranch, Tag, TreeItem,
};
pub(super) use hook::{HookDelivery, HookDeliveryDetail, hook};
pub(super) use issue::{FoundIssues, IssueMatch, OwnIssue, TimelineEvent};
pub(super) use life::{AuditEntry, DeletedRepository, Redirect, Transfer};
pub(super) use notification::{Notification, ThreadSubscription};
pub(super) use repo::{Collaborator, Found, Match, Permission, TopicNames, legacy_permission, one, page};
pub(super) use user::{Counts, Email, Key, OwnUser, User};

pub(super) use abide_forge::github::{
    HIDDEN, Hook, HookConfig, Issue, IssueComment, Label, Milestone, Permissions, Repository, SimpleUser, Urls,
    in_path, time,
};

use abide_core::Timestamp;
use abide_forge::browse::Signature;
use percent_encoding::utf8_percent_encode;

/// When someone did something, in UTC.
fn signed_at(signature: &Signature) -> String {
    time(Timestamp::from_micros(signature.time.saturating_mul(1_000_000)))
}

/// A value in a query.
pub(super) fn in_query(text: &str) -> String {
    utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
