//! The loop that gives both logs their order. One node at a time holds the lease.

use crate::{Fault, Forge, lease};
use abide_core::Redacted;
use abide_macros::boxed;
use abide_store::leases::{self, Lease};
use abide_store::sequencer::{self, Step};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Rows of each log per transaction.
const BATCH: i64 = 500;
/// Pause between two steps, so that a busy server numbers many rows in one commit.
const GATHER: Duration = Duration::from_millis(50);

/// Runs until stopped, then releases the lease.
#[boxed]
pub async fn run(forge: Forge, stop: CancellationToken) {
    let mut lease = None;
    while !stop.is_cancelled() {
        if let Err(error) = drain(&forge, &mut lease).await {
            tracing::warn!(%error, "the sequencer failed; retrying");
            lease = None;
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = forge.store().log_grew() => tokio::time::sleep(GATHER).await,
            () = tokio::time::sleep(forge.settings().jobs.poll) => {}
        }
    }
    if let Some(lease) = lease {
        // If the release fails, the lease expires.
        let _ = lease::release(&forge, lease).await;
    }
}

/// Numbers all rows that exist now. For commands that run without a server.
#[boxed]
pub async fn catch_up(forge: &Forge) -> Result<(), Fault> {
    let mut lease = None;
    drain(forge, &mut lease).await?;
    if let Some(lease) = lease {
        lease::release(forge, lease).await?;
    }
    Ok(())
}

async fn drain(forge: &Forge, lease: &mut Option<Lease>) -> Result<(), Fault> {
    loop {
        if !work_waits(forge).await? {
            return Ok(());
        }
        let Some(step) = step(forge, lease).await? else { return Ok(()) };
        metrics::counter!("abide_events_numbered_total").increment(step.events);
        metrics::counter!("abide_audit_sealed_total").increment(step.audit);
        if step.events > 0 {
            forge.numbered().send_modify(|steps| *steps += 1);
        }
        if step.events < BATCH as u64 && step.audit < BATCH as u64 {
            return Ok(());
        }
    }
}

/// Checks without the write lock, so that an idle server writes nothing.
async fn work_waits(forge: &Forge) -> Result<bool, Fault> {
    let mut conn = forge.store().read().await?;
    Ok(sequencer::anything_waits(&mut conn).await?)
}

/// One step, taking or keeping the lease in the same transaction; `None` if another node has it.
async fn step(forge: &Forge, lease: &mut Option<Lease>) -> Result<Option<Step>, Fault> {
    struct Unit {
        lease: Option<Lease>,
        holder: String,
        ttl: Duration,
        key: Redacted<[u8; 32]>,
    }
    let unit = Unit {
        lease: lease.clone(),
        holder: forge.node().holder().to_owned(),
        ttl: forge.settings().git.lease_ttl,
        key: forge.key().clone(),
    };
    let done = forge
        .store()
        .write(unit, |tx, unit| {
            Box::pin(async move {
                let held = leases::hold(tx, unit.lease.as_ref(), sequencer::LEASE, &unit.holder, unit.ttl).await?;
                let Some(lease) = held else { return Ok::<_, Fault>(None) };
                let step = sequencer::step(tx, &lease, unit.key.expose(), BATCH).await?;
                Ok(Some((lease, step)))
            })
        })
        .await?;
    Ok(done.map(|(held, step)| {
        *lease = Some(held);
        step
    }))
}
