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
pub(super) use hook::{HIDDEN, Hook, HookConfig, HookDelivery, HookDeliveryDetail};
pub(super) use issue::{
    FoundIssues, Issue, IssueComment, IssueMatch, Label, Milestone, OwnIssue, TimelineEvent, person,
};
pub(super) use life::{AuditEntry, DeletedRepository, Redirect, Transfer};
pub(super) use notification::{Notification, ThreadSubscription};
pub(super) use repo::{Collaborator, Found, Match, Permission, Repository, TopicNames, legacy_permission, one, page};
pub(super) use user::{Counts, Email, Key, OwnUser, SimpleUser, User};

use crate::App;
use abide_core::Timestamp;
use abide_forge::browse::Signature;
use abide_forge::repos::Repo;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

pub(super) fn time(at: Timestamp) -> String {
    at.to_string()
}

/// When someone did something, in UTC.
fn signed_at(signature: &Signature) -> String {
    time(Timestamp::from_micros(signature.time.saturating_mul(1_000_000)))
}

/// Bytes that are escaped in a path.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A path or ref name in an address: slashes stay.
pub(super) fn in_path(bytes: &[u8]) -> String {
    percent_encoding::percent_encode(bytes, PATH).to_string()
}

/// A value in a query.
pub(super) fn in_query(text: &str) -> String {
    utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Addresses of things in one repository.
pub(super) struct Urls<'a> {
    app: &'a App,
    slug: String,
}

impl<'a> Urls<'a> {
    pub(super) fn of(app: &'a App, repo: &Repo) -> Self {
        Self { app, slug: repo.slug() }
    }

    /// Below the repository in the API.
    pub(super) fn api(&self, tail: &str) -> String {
        self.app.url(&format!("/api/v3/repos/{}{tail}", self.slug))
    }

    /// Below the repository's page.
    pub(super) fn page(&self, tail: &str) -> String {
        self.app.url(&format!("/{}{tail}", self.slug))
    }
}
