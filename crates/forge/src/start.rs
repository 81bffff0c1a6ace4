//! Repairs before the server accepts connections, so that no client sees the leftovers of a crash.

use crate::git::reconcile;
use crate::repos::create;
use crate::work::leftovers;
use crate::{Fault, Forge};
use abide_git::bare;
use abide_macros::boxed;
use abide_store::nostr::reservations;
use abide_store::sync::{domains, queue, relays};
use abide_store::{StoreError, jobs, leases, webhooks};

/// Number of repairs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Recovered {
    /// Pushes that had no end.
    pub pushes: u64,
    /// Directories that were not made.
    pub directories: u64,
    /// Incoming areas that belonged to nobody.
    pub incoming: u64,
}

/// Takes over from earlier processes of this node: their leases end, their pushes are finished or aborted, directories
/// they did not come to make are made.
#[boxed]
pub async fn recover(forge: &Forge) -> Result<Recovered, Fault> {
    let Some(earlier) = forge.node().earlier_runs() else { return Ok(Recovered::default()) };
    let input = (earlier.to_owned(), forge.node().holder().to_owned());
    let expired: Result<(), StoreError> = forge
        .store()
        .write(input, |tx, (prefix, me)| {
            Box::pin(async move {
                leases::expire_of(tx, prefix, me).await?;
                jobs::expire_of(tx, prefix, me).await?;
                webhooks::expire_of(tx, prefix, me).await?;
                reservations::expire_of(tx, prefix, me).await?;
                queue::expire_of(tx, prefix, me).await?;
                domains::expire_of(tx, prefix, me).await?;
                relays::expire_of(tx, prefix, me).await?;
                jobs::reap(tx).await?;
                Ok(())
            })
        })
        .await;
    expired?;
    let pushes = reconcile::all(forge).await?;
    let directories = create::heal_directories(forge).await?;
    let incoming = leftovers::remove_leftovers(forge).await? + bare::remove_drafts(forge.layout()).await?;
    Ok(Recovered { pushes, directories, incoming })
}
