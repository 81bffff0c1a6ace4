//! Renaming: one transaction, nothing on disk. The old name redirects to the repository.

use super::refusal::LifeError;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::open::{open_locked, viewer};
use crate::{Caller, Forge};
use abide_core::event::{NameChange, Payload};
use abide_core::lifecycle::{self, Action as Life};
use abide_core::policy::{Action, Actor};
use abide_core::{RepoId, RepoName, failpoint};
use abide_macros::boxed;
use abide_store::repos::redirects;
use abide_store::repos::{self, Repo};
use abide_store::{Tx, audit};
use std::time::Duration;

/// A renamed repository.
#[derive(Debug, Clone)]
pub struct Renamed {
    pub repo: Repo,
    /// The name redirected to another repository before. The redirect is inactive while this repository has the name.
    pub replaced: bool,
}

/// Renames a repository.
#[boxed]
pub async fn rename(forge: &Forge, caller: &Caller, repo: &Repo, typed: &str) -> Result<Renamed, LifeError> {
    let unit =
        Unit { id: repo.id, caller: caller.clone(), name: typed.trim().parse()?, limits: RenameLimit::of(forge) };
    let renamed = forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await?;
    failpoint::hit(failpoint::RENAME_COMMITTED);
    Ok(renamed)
}

/// Rename limit of a repository.
#[derive(Debug, Clone, Copy)]
pub(super) struct RenameLimit {
    limit: usize,
    window: Duration,
}

impl RenameLimit {
    pub(super) fn of(forge: &Forge) -> Self {
        let life = &forge.settings().lifecycle;
        Self { limit: life.rename_limit, window: life.rename_window }
    }
}

struct Unit {
    id: RepoId,
    caller: Caller,
    name: RepoName,
    limits: RenameLimit,
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Renamed, LifeError> {
    let mut repo = open_locked(tx, &unit.caller, unit.id, Action::RepoAdmin).await?;
    if repo.name == unit.name {
        return Err(LifeError::SameName);
    }
    let replaced = step(tx, &unit.caller, &mut repo, &unit.name, unit.limits).await?;
    Ok(Renamed { repo, replaced })
}

/// Renames a locked repository. Returns whether the name redirected to another repository before.
pub(super) async fn step(
    tx: &mut Tx,
    caller: &Caller,
    repo: &mut Repo,
    name: &RepoName,
    limits: RenameLimit,
) -> Result<bool, LifeError> {
    let now = tx.now();
    lifecycle::transition(repo.state(), Life::Rename, now)?;
    let RenameLimit { limit, window } = limits;
    if caller.actor != Actor::Operator {
        // Count renames in the audit log: transfers write redirects too, and renaming back and forth writes none.
        let since = now.minus(window);
        let recent = audit::renames(tx, repo.id, since, i64::try_from(limit).unwrap_or(i64::MAX)).await?;
        if let Some(wait) = lifecycle::rename_wait(&recent, limit, window, now) {
            return Err(LifeError::RenameRateLimited { limit, window, wait });
        }
    }
    let old = std::mem::replace(&mut repo.name, name.clone());
    repos::rename(tx, repo.id, name).await?;
    let led_to = redirects::take(tx, repo.owner_id, name, repo.id, viewer(caller)).await?;
    redirects::leave(tx, repo.owner_id, &old, repo.id, now).await?;

    let who = Who::from(caller);
    let payload = Payload::RepoRenamed(NameChange { old_name: old.to_string(), new_name: name.to_string() });
    audit_repo(tx, &who, AuditAction::RepoRenamed, repo, payload.details()).await?;
    emit(tx, &who, Subject::Repo(repo), repo.visibility.into(), payload).await?;
    failpoint::hit(failpoint::RENAME_BEFORE_COMMIT);
    Ok(led_to.is_some())
}
