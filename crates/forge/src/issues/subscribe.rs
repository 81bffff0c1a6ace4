//! Subscription to an issue.

use super::IssueError;
use super::context::writer;
use crate::open::open_locked;
use crate::{Caller, Fault, Forge};
use abide_core::policy::Action;
use abide_core::{IssueId, RepoId};
use abide_macros::boxed;
use abide_store::Tx;
use abide_store::issues;
use abide_store::issues::Issue;
use abide_store::issues::people::Subscription;
use abide_store::repos::Repo;

/// Subscription of the caller, if there is one.
#[boxed]
pub async fn of(forge: &Forge, caller: &Caller, issue: &Issue) -> Result<Option<Subscription>, Fault> {
    match caller.user_id() {
        Some(user) => Ok(issues::people::subscription(&mut *forge.store().read().await?, issue.id, user).await?),
        None => Ok(None),
    }
}

/// Subscribes the caller to an issue, or unsubscribes them. This is private, so it emits no event, and it works
/// in an archived repository too.
#[boxed]
pub async fn set(forge: &Forge, caller: &Caller, repo: &Repo, issue: &Issue, wanted: bool) -> Result<(), IssueError> {
    let unit = (caller.clone(), repo.id, issue.id, wanted);
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

async fn write(tx: &mut Tx, (caller, repo, issue, wanted): &(Caller, RepoId, IssueId, bool)) -> Result<(), IssueError> {
    open_locked(tx, caller, *repo, Action::WatchSet).await?;
    Ok(issues::people::subscribe(tx, *issue, writer(caller)?, *wanted).await?)
}
