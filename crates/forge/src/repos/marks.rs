//! Archiving, unarchiving and changing the visibility: one mark in one transaction, nothing on disk.

use super::refusal::LifeError;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::grasp::spread;
use crate::open::open_locked;
use crate::{Caller, Forge};
use abide_core::event::{Archived, Payload, VisibilityChanged};
use abide_core::lifecycle::{self, Action as Life, Change};
use abide_core::policy::Action;
use abide_core::repo::Visibility;
use abide_core::{RepoId, failpoint};
use abide_macros::boxed;
use abide_store::Tx;
use abide_store::repos::{self, Repo};

/// Makes a repository read-only.
#[boxed]
pub async fn archive(forge: &Forge, caller: &Caller, repo: &Repo) -> Result<Repo, LifeError> {
    set(forge, caller, repo, Mark::Archived(true)).await
}

/// Makes a repository writable again.
#[boxed]
pub async fn unarchive(forge: &Forge, caller: &Caller, repo: &Repo) -> Result<Repo, LifeError> {
    set(forge, caller, repo, Mark::Archived(false)).await
}

/// Changes the visibility of a repository. A value that is set already changes nothing and emits nothing.
#[boxed]
pub async fn set_visibility(forge: &Forge, caller: &Caller, repo: &Repo, to: Visibility) -> Result<Repo, LifeError> {
    set(forge, caller, repo, Mark::Visibility(to)).await
}

/// A mark with its new value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mark {
    Archived(bool),
    Visibility(Visibility),
}

impl Mark {
    /// The policy action that sets it.
    pub(super) fn policy(self) -> Action {
        match self {
            Self::Archived(true) => Action::RepoArchive,
            Self::Archived(false) => Action::RepoUnarchive,
            Self::Visibility(_) => Action::RepoVisibility,
        }
    }

    fn life(self) -> Life {
        match self {
            Self::Archived(true) => Life::Archive,
            Self::Archived(false) => Life::Unarchive,
            Self::Visibility(to) => Life::SetVisibility(to),
        }
    }

    fn logged(self, before: Visibility) -> (AuditAction, Payload) {
        match self {
            Self::Archived(true) => {
                (AuditAction::RepoArchived, Payload::RepoArchived(Archived { before: false, after: true }))
            }
            Self::Archived(false) => {
                (AuditAction::RepoUnarchived, Payload::RepoUnarchived(Archived { before: true, after: false }))
            }
            Self::Visibility(after) => (
                AuditAction::RepoVisibilityChanged,
                Payload::RepoVisibilityChanged(VisibilityChanged { before, after }),
            ),
        }
    }

    /// Failpoint after the commit of the mark.
    pub(super) fn committed(self) {
        failpoint::hit(self.failpoints().1);
    }

    fn failpoints(self) -> (&'static str, &'static str) {
        match self {
            Self::Archived(true) => (failpoint::ARCHIVE_BEFORE_COMMIT, failpoint::ARCHIVE_COMMITTED),
            Self::Archived(false) => (failpoint::UNARCHIVE_BEFORE_COMMIT, failpoint::UNARCHIVE_COMMITTED),
            Self::Visibility(_) => (failpoint::VISIBILITY_BEFORE_COMMIT, failpoint::VISIBILITY_COMMITTED),
        }
    }

    /// Whether a repository has this mark.
    pub(super) fn holds(self, repo: &Repo) -> bool {
        repo.state().holds(self.life())
    }
}

async fn set(forge: &Forge, caller: &Caller, repo: &Repo, mark: Mark) -> Result<Repo, LifeError> {
    let changed = forge.store().write((repo.id, caller.clone(), mark), |tx, unit| Box::pin(write(tx, unit))).await?;
    mark.committed();
    Ok(changed)
}

async fn write(tx: &mut Tx, (id, caller, mark): &(RepoId, Caller, Mark)) -> Result<Repo, LifeError> {
    let mut repo = open_locked(tx, caller, *id, mark.policy()).await?;
    step(tx, caller, &mut repo, *mark).await?;
    Ok(repo)
}

/// Sets a mark of a locked repository. The caller has checked the policy.
pub(super) async fn step(tx: &mut Tx, caller: &Caller, repo: &mut Repo, mark: Mark) -> Result<(), LifeError> {
    let Change::To(state) = lifecycle::transition(repo.state(), mark.life(), tx.now())? else { return Ok(()) };
    let before = repo.visibility;
    repos::set_marks(tx, repo.id, &state).await?;
    (repo.visibility, repo.archived_at) = (state.visibility, state.archived_at);

    let who = Who::from(caller);
    let (action, payload) = mark.logged(before);
    audit_repo(tx, &who, action, repo, payload.details()).await?;
    // An event of a private repository stays private, whatever comes later: the stricter visibility of the two counts.
    let publicity = before.stricter(repo.visibility);
    emit(tx, &who, Subject::Repo(repo), publicity.into(), payload).await?;
    if matches!(mark, Mark::Archived(false)) {
        spread::enqueue_for(tx, repo.id).await?;
    }
    failpoint::hit(mark.failpoints().0);
    Ok(())
}
