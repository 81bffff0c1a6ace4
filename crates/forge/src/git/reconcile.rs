//! Reconciliation after a crash: running pushes whose process is gone.
//!
//! The next holder of a repository's lease, the start of a server and the sweep all call this. If all refs have their
//! new values, the push is finished, with its event. If all have their old values, it is aborted. In between (the
//! machine died while git moved several refs), the rest is completed: every old value was checked and every object is
//! here.

use super::push::authority::SignedPushes;
use super::push::{Brought, brought, finish, first_default};
use crate::blocking::blocking;
use crate::emit::Who;
use crate::{Fault, Forge, lease};
use abide_core::{PushId, RepoId};
use abide_git::{GitError, RefsMatch, incoming, locks, reftx};
use abide_macros::boxed;
use abide_store::leases::{self, Lease};
use abide_store::repos::pushes::{self, Outcome, Push};
use abide_store::{StoreError, repos};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Time for a git process to end that was committing refs when its server died.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(5);
const ORPHAN_POLL: Duration = Duration::from_millis(50);

/// Reconciles every repository that a dead process left unfinished. Returns the number of repaired pushes.
#[boxed]
pub async fn all(forge: &Forge) -> Result<u64, Fault> {
    const PAGE: i64 = 100;
    let mut after = PushId::new(0);
    let mut done = 0;
    loop {
        let now = forge.clock().now();
        let page = pushes::orphaned(&mut *forge.store().read().await?, now, after, PAGE).await?;
        for push in &page {
            after = push.id;
            if repo(forge, push.repo_id).await? {
                done += 1;
            }
        }
        if page.len() < PAGE as usize {
            return Ok(done);
        }
    }
}

/// Takes the lease of one repository and reconciles it; `false` if another holder has the lease.
async fn repo(forge: &Forge, repo: RepoId) -> Result<bool, Fault> {
    let Some(held) = lease::take(forge, &pushes::lease_name(repo)).await? else { return Ok(false) };
    let result = under_lease(forge, &held, repo).await;
    let released = lease::release(forge, held).await;
    result?;
    released?;
    Ok(true)
}

/// Reconciles a repository whose lease is held.
pub(crate) async fn under_lease(forge: &Forge, lease: &Lease, repo: RepoId) -> Result<(), Fault> {
    let running = pushes::running_of(&mut *forge.store().read().await?, repo).await?;
    for push in &running {
        one(forge, lease, push).await?;
    }
    let settled: Result<(), StoreError> = forge
        .store()
        .write((lease.clone(), repo), |tx, (lease, repo)| {
            Box::pin(async move {
                leases::check(tx, lease).await?;
                repos::settle_refs(tx, *repo).await
            })
        })
        .await;
    Ok(settled?)
}

/// Determines the outcome of one running push and records it.
pub(crate) async fn one(forge: &Forge, lease: &Lease, push: &Push) -> Result<Outcome, Fault> {
    let dir = forge.layout().repo(push.repo_id);
    clear_locks(&dir).await?;
    let outcome = match reftx::refs_match(&dir, &push.updates).await? {
        RefsMatch::AllApplied => Outcome::Done,
        RefsMatch::NoneApplied => Outcome::Aborted,
        RefsMatch::Mixed => complete(forge, push).await?,
    };
    tracing::info!(push = push.id.get(), repo = push.repo_id.get(), ?outcome, "reconciled an unfinished push");
    let repo = repos::by_id(&mut *forge.store().read().await?, push.repo_id, None).await?;
    let (first, brought) = match repo.filter(|_| outcome == Outcome::Done) {
        Some(repo) => {
            let first = first_default(forge, &repo, push).await?;
            let brought = brought(dir, first.as_ref().unwrap_or(&repo.default_branch), &push.updates).await;
            (first, brought)
        }
        None => (None, Brought::default()),
    };
    let end = (lease.clone(), push.clone(), forge.part::<Arc<dyn SignedPushes>>().clone(), brought, first, outcome);
    let written: Result<(), StoreError> = forge
        .store()
        .write(end, |tx, (lease, push, authority, brought, first, outcome)| {
            Box::pin(async move {
                leases::check(tx, lease).await?;
                let who = Who { user: push.actor, ip: None };
                finish(tx, push, &**authority, brought, first.as_ref(), *outcome, &who).await
            })
        })
        .await;
    written?;
    incoming::remove_incoming(forge.layout(), &push.incoming).await?;
    Ok(outcome)
}

/// Removes locks of git processes that have ended, for the holder of the repository's lease.
///
/// A git process that outlived its server holds a lock for every ref that it may still move, so no lock means no movement.
/// It gets time to end first.
pub(crate) async fn clear_locks(dir: &Path) -> Result<(), Fault> {
    let deadline = tokio::time::Instant::now() + ORPHAN_PATIENCE;
    while looked(dir, locks::refs_are_locked).await? && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(ORPHAN_POLL).await;
    }
    looked(dir, locks::clear_stale_locks).await.map(drop)
}

async fn looked<T: Send + 'static>(dir: &Path, look: fn(&Path) -> Result<T, GitError>) -> Result<T, Fault> {
    let dir = dir.to_owned();
    Ok(blocking("looking for locks", move || look(&dir)).await??)
}

/// Moves the refs that an interrupted transaction left behind.
async fn complete(forge: &Forge, push: &Push) -> Result<Outcome, Fault> {
    let dir = forge.layout().repo(push.repo_id);
    let (left, strayed) = reftx::refs_left(&dir, &push.updates).await?;
    for update in &strayed {
        tracing::error!(r#ref = update.name.as_str(), "a ref has neither its old nor its new value");
    }
    reftx::update_refs(forge.git(), &dir, &left)
        .await
        .map_err(|error| Fault::Internal(format!("completing an unfinished push failed: {error}")))?;
    Ok(Outcome::Done)
}
