//! Saying what happened: the audit row and the domain event of a change, side by side.

use crate::Caller;
use abide_core::repo::Visibility;
use abide_core::{HookId, UserId};
use abide_store::repos::Repo;
use abide_store::{StoreError, Tx, audit, events};
use serde_json::{Map, Value as Json};
use std::net::IpAddr;

/// Who changed something, in the form that the logs keep. Nobody: the operator at the command line, or the system.
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

impl Who {
    /// An account, from somewhere.
    pub(crate) fn new(user: UserId, ip: Option<IpAddr>) -> Self {
        Self { user: Some(user), ip: ip.map(|ip| ip.to_string()) }
    }
}

/// Writes the audit row of something that was done to a repository.
pub(crate) async fn audit_repo(
    tx: &mut Tx,
    who: &Who,
    action: &'static str,
    repo: &Repo,
    meta: Json,
) -> Result<(), StoreError> {
    let entry = audit::Entry { actor: who.user, action, repo: Some(repo.id), ip: who.ip.clone(), meta };
    audit::append(tx, &entry).await
}

/// Writes the audit row of something that concerns an account.
pub(crate) async fn audit_account(tx: &mut Tx, who: &Who, action: &'static str, meta: Json) -> Result<(), StoreError> {
    let entry = audit::Entry { actor: who.user, action, repo: None, ip: who.ip.clone(), meta };
    audit::append(tx, &entry).await
}

/// Writes the domain event of something that happened to an account. Accounts are public, so the payload says nothing
/// that their pages do not.
pub(crate) async fn event_user(
    tx: &mut Tx,
    who: &Who,
    kind: &'static str,
    user: UserId,
    payload: Json,
) -> Result<(), StoreError> {
    let event = events::Event {
        actor: who.user,
        kind,
        repo: None,
        source_kind: "user",
        source_id: user.get(),
        public: true,
        payload,
    };
    events::append(tx, &event).await
}

/// Writes the domain event of something that happened to a repository. The payload always carries the slug and names
/// of the time, because a reader may come after both have changed.
pub(crate) async fn event_repo(
    tx: &mut Tx,
    who: &Who,
    kind: &'static str,
    repo: &Repo,
    extra: Json,
) -> Result<(), StoreError> {
    event_in_repo(tx, who, kind, repo, ("repo", repo.id.get()), extra).await
}

/// As [`event_repo`], about something else in the repository: what kind of thing, and which one.
pub(crate) async fn event_in_repo(
    tx: &mut Tx,
    who: &Who,
    kind: &'static str,
    repo: &Repo,
    (source_kind, source_id): (&'static str, i64),
    extra: Json,
) -> Result<(), StoreError> {
    let mut payload = Map::new();
    payload.insert("repo_id".into(), repo.id.get().into());
    payload.insert("slug".into(), repo.slug().into());
    payload.insert("owner_id".into(), repo.owner_id.get().into());
    if let Json::Object(extra) = extra {
        payload.extend(extra);
    }
    let event = events::Event {
        actor: who.user,
        kind,
        repo: Some(repo.id),
        source_kind,
        source_id,
        public: repo.visibility == Visibility::Public,
        payload: Json::Object(payload),
    };
    events::append(tx, &event).await
}

/// Writes the domain event of something that happened to a webhook. Who is told what is nobody's business but that of
/// those who work on the repository, so it is never public.
pub(crate) async fn event_hook(
    tx: &mut Tx,
    who: &Who,
    kind: &'static str,
    repo: &Repo,
    hook: HookId,
    extra: Json,
) -> Result<(), StoreError> {
    let kept = Repo { visibility: Visibility::Private, ..repo.clone() };
    event_in_repo(tx, who, kind, &kept, ("webhook", hook.get()), extra).await
}
