//! Periodic jobs: each entry runs once per cluster, on the node that gets there first.

use super::{Kind, NoPayload, enqueue};
use crate::{Fault, Forge};
use abide_core::Timestamp;
use abide_macros::boxed;
use abide_store::jobs;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

struct Entry {
    kind: Kind,
    every: Duration,
}

fn entries(forge: &Forge) -> [Entry; 7] {
    [
        Entry { kind: Kind::PushReconcile, every: Duration::from_secs(60) },
        Entry { kind: Kind::HistoryPrune, every: Duration::from_secs(3600) },
        Entry { kind: Kind::TrendingCount, every: Duration::from_secs(3600) },
        Entry { kind: Kind::LifecycleSweep, every: forge.settings().lifecycle.sweep_interval },
        Entry { kind: Kind::GraspSweep, every: Duration::from_secs(60) },
        Entry { kind: Kind::RelayExpire, every: Duration::from_secs(300) },
        // Mails that are due at once have their own job; this is for mails that waited for the end of a window.
        Entry { kind: Kind::NotifyMail, every: Duration::from_secs(60) },
    ]
}

/// Interval for checking the entries.
const LOOK: Duration = Duration::from_secs(5);

/// Enqueues due jobs until stopped.
#[boxed]
pub async fn run(forge: Forge, stop: CancellationToken) {
    let entries = entries(&forge);
    while !stop.is_cancelled() {
        for entry in &entries {
            if let Err(error) = queue_if_due(&forge, entry).await {
                tracing::warn!(%error, kind = entry.kind.as_str(), "cannot read the schedule; retrying");
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

async fn queue_if_due(forge: &Forge, entry: &Entry) -> Result<(), Fault> {
    let now = forge.clock().now();
    if !jobs::schedule_is_due(&mut *forge.store().read().await?, entry.kind.as_str(), now).await? {
        return Ok(());
    }
    let next = now.plus(jittered(forge, entry.every));
    forge
        .store()
        .write((entry.kind, next), |tx, &(kind, next): &(Kind, Timestamp)| {
            Box::pin(async move {
                if jobs::schedule_due(tx, kind.as_str(), next).await? {
                    enqueue(tx, kind, &NoPayload {}, Some("scheduled".into())).await?;
                }
                Ok(())
            })
        })
        .await
}

/// Adds up to a tenth, so that nodes and entries do not run in step.
fn jittered(forge: &Forge, every: Duration) -> Duration {
    let mut random = [0; 1];
    forge.random().fill(&mut random);
    every.mul_f64(1.0 + 0.1 * f64::from(random[0]) / 255.0)
}
