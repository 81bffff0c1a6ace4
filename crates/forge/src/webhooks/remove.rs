//! Removing a webhook with all of its deliveries, also those that wait.

use super::HookError;
use super::choice::host;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::open::open_locked;
use crate::{Caller, Forge};
use abide_core::event::{HookDeleted, Payload, Publicity};
use abide_core::policy::Action;
use abide_core::{HookId, RepoId};
use abide_macros::boxed;
use abide_store::repos::Repo;
use abide_store::{Tx, webhooks};

/// Removes a webhook of a repository that the caller administers.
#[boxed]
pub async fn remove(forge: &Forge, caller: &Caller, repo: &Repo, id: HookId) -> Result<(), HookError> {
    let unit = (repo.id, caller.clone(), id);
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

async fn write(tx: &mut Tx, (repo, caller, id): &(RepoId, Caller, HookId)) -> Result<(), HookError> {
    let repo = open_locked(tx, caller, *repo, Action::WebhookManage).await?;
    let hook = webhooks::lock(tx, repo.id, *id).await?.ok_or(HookError::NotFound("webhook"))?;
    webhooks::delete(tx, hook.id).await?;
    let who = Who::from(caller);
    let payload = Payload::WebhookDeleted(HookDeleted { hook_id: hook.id, host: host(&hook.url) });
    audit_repo(tx, &who, AuditAction::WebhookDeleted, &repo, payload.details()).await?;
    Ok(emit(tx, &who, Subject::Webhook(&repo, hook.id), Publicity::Private, payload).await?)
}
