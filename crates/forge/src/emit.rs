//! Writes the logs: [`emit`] appends a domain event, [`audit_repo`] and [`audit_account`] an audit row. Each is called in
//! the transaction of the change.

use crate::{By, Caller};
pub(crate) use abide_core::audit::Action as AuditAction;
use abide_core::event::{Body, Payload, Publicity, RepoThen, SubjectKind, UserCreated};
use abide_core::{HookId, IssueId, UserId};
use abide_store::repos::Repo;
use abide_store::{StoreError, Tx, audit, events};
use serde_json::{Value as Json, json};
use std::net::IpAddr;

/// The actor of a change, for the logs. Without a user: the operator at the command line, or the system.
#[derive(Debug, Clone, Default)]
pub(crate) struct Who {
    pub user: Option<UserId>,
    pub ip: Option<String>,
}

impl From<&Caller> for Who {
    fn from(caller: &Caller) -> Self {
        Self { user: caller.user_id(), ip: caller.ip_text() }
    }
}

impl From<&By> for Who {
    fn from(by: &By) -> Self {
        match by {
            By::Admin(_, caller) => Self::from(caller),
            By::Operator => Self::default(),
        }
    }
}

impl Who {
    pub(crate) fn new(user: UserId, ip: Option<IpAddr>) -> Self {
        Self { user: Some(user), ip: ip.map(|ip| ip.to_string()) }
    }
}

/// Subject of an event. Every subject but an account belongs to a repository.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject<'a> {
    Repo(&'a Repo),
    Issue(&'a Repo, IssueId),
    /// A thread that came by nostr, by the row number of its first event.
    NostrThread(&'a Repo, i64),
    Webhook(&'a Repo, HookId),
    User(UserId),
}

impl<'a> Subject<'a> {
    fn repo(self) -> Option<&'a Repo> {
        match self {
            Self::Repo(repo) | Self::Issue(repo, _) | Self::NostrThread(repo, _) | Self::Webhook(repo, _) => Some(repo),
            Self::User(_) => None,
        }
    }

    fn row(self) -> (SubjectKind, i64) {
        match self {
            Self::Repo(repo) => (SubjectKind::Repo, repo.id.get()),
            Self::Issue(_, id) => (SubjectKind::Issue, id.get()),
            Self::NostrThread(_, n) => (SubjectKind::NostrThread, n),
            Self::Webhook(_, id) => (SubjectKind::Webhook, id.get()),
            Self::User(id) => (SubjectKind::User, id.get()),
        }
    }
}

/// Appends a domain event. The only writer of the event log.
pub(crate) async fn emit(
    tx: &mut Tx,
    who: &Who,
    subject: Subject<'_>,
    publicity: Publicity,
    payload: Payload,
) -> Result<(), StoreError> {
    let (repo, (subject_kind, subject_id)) = (subject.repo(), subject.row());
    let then =
        repo.map(|repo| RepoThen { repo_id: Some(repo.id), slug: Some(repo.slug()), owner_id: Some(repo.owner_id) });
    let event = events::NewEvent {
        actor: who.user,
        repo: repo.map(|repo| repo.id),
        subject_kind,
        subject_id,
        publicity,
        body: Body { repo: then.unwrap_or_default(), payload },
    };
    events::append(tx, &event).await
}

/// Appends the audit row of an action on a repository.
pub(crate) async fn audit_repo(
    tx: &mut Tx,
    who: &Who,
    action: AuditAction,
    repo: &Repo,
    meta: Json,
) -> Result<(), StoreError> {
    let entry = audit::Entry { actor: who.user, action, repo: Some(repo.id), ip: who.ip.clone(), meta };
    audit::append(tx, &entry).await
}

/// Appends the audit row of an action on an account or on the site.
pub(crate) async fn audit_account(tx: &mut Tx, who: &Who, action: AuditAction, meta: Json) -> Result<(), StoreError> {
    let entry = audit::Entry { actor: who.user, action, repo: None, ip: who.ip.clone(), meta };
    audit::append(tx, &entry).await
}

/// Writes the audit row and the event of a new account for a key.
pub(crate) async fn emit_key_account(
    tx: &mut Tx,
    id: UserId,
    npub: &str,
    ip: Option<IpAddr>,
) -> Result<(), StoreError> {
    let who = Who::new(id, ip);
    let meta = json!({ "user_id": id.get(), "name": null, "npub": npub, "site_admin": false });
    audit_account(tx, &who, AuditAction::UserCreated, meta).await?;
    let created = UserCreated { user_id: id, name: None, npub: Some(npub.to_owned()) };
    emit(tx, &who, Subject::User(id), Publicity::Public, Payload::UserCreated(created)).await
}
