//! The end of what its author wanted forgotten (NIP-40). Nobody is served it any more by then.

use super::record::readable;
use crate::grasp::spread;
use crate::{Fault, Forge};
use abide_nostr::git::Proposal;
use abide_store::{StoreError, Tx, nostr_events};

/// So many at a time, so that others can write meanwhile.
const AT_A_TIME: i64 = 100;

/// Removes everything that asked to be forgotten by now.
pub(crate) async fn expire(forge: &Forge) -> Result<(), Fault> {
    let now = forge.clock().now().micros().div_euclid(1_000_000);
    loop {
        let gone = forge.store().write(now, |tx, now| Box::pin(some(tx, *now))).await?;
        if gone < AT_A_TIME.unsigned_abs() as usize {
            return Ok(());
        }
    }
}

/// Some of it, with what takes the refs of proposals away.
async fn some(tx: &mut Tx, now: i64) -> Result<usize, StoreError> {
    let (gone, proposals) = nostr_events::expire(tx, now, AT_A_TIME).await?;
    for event in proposals.iter().filter_map(|json| readable(json)) {
        if let Ok(proposal) = Proposal::parse(&event)
            && proposal.commit.is_some()
        {
            spread::enqueue(tx, &event, &proposal).await?;
        }
    }
    Ok(gone)
}
