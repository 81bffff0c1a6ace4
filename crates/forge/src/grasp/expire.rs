//! Removal of expired events (NIP-40). They are no longer served by then.

use super::spread;
use crate::relay::readable;
use crate::{Fault, Forge};
use abide_nostr::git::PrEvent;
use abide_store::{StoreError, Tx, nostr};

/// Events that one transaction removes, so that other writers can run in between.
const AT_A_TIME: i64 = 100;

/// Removes all expired events.
pub(crate) async fn expire(forge: &Forge) -> Result<(), Fault> {
    let now = forge.clock().now().micros().div_euclid(1_000_000);
    loop {
        let gone = forge.store().write(now, |tx, now| Box::pin(some(tx, *now))).await?;
        if gone < AT_A_TIME.unsigned_abs() as usize {
            return Ok(());
        }
    }
}

/// Removes a batch, and queues the removal of the refs of its PR events.
async fn some(tx: &mut Tx, now: i64) -> Result<usize, StoreError> {
    let (gone, pr_events) = nostr::events::expire(tx, now, AT_A_TIME).await?;
    for event in pr_events.iter().filter_map(|json| readable(json)) {
        if let Ok(pr_event) = PrEvent::parse(&event)
            && pr_event.commit.is_some()
        {
            spread::enqueue(tx, &event, &pr_event).await?;
        }
    }
    Ok(gone)
}
