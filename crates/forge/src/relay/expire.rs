//! The end of what its author wanted forgotten (NIP-40). Nobody is served it any more by then.

use crate::{Fault, Forge};
use abide_store::{StoreError, nostr_events};

/// So many at a time, so that others can write meanwhile.
const AT_A_TIME: i64 = 500;

/// Removes everything that asked to be forgotten by now.
pub(crate) async fn expire(forge: &Forge) -> Result<u64, Fault> {
    let now = forge.clock().now().micros().div_euclid(1_000_000);
    let mut gone = 0;
    loop {
        let part: Result<u64, StoreError> =
            forge.store().write(now, |tx, now| Box::pin(nostr_events::expire(tx, *now, AT_A_TIME))).await;
        let part = part?;
        gone += part;
        if part < AT_A_TIME.unsigned_abs() {
            return Ok(gone);
        }
    }
}
