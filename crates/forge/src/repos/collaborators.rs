//! Collaborators of a repository.

use crate::attention::watch;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::open::open_locked;
use crate::{Access, Caller, Fault, Forge};
use abide_core::event::{Payload, RoleChange};
use abide_core::policy::Action;
use abide_core::repo::Role;
use abide_core::{RepoId, UserId};
use abide_macros::boxed;
use abide_store::accounts::users::User;
use abide_store::repos::collaborators;
use abide_store::repos::{Page, Repo};
use abide_store::{StoreError, Tx};

pub use abide_store::repos::collaborators::Collaborator;

/// Why nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum CollaboratorError {
    /// The caller lacks permission, or the repository does not exist.
    #[error(transparent)]
    Access(#[from] Access),
    /// The owner has every right already.
    #[error("the owner of a repository cannot be a collaborator")]
    IsOwner,
}

impl From<StoreError> for CollaboratorError {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

/// A page of collaborators, and their total number.
#[boxed]
pub async fn list(forge: &Forge, repo: &Repo, page: Page) -> Result<(Vec<Collaborator>, i64), Fault> {
    Ok(collaborators::list(&mut *forge.store().read().await?, repo.id, page).await?)
}

/// A user's role; the owner's role is admin.
#[boxed]
pub async fn role(forge: &Forge, repo: &Repo, user: UserId) -> Result<Option<Role>, Fault> {
    if user == repo.owner_id {
        return Ok(Some(Role::Admin));
    }
    Ok(collaborators::role(&mut *forge.store().read().await?, repo.id, user).await?)
}

struct Unit {
    repo: RepoId,
    caller: Caller,
    user: UserId,
    name: String,
    role: Option<Role>,
}

/// Gives a user a role. `true` if the user had none before.
#[boxed]
pub async fn set(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    user: &User,
    role: Role,
) -> Result<bool, CollaboratorError> {
    change(forge, caller, repo, user, Some(role)).await
}

/// Removes a user's role. `true` if the user had one. Every collaborator may remove themselves.
#[boxed]
pub async fn remove(forge: &Forge, caller: &Caller, repo: &Repo, user: &User) -> Result<bool, CollaboratorError> {
    change(forge, caller, repo, user, None).await
}

async fn change(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    user: &User,
    role: Option<Role>,
) -> Result<bool, CollaboratorError> {
    let name = user.handle().map(|handle| handle.to_string()).unwrap_or_default();
    let unit = Unit { repo: repo.id, caller: caller.clone(), user: user.id, name, role };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<bool, CollaboratorError> {
    let who = Who::from(&unit.caller);
    let leaves = unit.role.is_none() && unit.caller.user_id() == Some(unit.user);
    let action = if leaves { Action::RepoRead } else { Action::CollaboratorManage };
    let repo = open_locked(tx, &unit.caller, unit.repo, action).await?;
    if unit.user == repo.owner_id {
        return Err(CollaboratorError::IsOwner);
    }
    let before = collaborators::role(tx, repo.id, unit.user).await?;
    if before == unit.role {
        return Ok(false);
    }
    let change = RoleChange { user_id: unit.user, user: unit.name.clone(), before, after: unit.role };
    let (action, payload) = match (before, unit.role) {
        (_, None) => (AuditAction::CollaboratorRemoved, Payload::CollaboratorRemoved(change)),
        (None, Some(_)) => (AuditAction::CollaboratorAdded, Payload::CollaboratorAdded(change)),
        (Some(_), Some(_)) => (AuditAction::CollaboratorChanged, Payload::CollaboratorChanged(change)),
    };
    if before.is_none() {
        watch::on_collaborator(tx, unit.user, repo.id).await?;
    }
    match unit.role {
        Some(role) => collaborators::set(tx, repo.id, unit.user, role).await?,
        None => collaborators::remove(tx, repo.id, unit.user).await.map(drop)?,
    }
    audit_repo(tx, &who, action, &repo, payload.details()).await?;
    emit(tx, &who, Subject::Repo(&repo), repo.visibility.into(), payload).await?;
    Ok(before.is_none() || unit.role.is_none())
}
