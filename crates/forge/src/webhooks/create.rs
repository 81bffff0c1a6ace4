//! Adding a webhook. A ping is queued at once; its result shows whether the receiver responds.

use super::choice::{Change, choose, logged};
use super::{Hook, HookError, ask};
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::open::open_locked;
use crate::{Caller, Forge};
use abide_core::RepoId;
use abide_core::event::{HookCreated, Payload, Publicity};
use abide_core::policy::Action;
use abide_macros::boxed;
use abide_store::repos::Repo;
use abide_store::webhooks::{self, Choice};
use abide_store::{StoreError, Tx};

/// Adds a webhook to a repository that the caller administers.
#[boxed]
pub async fn create(forge: &Forge, caller: &Caller, repo: &Repo, change: &Change) -> Result<Hook, HookError> {
    crate::open::judge(caller, Some(repo.clone()), Action::WebhookManage)?;
    let choice = choose(forge, change, None)?;
    let unit = Unit { forge: forge.clone(), caller: caller.clone(), repo: repo.id, choice };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

struct Unit {
    forge: Forge,
    caller: Caller,
    repo: RepoId,
    choice: Choice,
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Hook, HookError> {
    let repo = open_locked(tx, &unit.caller, unit.repo, Action::WebhookManage).await?;
    let limit = unit.forge.settings().webhooks.per_repo;
    if webhooks::count_of_repo(tx, repo.id).await? >= limit {
        return Err(HookError::TooMany(limit));
    }
    let id = webhooks::insert(tx, repo.id, &unit.choice, unit.caller.user_id()).await?;
    let hook = webhooks::by_id(tx, repo.id, id).await?.ok_or(StoreError::Missing)?;
    if hook.active {
        ask::enqueue_ping(tx, &unit.forge, &unit.caller, &repo, &hook).await?;
    }
    let who = Who::from(&unit.caller);
    let choice = logged(&hook.url, &hook.events, hook.active);
    let payload = Payload::WebhookCreated(HookCreated { hook_id: id, choice });
    audit_repo(tx, &who, AuditAction::WebhookCreated, &repo, payload.details()).await?;
    emit(tx, &who, Subject::Webhook(&repo, id), Publicity::Private, payload).await?;
    Ok(webhooks::by_id(tx, repo.id, id).await?.ok_or(StoreError::Missing)?)
}
