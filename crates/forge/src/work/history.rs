//! Prunes finished and expired rows, and old mails.

use crate::jobs::JobError;
use crate::{Forge, mail};
use abide_core::Timestamp;
use abide_store::accounts::{links, sessions, user_keys};
use abide_store::repos::pushes;
use abide_store::sync::{domains, relays};
use abide_store::webhooks::{self, deliveries};
use abide_store::{StoreError, events, jobs, throttles};
use std::time::Duration;

/// Longest window of a rate limit: settings above it are refused.
const LONGEST_WINDOW: Duration = Duration::from_secs(86_400);

/// Prunes old events and deliveries, in batches so that others can write in between.
async fn prune_logs(forge: &Forge, deliveries_from: Timestamp) -> Result<(), StoreError> {
    let events_from = forge.clock().now().minus(forge.settings().attention.event_retention);
    let unit = (events_from, deliveries_from);
    loop {
        let forgotten: Result<bool, StoreError> = forge
            .store()
            .write(unit, |tx, (events_from, deliveries_from)| {
                Box::pin(async move {
                    let events = events::prune(tx, *events_from).await?;
                    Ok(deliveries::prune(tx, *deliveries_from).await? > 0 || events)
                })
            })
            .await;
        if !forgotten? {
            return Ok(());
        }
    }
}

/// The job.
pub(super) async fn work(forge: &Forge) -> Result<(), JobError> {
    let before = forge.clock().now().minus(forge.settings().jobs.history);
    mail::prune(forge, before).await;
    let delivered_before = forge.clock().now().minus(forge.settings().webhooks.retention);
    prune_logs(forge, delivered_before).await?;
    forge
        .store()
        .write((before, delivered_before), |tx, (before, delivered_before)| {
            Box::pin(async move {
                webhooks::prune_gone(tx, *delivered_before).await?;
                jobs::prune(tx, *before).await?;
                pushes::prune(tx, *before).await?;
                sessions::prune(tx).await?;
                links::prune(tx).await?;
                user_keys::prune(tx).await?;
                let counted = tx.now().minus(LONGEST_WINDOW);
                throttles::prune(tx, counted).await?;
                domains::prune(tx, counted).await?;
                relays::prune(tx, *before).await?;
                Ok(())
            })
        })
        .await
}
