//! Shapes of responses, with GitHub's field names. The OpenAPI document is generated from these types.
//!
//! Shapes that webhook payloads have too (repositories, users in them, issues, labels, milestones, comments, webhooks) are in
//! [`abide_forge::github`]. `user.rs`: users and their keys. `repo.rs`: lists of repositories, collaborators. `git.rs`: refs,
//! commits and objects. `change.rs`: diffs. `content.rs`: files. `issue.rs`: lists of issues, timelines. `life.rs`: transfers,
//! deleted repositories, old names, audit log. `event.rs`: activity feeds and consumers. `attention.rs`: stars and
//! subscriptions. `hook.rs`: deliveries. `notification.rs`: notifications. `admin.rs`: site administration.

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

/// Time of an author, committer or tagger, in UTC.
fn signed_at(signature: &Signature) -> String {
    time(Timestamp::from_micros(signature.time.saturating_mul(1_000_000)))
}

/// A value in the query of a URL.
pub(super) fn in_query(text: &str) -> String {
    utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
