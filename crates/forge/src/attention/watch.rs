//! Watches: a user's notification level for a repository.

use super::{AttentionError, Kept, Part, Person, account, audit_own, count};
use crate::emit::{AuditAction, Who};
use crate::open::{judge, open_locked, viewer};
use crate::{Access, Caller, Fault, Forge, Rate};
use abide_core::policy::Action;
use abide_core::{RepoId, UserId, WatchLevel};
use abide_macros::boxed;
use abide_store::attention::watches;
use abide_store::repos::Repo;
use abide_store::{StoreError, Tx};
use serde_json::json;
use std::collections::HashMap;

pub use abide_store::attention::watches::Choice;

/// Sets the watch level. `true` if it changed.
#[boxed]
pub async fn set(forge: &Forge, caller: &Caller, repo: &Repo, level: WatchLevel) -> Result<bool, AttentionError> {
    change(forge, caller, repo, Some(level)).await
}

/// Removes the chosen level. `true` if there was one.
#[boxed]
pub async fn clear(forge: &Forge, caller: &Caller, repo: &Repo) -> Result<bool, AttentionError> {
    change(forge, caller, repo, None).await
}

struct Unit {
    repo: RepoId,
    caller: Caller,
    level: Option<WatchLevel>,
    limit: Rate,
}

async fn change(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    level: Option<WatchLevel>,
) -> Result<bool, AttentionError> {
    let limit = forge.settings().attention.watches;
    let unit = Unit { repo: repo.id, caller: caller.clone(), level, limit };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

/// The level is private, so no event is emitted.
async fn write(tx: &mut Tx, unit: &Unit) -> Result<bool, AttentionError> {
    let repo = open_locked(tx, &unit.caller, unit.repo, Action::WatchSet).await?;
    let user = account(unit.caller.user_id())?;
    count(tx, "watch", unit.limit, user).await?;
    let before = watches::choice(tx, user, repo.id).await?.map(|choice| choice.level);
    if before == unit.level {
        return Ok(false);
    }
    match unit.level {
        Some(level) => watches::set(tx, user, repo.id, level).await?,
        None => watches::remove(tx, user, repo.id).await?,
    };
    let meta = json!({ "before": before.map(WatchLevel::as_str), "after": unit.level.map(WatchLevel::as_str) });
    audit_own(tx, &Who::from(&unit.caller), AuditAction::WatchSet, &repo, meta).await?;
    Ok(true)
}

/// Watch levels of the caller for several repositories, in one query.
#[boxed]
pub async fn choices_among(
    forge: &Forge,
    caller: &Caller,
    repos: &[RepoId],
) -> Result<HashMap<RepoId, WatchLevel>, Fault> {
    match caller.user_id() {
        Some(user) if !repos.is_empty() => Ok(watches::among(&mut *forge.store().read().await?, user, repos).await?),
        _ => Ok(HashMap::new()),
    }
}

/// Watch level that the caller chose for a repository, if any.
#[boxed]
pub async fn choice(forge: &Forge, caller: &Caller, repo: &Repo) -> Result<Option<Choice>, Fault> {
    match caller.user_id() {
        Some(user) => Ok(watches::choice(&mut *forge.store().read().await?, user, repo.id).await?),
        None => Ok(None),
    }
}

/// Effective watch level of an account: chosen or default.
#[boxed]
pub async fn current_level(forge: &Forge, user: UserId, repo: RepoId) -> Result<WatchLevel, Fault> {
    Ok(watches::current_level(&mut *forge.store().read().await?, user, repo).await?)
}

/// Watchers of a repository, latest first, for its admins. Its row has their number.
pub async fn watchers(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    part: impl Into<Part>,
) -> Result<Vec<Person>, Access> {
    judge(caller, Some(repo.clone()), Action::WatcherList)?;
    Ok(watches::of_repo(&mut *forge.store().read().await?, repo.id, part.into()).await?)
}

/// Watched repositories of a user that the caller may read, the latest first, and their total.
pub async fn of_user(
    forge: &Forge,
    caller: &Caller,
    user: UserId,
    part: impl Into<Part>,
) -> Result<(Vec<Kept>, i64), Fault> {
    Ok(watches::of_user(&mut *forge.store().read().await?, user, viewer(caller), part.into()).await?)
}

/// A new owner watches all activity of their repository, unless they have chosen a level.
pub(crate) async fn on_ownership(tx: &mut Tx, user: UserId, repo: RepoId) -> Result<(), StoreError> {
    watches::suggest(tx, user, repo, WatchLevel::All).await.map(drop)
}

/// As [`on_ownership`], for the repositories of a key that gets a username or is linked to an account: until then, nobody
/// read its notifications.
pub(crate) async fn on_ownership_of(tx: &mut Tx, user: UserId, repos: &[RepoId]) -> Result<(), StoreError> {
    for &repo in repos {
        on_ownership(tx, user, repo).await?;
    }
    Ok(())
}

/// A new collaborator watches all activity of the repository, unless they have chosen a level.
pub async fn on_collaborator(tx: &mut Tx, user: UserId, repo: RepoId) -> Result<(), StoreError> {
    watches::suggest(tx, user, repo, WatchLevel::All).await.map(drop)
}

/// Sets the level participating for an account that takes part in a thread, is mentioned or is asked for a review, unless
/// it chose a level. Call it in the transaction of the involvement.
pub async fn on_involvement(tx: &mut Tx, user: UserId, repo: RepoId) -> Result<(), StoreError> {
    watches::suggest(tx, user, repo, WatchLevel::Participating).await.map(drop)
}
