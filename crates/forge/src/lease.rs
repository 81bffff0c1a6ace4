//! Leases in use: taken, renewed while work runs under them, released at its end.

use crate::{Fault, Forge};
use abide_store::StoreError;
use abide_store::leases::{self, Lease};
use std::time::Duration;

/// Pause between two attempts: nodes do not notify each other of released leases.
const RETRY: Duration = Duration::from_millis(100);

/// Takes a lease; `None` if another holder has it.
pub(crate) async fn take(forge: &Forge, name: &str) -> Result<Option<Lease>, Fault> {
    let input = (name.to_owned(), forge.node().holder().to_owned(), forge.settings().git.lease_ttl);
    let taken: Result<Option<Lease>, StoreError> =
        forge.store().write(input, |tx, (name, holder, ttl)| Box::pin(leases::take(tx, name, holder, *ttl))).await;
    Ok(taken?)
}

/// Takes a lease; waits for its holder as long as a push waits for another; `None` after that.
pub(crate) async fn take_patiently(forge: &Forge, name: &str) -> Result<Option<Lease>, Fault> {
    let deadline = tokio::time::Instant::now() + forge.settings().git.lease_wait;
    loop {
        match take(forge, name).await? {
            Some(lease) => return Ok(Some(lease)),
            None if tokio::time::Instant::now() >= deadline => return Ok(None),
            None => freed(forge).await,
        }
    }
}

/// Returns when a lease may be free.
pub(crate) async fn freed(forge: &Forge) {
    tokio::select! {
        () = forge.lease_freed().notified() => {}
        () = tokio::time::sleep(RETRY) => {}
    }
}

/// Releases a lease. Harmless if it was lost.
pub(crate) async fn release(forge: &Forge, lease: Lease) -> Result<(), Fault> {
    let released: Result<(), StoreError> =
        forge.store().write(lease, |tx, lease| Box::pin(leases::release(tx, lease))).await;
    forge.lease_freed().notify_waiters();
    Ok(released?)
}

/// Runs work under a lease that is renewed meanwhile. Drops the work if the lease is lost: its next step would fail.
pub(crate) async fn keep<T>(
    forge: &Forge,
    lease: &Lease,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    tokio::select! {
        done = work => done,
        lost = renew(forge, lease) => Err(lost),
    }
}

/// Renews a lease until dropped; returns only if it was lost.
async fn renew(forge: &Forge, lease: &Lease) -> Fault {
    let ttl = forge.settings().git.lease_ttl;
    loop {
        tokio::time::sleep(ttl / 3).await;
        let renewed: Result<(), StoreError> = forge
            .store()
            .write((lease.clone(), ttl), |tx, (lease, ttl)| Box::pin(leases::renew(tx, lease, *ttl)))
            .await;
        match renewed {
            Ok(()) => {}
            Err(StoreError::LeaseLost(name)) => return StoreError::LeaseLost(name).into(),
            Err(error) => tracing::warn!(%error, name = lease.name, "cannot renew a lease; retrying"),
        }
    }
}
