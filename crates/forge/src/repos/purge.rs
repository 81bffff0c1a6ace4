//! Removes a deleted repository after its grace period. This is the only lifecycle operation that changes the disk.
//!
//! It has two phases, so that the next sweep finishes after a crash at any point. One transaction removes the row,
//! keeps a snapshot in the logs and writes a purge row. Then the directory is removed, and then the purge row.

use super::refusal::LifeError;
use super::transfer;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::git::maintain;
use crate::grasp::life;
use crate::jobs::JobError;
use crate::open::open_locked;
use crate::{Access, Caller, Fault, Forge, GraspSettings, lease};
use abide_core::event::{Payload, RepoHardDeleted, RepoSnapshot};
use abide_core::lifecycle::{self, Action as Life};
use abide_core::policy::Action;
use abide_core::{RepoId, Timestamp, failpoint};
use abide_git::bare;
use abide_macros::boxed;
use abide_store::attention::notifications;
use abide_store::leases::{self, Lease};
use abide_store::repos::purges;
use abide_store::repos::pushes;
use abide_store::repos::{self, Repo};
use abide_store::{StoreError, Tx, events};
use serde_json::json;
use std::future::Future;
use std::time::Duration;

/// Time limit for one repository. After it, the sweep continues with the next repository, and the next sweep tries
/// again.
const PATIENCE: Duration = Duration::from_secs(45);

/// Admins of a repository who are notified of its changes, besides its owner.
pub(crate) const MAX_ADMINS: i64 = 50;

/// Result of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Transfer offers that expired.
    pub expired: u64,
    /// Repositories whose row was removed.
    pub removed: u64,
    /// Repositories whose removal failed.
    pub failed: u64,
}

/// Expires transfer offers, finishes removals that a crash interrupted, and removes repositories past their grace
/// period, oldest first.
#[boxed]
pub async fn sweep(forge: &Forge) -> Result<Swept, Fault> {
    let mut swept = Swept { expired: transfer::expire_due(forge).await?, ..Swept::default() };
    finish_all(forge, &mut swept).await?;

    const PAGE: i64 = 100;
    let grace = forge.settings().lifecycle.grace;
    let until = forge.clock().now().minus(grace);
    let mut cursor = (Timestamp::from_micros(0), RepoId::new(0));
    loop {
        let page = repos::deleted_until(&mut *forge.store().read().await?, until, cursor, PAGE).await?;
        for &(at, id) in &page {
            cursor = (at, id);
            match within(PATIENCE, remove(forge, &Caller::operator(), id, grace)).await {
                Ok(()) => swept.removed += 1,
                // Restored or removed in the meantime, or in use: not a failure.
                Err(LifeError::Refused(_) | LifeError::Busy | LifeError::Access(Access::NotFound)) => {}
                Err(error) => note_failure(&mut swept, id, &error),
            }
        }
        if page.len() < PAGE as usize {
            return Ok(swept);
        }
    }
}

/// Removes a deleted repository at once, without the grace period. Only the operator may do this.
#[boxed]
pub async fn purge(forge: &Forge, caller: &Caller, repo: &Repo) -> Result<(), LifeError> {
    remove(forge, caller, repo.id, Duration::ZERO).await
}

/// Finishes every removal whose row is gone and whose directory may still exist.
async fn finish_all(forge: &Forge, swept: &mut Swept) -> Result<(), Fault> {
    const PAGE: i64 = 100;
    let mut after = RepoId::new(0);
    loop {
        let page = purges::page(&mut *forge.store().read().await?, after, PAGE).await?;
        for &id in &page {
            after = id;
            let finished = within(PATIENCE, async { Ok(remove_directory(forge, id).await?) }).await;
            if let Err(error) = finished {
                note_failure(swept, id, &error);
            }
        }
        if page.len() < PAGE as usize {
            return Ok(());
        }
    }
}

fn note_failure(swept: &mut Swept, id: RepoId, error: &LifeError) {
    tracing::error!(%error, repo = id.get(), "a repository could not be deleted permanently; the next sweep retries");
    swept.failed += 1;
}

async fn within(limit: Duration, work: impl Future<Output = Result<(), LifeError>>) -> Result<(), LifeError> {
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result,
        Err(_) => Err(Fault::Internal(format!("it took more than {} seconds", limit.as_secs())).into()),
    }
}

/// Both phases of one removal.
async fn remove(forge: &Forge, caller: &Caller, id: RepoId, grace: Duration) -> Result<(), LifeError> {
    let deadline = tokio::time::Instant::now() + forge.settings().git.lease_wait;
    loop {
        let unit = Unit {
            id,
            caller: caller.clone(),
            grace,
            holder: forge.node().holder().to_owned(),
            ttl: forge.settings().git.lease_ttl,
            grasp: forge.settings().grasp.clone(),
        };
        match forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await {
            Err(LifeError::Busy) if tokio::time::Instant::now() < deadline => {
                lease::freed(forge).await;
            }
            result => break result?,
        }
    }
    failpoint::hit(failpoint::PURGE_COMMITTED);
    Ok(remove_directory(forge, id).await?)
}

struct Unit {
    id: RepoId,
    caller: Caller,
    grace: Duration,
    holder: String,
    ttl: Duration,
    grasp: GraspSettings,
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<(), LifeError> {
    // The leases keep pushes and maintenance away while the repository is removed.
    let mut held: Vec<Lease> = Vec::new();
    for name in [pushes::lease_name(unit.id), maintain::lease_name(unit.id)] {
        held.push(leases::take(tx, &name, &unit.holder, unit.ttl).await?.ok_or(LifeError::Busy)?);
    }
    let repo = open_locked(tx, &unit.caller, unit.id, Action::RepoPurge).await?;
    lifecycle::transition(repo.state(), Life::Purge { grace: unit.grace }, tx.now())?;
    if !pushes::running_of(tx, repo.id).await?.is_empty() {
        return Err(LifeError::Busy);
    }
    let who = Who::from(&unit.caller);
    let snapshot = snapshot(&repo);
    audit_repo(tx, &who, AuditAction::RepoHardDeleted, &repo, json!(snapshot)).await?;
    // The event loses its repository with the row, so it carries a snapshot and the admins who must be notified.
    let admins = notifications::admins(tx, repo.id, MAX_ADMINS).await?;
    let payload = Payload::RepoHardDeleted(RepoHardDeleted { snapshot, admins });
    emit(tx, &who, Subject::Repo(&repo), repo.visibility.into(), payload).await?;
    life::forget(tx, &unit.grasp, &repo).await?;
    purges::insert(tx, repo.id, &repo.slug()).await?;
    events::forget_commits(tx, repo.id, repo.slug()).await?;
    repos::remove(tx, repo.id).await?;
    for lease in &held {
        leases::release(tx, lease).await?;
    }
    failpoint::hit(failpoint::PURGE_BEFORE_COMMIT);
    Ok(())
}

/// Snapshot of a repository for the logs.
fn snapshot(repo: &Repo) -> RepoSnapshot {
    RepoSnapshot {
        id: repo.id,
        slug: repo.slug(),
        owner_id: repo.owner_id,
        name: repo.name.to_string(),
        visibility: repo.visibility,
        governance: repo.governance,
        default_branch: repo.default_branch.to_string(),
        fork_of: repo.fork_of,
        size_bytes: repo.size_bytes,
        star_count: repo.star_count,
        watcher_count: repo.watcher_count,
        created_at: Some(repo.created_at),
        updated_at: Some(repo.updated_at),
        pushed_at: repo.pushed_at,
        archived_at: repo.archived_at,
        deleted_at: repo.deleted_at,
    }
}

/// The second phase: remove the directory, then the purge row.
async fn remove_directory(forge: &Forge, id: RepoId) -> Result<(), Fault> {
    bare::remove_repo(forge.layout(), id).await?;
    failpoint::hit(failpoint::PURGE_DIRECTORY_REMOVED);
    let forgotten: Result<(), StoreError> = forge.store().write(id, |tx, id| Box::pin(purges::remove(tx, *id))).await;
    forgotten?;
    failpoint::hit(failpoint::PURGE_FINISHED);
    Ok(())
}

/// The job: sweeps repositories and offers.
pub(crate) async fn work(forge: &Forge) -> Result<(), JobError> {
    let swept = sweep(forge).await?;
    if swept != Swept::default() {
        tracing::info!(?swept, "swept repositories and offers");
    }
    Ok(())
}
