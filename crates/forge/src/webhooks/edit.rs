//! Changing a webhook. A receiver that failed before gets a fresh start.

use super::choice::{Change, choose, host};
use super::{Hook, HookError};
use crate::repos::open::open_locked;
use crate::tell::{Who, audit_repo, event_hook};
use crate::{Caller, Forge};
use abide_core::policy::Action;
use abide_core::{HookId, RepoId};
use abide_store::repos::Repo;
use abide_store::{StoreError, Tx, webhooks};
use serde_json::json;

/// Changes a webhook of a repository that the caller administers.
pub async fn edit(forge: &Forge, caller: &Caller, repo: &Repo, id: HookId, change: &Change) -> Result<Hook, HookError> {
    let unit = Unit { forge: forge.clone(), caller: caller.clone(), repo: repo.id, id, change: change.clone() };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

struct Unit {
    forge: Forge,
    caller: Caller,
    repo: RepoId,
    id: HookId,
    change: Change,
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Hook, HookError> {
    let repo = open_locked(tx, &unit.caller, unit.repo, Action::WebhookManage).await?;
    let before = webhooks::lock(tx, repo.id, unit.id).await?.ok_or(HookError::NotFound("webhook"))?;
    let choice = choose(&unit.forge, &unit.change, Some(&before))?;
    webhooks::update(tx, before.id, &choice).await?;
    let who = Who::from(&unit.caller);
    let meta = json!({
        "hook_id": before.id.get(), "host": host(&choice.url),
        "events": choice.events.words(), "active": choice.active,
        "before": { "host": host(&before.url), "events": before.events.words(), "active": before.active },
        "secret_changed": choice.secret != before.secret, "address_changed": choice.url != before.url,
    });
    audit_repo(tx, &who, "webhook_edited", &repo, meta.clone()).await?;
    event_hook(tx, &who, "webhook_edited", &repo, before.id, meta).await?;
    Ok(webhooks::by_id(tx, repo.id, before.id).await?.ok_or(StoreError::Missing)?)
}
