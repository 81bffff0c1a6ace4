//! Changing what a repository says about itself: description, default branch, visibility. One transaction for all.

use super::create::{MAX_DESCRIPTION, check_description};
use super::open::open_locked;
use crate::git::snapshots;
use crate::tell::{Who, audit_repo, event_repo};
use crate::{Access, Caller, Fault, Forge};
use abide_core::lifecycle::{self, Change, Refusal};
use abide_core::policy::Action;
use abide_core::refs::InvalidRefName;
use abide_core::repo::Visibility;
use abide_core::{RefName, RepoId};
use abide_git::bare;
use abide_store::repos::{self, Repo};
use abide_store::{StoreError, Tx};
use serde_json::json;

/// What to change; `None` leaves it as it is.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// As typed.
    pub description: Option<String>,
    /// A branch, without `refs/heads/`.
    pub default_branch: Option<String>,
    /// Who may read it.
    pub visibility: Option<Visibility>,
}

/// Why nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The caller may not, or there is no such repository.
    #[error(transparent)]
    Access(#[from] Access),
    /// The description is too long.
    #[error("description: it has at most {MAX_DESCRIPTION} characters and no control characters")]
    Description,
    /// The branch name breaks a rule.
    #[error("default_branch: {0}")]
    BranchName(#[from] InvalidRefName),
    /// There is no such branch.
    #[error("default_branch: the repository has no branch {0}; push it first")]
    NoSuchBranch(String),
    /// The lifecycle forbids it.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl From<StoreError> for EditError {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

impl From<Fault> for EditError {
    fn from(fault: Fault) -> Self {
        Self::Access(fault.into())
    }
}

/// Changes a repository. Asking for what holds already changes and tells nothing.
pub async fn edit(forge: &Forge, caller: &Caller, repo: &Repo, request: Request) -> Result<Repo, EditError> {
    let description = match &request.description {
        Some(typed) => Some(check_description(typed).ok_or(EditError::Description)?),
        None => None,
    };
    let default_branch = match &request.default_branch {
        Some(short) => Some(existing_branch(forge, repo, short).await?),
        None => None,
    };
    let unit =
        Unit { id: repo.id, caller: caller.clone(), description, default_branch, visibility: request.visibility };
    let edited = forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await?;
    if edited.default_branch != repo.default_branch {
        // HEAD follows the database: should we die here, the next reader of the refs sets it.
        bare::set_head(&forge.layout().repo(repo.id), &edited.default_branch).await.map_err(Fault::from)?;
    }
    Ok(edited)
}

/// The branch, if it exists; in an empty repository any name will do.
async fn existing_branch(forge: &Forge, repo: &Repo, short: &str) -> Result<RefName, EditError> {
    let branch = RefName::branch(short)?;
    let refs = snapshots::read(forge, repo).await?;
    let empty = refs.prefixed(b"refs/heads/").next().is_none();
    if empty || refs.get(branch.as_str().as_bytes()).is_some() {
        Ok(branch)
    } else {
        Err(EditError::NoSuchBranch(short.to_owned()))
    }
}

struct Unit {
    id: RepoId,
    caller: Caller,
    description: Option<String>,
    default_branch: Option<RefName>,
    visibility: Option<Visibility>,
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Repo, EditError> {
    let who = Who::from(&unit.caller);
    let mut repo = open_locked(tx, &unit.caller, unit.id, Action::RepoRead).await?;
    let before = repo.clone();

    if let Some(description) = unit.description.as_ref().filter(|text| **text != repo.description) {
        open_locked(tx, &unit.caller, unit.id, Action::RepoEdit).await?;
        repo.description.clone_from(description);
    }
    if let Some(branch) = unit.default_branch.as_ref().filter(|branch| **branch != repo.default_branch) {
        open_locked(tx, &unit.caller, unit.id, Action::DefaultBranchSet).await?;
        repo.default_branch = branch.clone();
    }
    if repo.description != before.description || repo.default_branch != before.default_branch {
        repos::set_about(tx, repo.id, &repo.description, &repo.default_branch).await?;
        let meta = json!({
            "before": { "description": before.description, "default_branch": before.default_branch.as_str() },
            "after": { "description": repo.description, "default_branch": repo.default_branch.as_str() },
        });
        audit_repo(tx, &who, "repo_edited", &repo, meta).await?;
        event_repo(tx, &who, "repo_edited", &repo, json!({})).await?;
    }

    if let Some(visibility) = unit.visibility {
        let change = lifecycle::transition(repo.state(), lifecycle::Action::SetVisibility(visibility), tx.now())?;
        if let Change::To(state) = change {
            open_locked(tx, &unit.caller, unit.id, Action::RepoVisibility).await?;
            repos::set_marks(tx, repo.id, &state).await?;
            repo.visibility = visibility;
            let meta = json!({ "before": before.visibility.as_str(), "after": visibility.as_str() });
            audit_repo(tx, &who, "repo_visibility_changed", &repo, meta.clone()).await?;
            // What was private when it happened stays so, whatever comes later: the stricter of the two counts.
            let told_as = if before.visibility == Visibility::Private { &before } else { &repo };
            event_repo(tx, &who, "repo_visibility_changed", told_as, meta).await?;
        }
    }
    Ok(repo)
}
