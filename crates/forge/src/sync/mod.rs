//! Fetches git data that waiting events lack from the clone URLs of signed events.
//!
//! * An event that begins to wait queues its identifier (`store::sync::queue`). [`run`] claims due identifiers, one task
//!   for each in the cluster.
//! * `task.rs`: one run: which objects are missing (`grasp::needs`), which URLs may have them, one URL after another.
//! * `attempt.rs`: one request of a domain: probe, fetch into a quarantine, and `grasp::fetched` takes it as a push.
//! * `remote.rs`: a clone URL over the outbound gate. `throttle.rs`: requests, turns and rest of domains, and the budget
//!   of the key that names a URL. [`status`]: for pages and the operator.
//!
//! When something is tried is a rule of `abide_core::sync`.

mod attempt;
mod remote;
pub mod status;
mod task;
mod throttle;

pub(crate) use throttle::Running;

use crate::{Fault, Forge};
use abide_core::failpoint;
use abide_macros::boxed;
use abide_store::sync::queue::{self, Entry};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Hold of a claimed identifier.
const HOLD: Duration = Duration::from_secs(60);

/// Fetches until stopped; running tasks are then interrupted and their identifiers are due again.
#[boxed]
pub async fn run(forge: Forge, stop: CancellationToken) {
    if !forge.settings().sync.enabled {
        return;
    }
    let mut tasks = JoinSet::new();
    while !stop.is_cancelled() {
        if let Err(fault) = throttle::give_turns(&forge).await {
            tracing::warn!(error = %fault, "cannot give turns at domains; retrying");
        }
        if let Err(fault) = status::measure(&forge).await {
            tracing::warn!(error = %fault, "cannot count the queue of identifiers");
        }
        while tasks.len() < forge.settings().sync.at_once {
            match claim(&forge).await {
                Ok(Some(entry)) => {
                    failpoint::hit(failpoint::SYNC_CLAIMED);
                    tasks.spawn(task::run(forge.clone(), entry, stop.clone()));
                }
                Ok(None) => break,
                Err(fault) => {
                    tracing::warn!(error = %fault, "cannot read the queue of identifiers; retrying");
                    break;
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(forge.settings().sync.tick) => {}
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a fetch ended early");
                }
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// Checks without the write lock first, so that an idle server writes nothing.
async fn claim(forge: &Forge) -> Result<Option<Entry>, Fault> {
    let now = forge.clock().now();
    if !queue::anything_to_do(&mut *forge.store().read().await?, now).await? {
        return Ok(None);
    }
    let holder = forge.node().holder().to_owned();
    forge.store().write(holder, |tx, holder| Box::pin(async move { Ok(queue::claim(tx, holder, HOLD).await?) })).await
}
