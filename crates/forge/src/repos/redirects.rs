//! Old names of a repository.

use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::open::open_locked;
use crate::{Access, Caller, Forge};
use abide_core::event::{Payload, RedirectReleased};
use abide_core::policy::Action;
use abide_core::{RedirectId, RepoId, failpoint};
use abide_macros::boxed;
use abide_store::Tx;
use abide_store::repos::Repo;
use abide_store::repos::redirects;

pub use abide_store::repos::redirects::Redirect;

/// The old names of a repository that the caller administers, latest first.
#[boxed]
pub async fn list(forge: &Forge, caller: &Caller, repo: &Repo) -> Result<Vec<Redirect>, Access> {
    crate::open::judge(caller, Some(repo.clone()), Action::AuditRead)?;
    Ok(redirects::list(&mut *forge.store().read().await?, repo.id).await?)
}

/// Releases an old name, so that it redirects nowhere.
#[boxed]
pub async fn release(forge: &Forge, caller: &Caller, repo: &Repo, id: &str) -> Result<(), Access> {
    let id: RedirectId = id.parse().map_err(|_| Access::NotFound)?;
    let unit = (repo.id, caller.clone(), id);
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await?;
    failpoint::hit(failpoint::RELEASE_COMMITTED);
    Ok(())
}

async fn write(tx: &mut Tx, (repo, caller, id): &(RepoId, Caller, RedirectId)) -> Result<(), Access> {
    let repo = open_locked(tx, caller, *repo, Action::RedirectRelease).await?;
    let Some((owner, name)) = redirects::remove(tx, repo.id, *id).await? else { return Err(Access::NotFound) };
    let who = Who::from(caller);
    let released = RedirectReleased { old_owner_id: owner, old_name: name.to_string() };
    let payload = Payload::RepoRedirectReleased(released);
    audit_repo(tx, &who, AuditAction::RepoRedirectReleased, &repo, payload.details()).await?;
    emit(tx, &who, Subject::Repo(&repo), repo.visibility.into(), payload).await?;
    failpoint::hit(failpoint::RELEASE_BEFORE_COMMIT);
    Ok(())
}
