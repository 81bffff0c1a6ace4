//! Reading webhooks and their deliveries. An id is found only in its own repository.

use super::HookError;
use crate::open::judge;
use crate::{Caller, Forge};
use abide_core::policy::Action;
use abide_core::{DeliveryId, HookId};
use abide_macros::boxed;
use abide_store::repos::{Page, Repo};
use abide_store::webhooks::deliveries::{self, Delivery};
use abide_store::webhooks::{self, Hook};

/// A webhook with the state of its deliveries.
#[derive(Debug, Clone)]
pub struct Seen {
    pub hook: Hook,
    /// The latest delivery with an attempt, without payload and response.
    pub latest: Option<Delivery>,
    /// Number of deliveries that wait.
    pub waiting: i64,
}

/// A page of the webhooks of a repository that the caller administers, and their total number.
#[boxed]
pub async fn list(forge: &Forge, caller: &Caller, repo: &Repo, page: Page) -> Result<(Vec<Seen>, i64), HookError> {
    judge(caller, Some(repo.clone()), Action::WebhookList)?;
    let mut conn = forge.store().read().await?;
    let hooks = webhooks::of_repo(&mut conn, repo.id, page).await?;
    let total = webhooks::count_of_repo(&mut conn, repo.id).await?;
    let mut seen = Vec::with_capacity(hooks.len());
    for hook in hooks {
        let latest = deliveries::latest_tried(&mut conn, hook.id).await?;
        let waiting = deliveries::waiting(&mut conn, hook.id).await?;
        seen.push(Seen { hook, latest, waiting });
    }
    Ok((seen, total))
}

/// A webhook of a repository that the caller administers.
#[boxed]
pub async fn hook(forge: &Forge, caller: &Caller, repo: &Repo, id: &str) -> Result<Seen, HookError> {
    judge(caller, Some(repo.clone()), Action::WebhookList)?;
    let id: HookId = id.parse().map_err(|_| HookError::NotFound("webhook"))?;
    let mut conn = forge.store().read().await?;
    let hook = webhooks::by_id(&mut conn, repo.id, id).await?.ok_or(HookError::NotFound("webhook"))?;
    let latest = deliveries::latest_tried(&mut conn, hook.id).await?;
    let waiting = deliveries::waiting(&mut conn, hook.id).await?;
    Ok(Seen { hook, latest, waiting })
}

/// Deliveries of a webhook, newest first, older than `before`; without payloads and responses. The caller has opened the
/// webhook with [`hook`].
#[boxed]
pub async fn deliveries(
    forge: &Forge,
    hook: &Hook,
    before: Option<DeliveryId>,
    limit: i64,
) -> Result<Vec<Delivery>, HookError> {
    Ok(deliveries::of_hook(&mut *forge.store().read().await?, hook.id, before, limit).await?)
}

/// One delivery with payload and response. The caller has opened the webhook with [`hook`].
#[boxed]
pub async fn delivery(forge: &Forge, hook: &Hook, id: &str) -> Result<Delivery, HookError> {
    let id: DeliveryId = id.parse().map_err(|_| HookError::NotFound("delivery"))?;
    let found = deliveries::by_id(&mut *forge.store().read().await?, hook.id, id).await?;
    found.ok_or(HookError::NotFound("delivery"))
}
