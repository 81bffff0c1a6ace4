//! Manual deliveries: a ping, the latest push again, or a redelivery.
//!
//! A manual request does not wait for the next probe: a suspended webhook attempts its oldest delivery at once.

use super::payload::{self, Message};
use super::{Hook, HookError, guid};
use crate::emit::Who;
use crate::open::open_locked;
use crate::{Caller, Forge};
use abide_core::policy::Action;
use abide_core::webhooks::Kind;
use abide_core::{DeliveryId, HookId, RepoId};
use abide_macros::boxed;
use abide_store::repos::Repo;
use abide_store::repos::pushes;
use abide_store::webhooks::deliveries::{self, NewDelivery};
use abide_store::{StoreError, Tx, webhooks};

#[derive(Debug, Clone, Copy)]
enum Asked {
    Ping,
    Push,
    Again(DeliveryId),
}

struct Unit {
    forge: Forge,
    caller: Caller,
    repo: RepoId,
    hook: HookId,
    asked: Asked,
}

/// Sends a ping.
#[boxed]
pub async fn ping(forge: &Forge, caller: &Caller, repo: &Repo, hook: &Hook) -> Result<(), HookError> {
    send(forge, caller, repo, hook, Asked::Ping).await.map(drop)
}

/// Sends the latest push again, if the webhook subscribes to pushes. `false` if there is no push to send.
#[boxed]
pub async fn latest_push(forge: &Forge, caller: &Caller, repo: &Repo, hook: &Hook) -> Result<bool, HookError> {
    send(forge, caller, repo, hook, Asked::Push).await.map(|sent| sent.is_some())
}

/// Sends a delivery again under the same GUID, so that the receiver can recognise it. Returns the new row.
#[boxed]
pub async fn redeliver(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    hook: &Hook,
    delivery: DeliveryId,
) -> Result<DeliveryId, HookError> {
    let sent = send(forge, caller, repo, hook, Asked::Again(delivery)).await?;
    Ok(sent.ok_or(StoreError::Missing)?)
}

async fn send(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    hook: &Hook,
    asked: Asked,
) -> Result<Option<DeliveryId>, HookError> {
    let unit = Unit { forge: forge.clone(), caller: caller.clone(), repo: repo.id, hook: hook.id, asked };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Option<DeliveryId>, HookError> {
    let repo = open_locked(tx, &unit.caller, unit.repo, Action::WebhookManage).await?;
    let hook = webhooks::lock(tx, repo.id, unit.hook).await?.ok_or(HookError::NotFound("webhook"))?;
    if !hook.active {
        return Err(HookError::Inactive);
    }
    let queued = match unit.asked {
        Asked::Ping => Some(enqueue_ping(tx, &unit.forge, &unit.caller, &repo, &hook).await?),
        Asked::Push => enqueue_push(tx, unit, &repo, &hook).await?,
        Asked::Again(id) => Some(enqueue_again(tx, &hook, id).await?),
    };
    webhooks::hurry(tx, hook.id).await?;
    Ok(queued)
}

/// Queues a ping in the caller's transaction.
pub(super) async fn enqueue_ping(
    tx: &mut Tx,
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    hook: &Hook,
) -> Result<DeliveryId, HookError> {
    let message = payload::ping(tx, forge, &Who::from(caller), repo, hook).await?;
    enqueue(tx, forge, hook.id, message).await
}

async fn enqueue_push(tx: &mut Tx, unit: &Unit, repo: &Repo, hook: &Hook) -> Result<Option<DeliveryId>, HookError> {
    if !hook.events.contain(Kind::Push) {
        return Ok(None);
    }
    let Some(push) = pushes::latest_of(tx, repo.id).await? else { return Ok(None) };
    let Some(update) = push.updates.iter().find(|update| update.name == repo.default_branch).or(push.updates.first())
    else {
        return Ok(None);
    };
    let message = payload::push(tx, &unit.forge, push.actor, repo, update, &[]).await?;
    enqueue(tx, &unit.forge, hook.id, message).await.map(Some)
}

async fn enqueue(tx: &mut Tx, forge: &Forge, hook: HookId, message: Message) -> Result<DeliveryId, HookError> {
    let new = message.for_hook(hook, guid(forge), None);
    Ok(deliveries::enqueue(tx, &new).await?.ok_or(StoreError::Missing)?)
}

async fn enqueue_again(tx: &mut Tx, hook: &Hook, id: DeliveryId) -> Result<DeliveryId, HookError> {
    let found = deliveries::by_id(tx, hook.id, id).await?.ok_or(HookError::NotFound("delivery"))?;
    let new = NewDelivery {
        hook_id: hook.id,
        guid: found.guid,
        event: None,
        kind: found.kind,
        action: found.action,
        redelivery_of: Some(found.id),
        payload: found.payload,
        content_type: found.content_type,
        draft: found.draft,
    };
    Ok(deliveries::enqueue(tx, &new).await?.ok_or(StoreError::Missing)?)
}
