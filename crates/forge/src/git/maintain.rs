//! Repository maintenance: merges small packs, packs refs, writes bitmaps and the commit-graph.

use super::reconcile;
use crate::blocking::blocking;
use crate::disk::{Writer, ensure_room_for};
use crate::jobs::{self, Job, JobError, Kind};
use crate::{Fault, Forge, lease};
use abide_core::RepoId;
use abide_git::GitError;
use abide_git::maintain::{self, Owner};
use abide_macros::boxed;
use abide_nostr::grasp::quota::REPOSITORY_BYTES;
use abide_store::nostr::quotas;
use abide_store::repos::Repo;
use abide_store::repos::pushes::{self, Push};
use abide_store::{StoreError, Tx, repos};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Pushes between two maintenance runs.
const EVERY: i64 = 32;

/// Payload of the job.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Payload {
    repo_id: RepoId,
}

/// Whether this push triggers maintenance: the first one, every [`EVERY`]th, and large ones.
pub(super) fn wanted(push: &Push) -> bool {
    // Each push raises the generation by two.
    let count = push.generation / 2;
    count == 0 || count % EVERY == 0 || push.updates.len() > 100
}

/// Enqueues maintenance of a repository, once.
pub(crate) async fn enqueue(tx: &mut Tx, repo: RepoId) -> Result<(), StoreError> {
    jobs::enqueue(tx, Kind::RepoMaintain, &Payload { repo_id: repo }, Some(repo.to_string())).await
}

/// Name of the maintenance lease. Pushes continue under it, but removal of the repository waits: git recreates
/// directories that vanish while it runs.
pub(crate) fn lease_name(id: RepoId) -> String {
    format!("maintain:{id}")
}

/// Runs maintenance on one repository. Objects need no lock; refs are packed under the push lease.
#[boxed]
pub async fn run(forge: &Forge, id: RepoId) -> Result<(), Fault> {
    let Some(held) = lease::take(forge, &lease_name(id)).await? else { return Ok(()) };
    let tidied = lease::keep(forge, &held, tidy(forge, id)).await;
    lease::release(forge, held).await?;
    tidied
}

async fn tidy(forge: &Forge, id: RepoId) -> Result<(), Fault> {
    let repo = repos::by_id(&mut *forge.store().read().await?, id, None).await?;
    let dir = forge.layout().repo(id);
    let Some(repo) = repo.filter(|_| dir.exists()) else { return Ok(()) };
    if !looked(&dir, maintain::is_small).await? && has_room(forge, id, &dir).await? {
        repack(forge, &repo, &dir).await?;
        pack_refs(forge, id).await?;
    }
    let bytes = looked(&dir, maintain::disk_usage).await?;
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let written: Result<(), StoreError> =
        forge.store().write((id, bytes), |tx, &(id, bytes)| Box::pin(write_size(tx, id, bytes))).await;
    Ok(written?)
}

/// Repacks with the limits of the repository's owner. A repository of a stranger that needs more stays as it is: another
/// try would cost as much and end alike.
async fn repack(forge: &Forge, repo: &Repo, dir: &Path) -> Result<(), Fault> {
    let owner = if repo.owner_name.is_some() { Owner::Account } else { Owner::Stranger };
    match maintain::maintain(forge.git(), dir, maintain::Level::Light, owner).await {
        Err(error @ (GitError::UsedUp { .. } | GitError::TimedOut { .. })) if owner == Owner::Stranger => {
            tracing::warn!(%error, repo = repo.id.get(), "skipped the maintenance of a stranger's repository");
            Ok(())
        }
        maintained => Ok(maintained?),
    }
}

/// Whether the disk has room for a second copy of the repository: a repack deletes the old packs only after it has written
/// the new ones. Without room, the repository stays as it is until its next maintenance.
async fn has_room(forge: &Forge, id: RepoId, dir: &Path) -> Result<bool, Fault> {
    let bytes = looked(dir, maintain::disk_usage).await?;
    match ensure_room_for(forge, Writer::Account, bytes) {
        Ok(()) => Ok(true),
        Err(fault @ Fault::DiskFull { .. }) => {
            tracing::warn!(error = %fault, repo = id.get(), bytes, "skipped the maintenance of a repository");
            Ok(false)
        }
        Err(fault) => Err(fault),
    }
}

/// Notes the size of a repository. A signed one is charged with no more than that, and with what every repository takes.
async fn write_size(tx: &mut Tx, id: RepoId, bytes: i64) -> Result<(), StoreError> {
    repos::set_size(tx, id, bytes).await?;
    let fixed = i64::try_from(REPOSITORY_BYTES).unwrap_or(i64::MAX);
    quotas::shrink_repo(tx, id, bytes.saturating_add(fixed)).await
}

/// Runs a blocking inspection of a directory.
async fn looked<T: Send + 'static>(dir: &Path, look: fn(&Path) -> Result<T, GitError>) -> Result<T, Fault> {
    let dir = dir.to_owned();
    Ok(blocking("measuring a repository", move || look(&dir)).await??)
}

/// Packs refs if no push is running; otherwise the next maintenance run does.
async fn pack_refs(forge: &Forge, id: RepoId) -> Result<(), Fault> {
    let Some(held) = lease::take(forge, &pushes::lease_name(id)).await? else { return Ok(()) };
    // Packing moves refs between files without changing them, so the generation stays.
    let packed = match pushes::running_of(&mut *forge.store().read().await?, id).await?.is_empty() {
        true => lease::keep(forge, &held, pack_unlocked(forge, id)).await,
        false => Ok(()),
    };
    lease::release(forge, held).await?;
    packed
}

/// Packs refs once no lock of a git process that died is in the way.
async fn pack_unlocked(forge: &Forge, id: RepoId) -> Result<(), Fault> {
    let dir = forge.layout().repo(id);
    reconcile::clear_locks(&dir).await?;
    Ok(maintain::pack_refs(forge.git(), &dir).await?)
}

/// The job.
pub(crate) async fn work(forge: &Forge, job: &Job) -> Result<(), JobError> {
    let lacking = || JobError::Final("the payload lacks repo_id; run it for one repository".into());
    let Payload { repo_id } = jobs::payload(job).ok_or_else(lacking)?;
    run(forge, repo_id).await.map_err(|fault| match fault {
        // Another run is at work, or one that died left its lock, which is removed when it is old enough.
        Fault::Git(GitError::Locked(_) | GitError::Busy { .. }) => JobError::Later(fault),
        fault => fault.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_stored_as_ever() {
        jobs::assert_stored(&Payload { repo_id: RepoId::new(7) }, r#"{"repo_id":7}"#);
    }
}
