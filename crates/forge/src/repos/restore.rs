//! Restores a soft-deleted repository: the same id with all its data, under its old name or another.

use super::refusal::LifeError;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::grasp::life;
use crate::open::{RepoLocator, judge, open_locked, viewer};
use crate::{Access, Caller, Fault, Forge, GraspSettings, throttle};
use abide_core::event::{NameChange, Payload};
use abide_core::lifecycle::{self, Change};
use abide_core::policy::{Action, DenyCode};
use abide_core::{RepoId, RepoName, Timestamp, UserName, failpoint};
use abide_macros::boxed;
use abide_store::repos::redirects;
use abide_store::repos::{self, Page, Repo};
use abide_store::{Tx, nostr};
use std::time::Duration;

/// Until when a deleted repository can be restored; `None` if it is not deleted.
pub fn until(forge: &Forge, repo: &Repo) -> Option<Timestamp> {
    repo.deleted_at.map(|at| at.plus(forge.settings().lifecycle.grace))
}

/// Restores a deleted repository, under another name if one is given.
#[boxed]
pub async fn restore(forge: &Forge, caller: &Caller, id: &str, name: Option<&str>) -> Result<Repo, LifeError> {
    let id: RepoId = id.parse().map_err(|_| Access::NotFound)?;
    let name = name.map(str::trim).filter(|typed| !typed.is_empty());
    let unit = Unit {
        id,
        caller: caller.clone(),
        name: name.map(str::parse).transpose()?,
        grace: forge.settings().lifecycle.grace,
        limit: forge.settings().repos.per_user,
        grasp: forge.settings().grasp.clone(),
    };
    let restored = forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await?;
    failpoint::hit(failpoint::RESTORE_COMMITTED);
    Ok(restored)
}

struct Unit {
    id: RepoId,
    caller: Caller,
    name: Option<RepoName>,
    grace: Duration,
    limit: i64,
    grasp: GraspSettings,
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Repo, LifeError> {
    let mut repo = open_locked(tx, &unit.caller, unit.id, Action::RepoRestore).await?;
    let action = lifecycle::Action::Restore { grace: unit.grace };
    let Change::To(state) = lifecycle::transition(repo.state(), action, tx.now())? else {
        return Err(lifecycle::Refusal::NotDeleted.into());
    };
    if life::is_deleted_by_key(tx, &repo).await? {
        return Err(LifeError::DeletedByKey);
    }
    if throttle::owns_too_many(tx, repo.owner_id, unit.limit).await? {
        return Err(LifeError::TooMany(unit.limit));
    }
    // The repository left its name when it was deleted: a repository that took the name since has precedence.
    let (old, left_at) = (repo.name.clone(), repo.deleted_at);
    if let Some(name) = &unit.name {
        // Rename before the restore, so that only the new name has to be free.
        repos::rename(tx, repo.id, name).await?;
        repo.name = name.clone();
    } else if let Some(name) = life::other_name(tx, &repo).await? {
        repos::rename(tx, repo.id, &name).await?;
        repo.name = name;
    }
    repos::set_marks(tx, repo.id, &state).await?;
    repo.deleted_at = None;
    life::show(tx, &unit.grasp, &repo).await?;
    redirects::take(tx, repo.owner_id, &repo.name, repo.id, viewer(&unit.caller)).await?;
    if let Some(left_at) = left_at.filter(|_| repo.name != old) {
        redirects::leave(tx, repo.owner_id, &old, repo.id, left_at).await?;
    }
    let who = Who::from(&unit.caller);
    let payload = Payload::RepoRestored(NameChange { old_name: old.to_string(), new_name: repo.name.to_string() });
    audit_repo(tx, &who, AuditAction::RepoRestored, &repo, payload.details()).await?;
    emit(tx, &who, Subject::Repo(&repo), repo.visibility.into(), payload).await?;
    failpoint::hit(failpoint::RESTORE_BEFORE_COMMIT);
    Ok(repo)
}

/// A page of the caller's deleted repositories, latest first, and their total number.
#[boxed]
pub async fn list(forge: &Forge, caller: &Caller, page: Page) -> Result<(Vec<Repo>, i64), Access> {
    let user = caller.user_id().ok_or(Access::Denied(DenyCode::LoginRequired))?;
    Ok(repos::deleted_of_owner(&mut *forge.store().read().await?, user, page).await?)
}

/// The deleted repository of a locator that finds no other, for callers who may still know about it.
#[boxed]
pub async fn tombstone(forge: &Forge, caller: &Caller, locator: &RepoLocator) -> Result<Option<Repo>, Fault> {
    if caller.user_id().is_none() {
        return Ok(None);
    }
    let mut conn = forge.store().read().await?;
    let found = match locator {
        RepoLocator::Slug { owner, name } => match (owner.parse::<UserName>(), name.parse::<RepoName>()) {
            (Ok(owner), Ok(name)) => repos::deleted_by_slug(&mut conn, &owner, &name, 1).await?.pop(),
            _ => None,
        },
        RepoLocator::Id(id) => match id.parse() {
            Ok(id) => repos::by_id(&mut conn, id, caller.user_id()).await?.filter(|repo| !repo.is_live()),
            Err(_) => None,
        },
        RepoLocator::Nostr { owner, identifier } => {
            let found = nostr::repos::by_coordinate(&mut conn, owner.as_bytes(), identifier, caller.user_id()).await?;
            found.filter(|repo| !repo.is_live())
        }
    };
    Ok(judge(caller, found, Action::TombstoneRead).ok())
}
