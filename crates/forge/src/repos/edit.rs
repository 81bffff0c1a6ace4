//! Changes several properties of a repository at once: description, default branch, name, marks. All changes happen in
//! one transaction. A value that is set already changes nothing and emits nothing.

use super::create::{MAX_DESCRIPTION, check_description};
use super::marks::{self, Mark};
use super::refusal::LifeError;
use super::rename::{self, RenameLimit};
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::git::snapshots;
use crate::open::{judge, open_locked};
use crate::{Access, Caller, Fault, Forge};
use abide_core::event::{NoDetails, Payload};
use abide_core::lifecycle::Refusal;
use abide_core::policy::Action;
use abide_core::refs::InvalidRefName;
use abide_core::repo::{Governance, Visibility};
use abide_core::{InputError, RefName, RepoId, RepoName, failpoint};
use abide_macros::boxed;
use abide_store::repos::{self, Repo};
use abide_store::{StoreError, Tx};
use serde_json::json;

/// Properties to change; `None` leaves a property as it is.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub description: Option<String>,
    /// A branch, without `refs/heads/`.
    pub default_branch: Option<String>,
    /// New name, as typed.
    pub name: Option<String>,
    pub archived: Option<bool>,
    pub visibility: Option<Visibility>,
}

/// Why nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The caller lacks permission, or the repository does not exist.
    #[error(transparent)]
    Access(#[from] Access),
    /// The description is too long or has control characters.
    #[error("must have at most {MAX_DESCRIPTION} characters and no control characters")]
    Description,
    /// The branch name breaks a rule.
    #[error(transparent)]
    BranchName(#[from] InvalidRefName),
    /// The branch does not exist.
    #[error("branch {0} does not exist; push it first")]
    NoSuchBranch(String),
    /// The lifecycle state forbids the change.
    #[error(transparent)]
    Life(LifeError),
}

impl InputError for EditError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Description => Some("description"),
            Self::BranchName(_) | Self::NoSuchBranch(_) => Some("default_branch"),
            Self::Life(life) => life.field(),
            Self::Access(_) => None,
        }
    }
}

impl From<LifeError> for EditError {
    fn from(error: LifeError) -> Self {
        match error {
            LifeError::Access(access) => Self::Access(access),
            other => Self::Life(other),
        }
    }
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

/// A changed repository.
#[derive(Debug, Clone)]
pub struct Edited {
    pub repo: Repo,
    /// The new name redirected to another repository before; the redirect is inactive now.
    pub replaced: bool,
}

/// Changes a repository. A value that is set already changes nothing and emits nothing.
#[boxed]
pub async fn edit(forge: &Forge, caller: &Caller, repo: &Repo, request: Request) -> Result<Edited, EditError> {
    let description = match &request.description {
        Some(typed) => Some(check_description(typed).ok_or(EditError::Description)?),
        None => None,
    };
    let default_branch = match &request.default_branch {
        Some(short) => Some(existing_branch(forge, repo, short).await?),
        None => None,
    };
    let name = request.name.as_deref().map(|typed| typed.trim().parse()).transpose().map_err(LifeError::from)?;
    let mut marks = Vec::new();
    marks.extend(request.visibility.map(Mark::Visibility));
    marks.extend(request.archived.map(Mark::Archived));
    let unit = Unit {
        id: repo.id,
        caller: caller.clone(),
        description,
        default_branch,
        name,
        marks: marks.clone(),
        limits: RenameLimit::of(forge),
    };
    let edited = forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await?;
    if edited.repo.name != repo.name {
        failpoint::hit(failpoint::RENAME_COMMITTED);
    }
    marks.into_iter().for_each(Mark::committed);
    if edited.repo.default_branch != repo.default_branch {
        crate::git::follow_head(forge, repo.id, &edited.repo.default_branch).await;
    }
    Ok(edited)
}

/// The branch, if it exists; an empty repository accepts any name.
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
    name: Option<RepoName>,
    marks: Vec<Mark>,
    limits: RenameLimit,
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Edited, EditError> {
    let caller = &unit.caller;
    let mut replaced = false;
    let mut repo = open_locked(tx, caller, unit.id, Action::RepoRead).await?;
    // Unarchive first, because the other changes need a writable repository; archive last.
    for mark in unit.marks.iter().filter(|mark| matches!(mark, Mark::Archived(false))) {
        set(tx, caller, &mut repo, *mark).await?;
    }
    about(tx, unit, &mut repo).await?;
    if let Some(name) = unit.name.as_ref().filter(|name| **name != repo.name) {
        judge(caller, Some(repo.clone()), Action::RepoAdmin)?;
        replaced = rename::step(tx, caller, &mut repo, name, unit.limits).await?;
    }
    for mark in unit.marks.iter().filter(|mark| !matches!(mark, Mark::Archived(false))) {
        set(tx, caller, &mut repo, *mark).await?;
    }
    Ok(Edited { repo, replaced })
}

async fn set(tx: &mut Tx, caller: &Caller, repo: &mut Repo, mark: Mark) -> Result<(), EditError> {
    if mark.holds(repo) {
        return Ok(());
    }
    judge(caller, Some(repo.clone()), mark.policy())?;
    Ok(marks::step(tx, caller, repo, mark).await?)
}

/// Changes description and default branch.
async fn about(tx: &mut Tx, unit: &Unit, repo: &mut Repo) -> Result<(), EditError> {
    let before = repo.clone();
    if let Some(description) = unit.description.as_ref().filter(|text| **text != repo.description) {
        judge(&unit.caller, Some(before.clone()), Action::RepoEdit)?;
        repo.description.clone_from(description);
    }
    if let Some(branch) = unit.default_branch.as_ref().filter(|branch| **branch != repo.default_branch) {
        judge(&unit.caller, Some(before.clone()), Action::DefaultBranchSet)?;
        if repo.governance == Governance::Nostr {
            return Err(LifeError::Refused(Refusal::NostrGoverned).into());
        }
        repo.default_branch = branch.clone();
    }
    if repo.description == before.description && repo.default_branch == before.default_branch {
        return Ok(());
    }
    repos::set_about(tx, repo.id, &repo.description, &repo.default_branch).await?;
    let who = Who::from(&unit.caller);
    // The audit log is immutable, so it must not keep a text that someone may want to remove.
    let meta = json!({
        "description_changed": repo.description != before.description,
        "before": { "default_branch": before.default_branch.as_str() },
        "after": { "default_branch": repo.default_branch.as_str() },
    });
    audit_repo(tx, &who, AuditAction::RepoEdited, repo, meta).await?;
    Ok(emit(tx, &who, Subject::Repo(repo), repo.visibility.into(), Payload::RepoEdited(NoDetails {})).await?)
}
