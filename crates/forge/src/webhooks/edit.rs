//! Changing a webhook. A change resets its failures and resumes a suspended webhook.

use super::choice::{Change, choose, logged};
use super::{Hook, HookError};
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::open::open_locked;
use crate::{Caller, Forge};
use abide_core::event::{HookEdited, Payload, Publicity};
use abide_core::policy::Action;
use abide_core::{HookId, RepoId};
use abide_macros::boxed;
use abide_store::repos::Repo;
use abide_store::{StoreError, Tx, webhooks};

/// Changes a webhook of a repository that the caller administers.
#[boxed]
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
    let payload = Payload::WebhookEdited(HookEdited {
        hook_id: before.id,
        choice: logged(&choice.url, &choice.events, choice.active),
        before: logged(&before.url, &before.events, before.active),
        secret_changed: choice.secret != before.secret,
        address_changed: choice.url != before.url,
    });
    audit_repo(tx, &who, AuditAction::WebhookEdited, &repo, payload.details()).await?;
    emit(tx, &who, Subject::Webhook(&repo, before.id), Publicity::Private, payload).await?;
    Ok(webhooks::by_id(tx, repo.id, before.id).await?.ok_or(StoreError::Missing)?)
}
