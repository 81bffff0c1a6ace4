//! Removing a webhook, with what it sent and what it has not sent yet.

use super::HookError;
use super::choice::host;
use crate::repos::open::open_locked;
use crate::tell::{Who, audit_repo, event_hook};
use crate::{Caller, Forge};
use abide_core::policy::Action;
use abide_core::{HookId, RepoId};
use abide_store::repos::Repo;
use abide_store::{Tx, webhooks};
use serde_json::json;

/// Removes a webhook of a repository that the caller administers.
pub async fn remove(forge: &Forge, caller: &Caller, repo: &Repo, id: HookId) -> Result<(), HookError> {
    let unit = (repo.id, caller.clone(), id);
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

async fn write(tx: &mut Tx, (repo, caller, id): &(RepoId, Caller, HookId)) -> Result<(), HookError> {
    let repo = open_locked(tx, caller, *repo, Action::WebhookManage).await?;
    let hook = webhooks::lock(tx, repo.id, *id).await?.ok_or(HookError::NotFound("webhook"))?;
    webhooks::delete(tx, hook.id).await?;
    let who = Who::from(caller);
    let meta = json!({ "hook_id": hook.id.get(), "host": host(&hook.url) });
    audit_repo(tx, &who, "webhook_deleted", &repo, meta.clone()).await?;
    Ok(event_hook(tx, &who, "webhook_deleted", &repo, hook.id, meta).await?)
}
