//! Soft-deleting: the repository disappears for everyone, its name is free at once, and it can be restored.

use super::open::open_locked;
use crate::tell::{Who, audit_repo, event_repo};
use crate::{Access, Caller, Forge};
use abide_core::RepoId;
use abide_core::lifecycle::{self, Change, Refusal};
use abide_core::policy::Action;
use abide_store::repos::{self, Repo};
use abide_store::{StoreError, Tx};
use serde_json::json;

/// Why it was not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// The caller may not, or there is no such repository.
    #[error(transparent)]
    Access(#[from] Access),
    /// The lifecycle forbids it.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl From<StoreError> for DeleteError {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

/// Soft-deletes a repository.
pub async fn delete(forge: &Forge, caller: &Caller, repo: &Repo) -> Result<(), DeleteError> {
    forge.store().write((repo.id, caller.clone()), |tx, (id, caller)| Box::pin(write(tx, *id, caller))).await
}

async fn write(tx: &mut Tx, id: RepoId, caller: &Caller) -> Result<(), DeleteError> {
    let who = Who::from(caller);
    let repo = open_locked(tx, caller, id, Action::RepoDelete).await?;
    if let Change::To(state) = lifecycle::transition(repo.state(), lifecycle::Action::SoftDelete, tx.now())? {
        repos::set_marks(tx, id, &state).await?;
        audit_repo(tx, &who, "repo_soft_deleted", &repo, json!({ "slug": repo.slug() })).await?;
        event_repo(tx, &who, "repo_soft_deleted", &repo, json!({})).await?;
    }
    Ok(())
}
