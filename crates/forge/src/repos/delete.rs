//! Soft deletion: the repository disappears for everyone, its name is free at once, and it can be restored.

use super::refusal::LifeError;
use super::transfer;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::grasp::life;
use crate::open::open_locked;
use crate::{Caller, Forge, GraspSettings};
use abide_core::event::{Payload, RepoSoftDeleted};
use abide_core::lifecycle::{self, Change};
use abide_core::policy::Action;
use abide_core::{RepoId, Timestamp, failpoint};
use abide_macros::boxed;
use abide_store::Tx;
use abide_store::repos::{self, Repo};
use serde_json::json;
use std::time::Duration;

/// Soft-deletes a repository. Returns the time until which it can be restored.
#[boxed]
pub async fn delete(forge: &Forge, caller: &Caller, repo: &Repo) -> Result<Timestamp, LifeError> {
    let settings = forge.settings();
    let unit =
        Unit { id: repo.id, caller: caller.clone(), grace: settings.lifecycle.grace, grasp: settings.grasp.clone() };
    let until = forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await?;
    failpoint::hit(failpoint::DELETE_COMMITTED);
    Ok(until)
}

struct Unit {
    id: RepoId,
    caller: Caller,
    grace: Duration,
    grasp: GraspSettings,
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Timestamp, LifeError> {
    let repo = open_locked(tx, &unit.caller, unit.id, Action::RepoDelete).await?;
    let until = step(tx, &Who::from(&unit.caller), &repo, unit.grace, &unit.grasp).await?;
    failpoint::hit(failpoint::DELETE_BEFORE_COMMIT);
    Ok(until)
}

/// Soft-deletes a locked repository. The caller has checked the permission.
pub(crate) async fn step(
    tx: &mut Tx,
    who: &Who,
    repo: &Repo,
    grace: Duration,
    grasp: &GraspSettings,
) -> Result<Timestamp, LifeError> {
    let until = tx.now().plus(grace);
    if let Change::To(state) = lifecycle::transition(repo.state(), lifecycle::Action::SoftDelete, tx.now())? {
        transfer::cancel_pending(tx, who, repo).await?;
        life::hide(tx, grasp, repo).await?;
        repos::set_marks(tx, repo.id, &state).await?;
        audit_repo(tx, who, AuditAction::RepoSoftDeleted, repo, json!({ "slug": repo.slug() })).await?;
        let payload = Payload::RepoSoftDeleted(RepoSoftDeleted { restore_until: Some(until) });
        emit(tx, who, Subject::Repo(repo), repo.visibility.into(), payload).await?;
    }
    Ok(until)
}
