//! Stars: star, unstar, and lists of them.

use super::{AttentionError, Kept, Part, Person, account, audit_own, count};
use crate::emit::{AuditAction, Subject, Who, emit};
use crate::open::{open_locked, viewer};
use crate::{Caller, Fault, Forge, Rate};
use abide_core::event::{NoDetails, Payload};
use abide_core::policy::Action;
use abide_core::search::MAX_TEXT;
use abide_core::{RepoId, UserId};
use abide_macros::boxed;
use abide_store::Tx;
use abide_store::attention::stars::{self, Search};
use abide_store::repos::{Page, Repo};
use serde_json::json;
use std::collections::HashSet;

pub use abide_core::attention::StarOrder;

/// Stars a repository. `true` if it was not starred before.
#[boxed]
pub async fn star(forge: &Forge, caller: &Caller, repo: &Repo) -> Result<bool, AttentionError> {
    change(forge, caller, repo, true).await
}

/// Removes a star. `true` if there was one.
#[boxed]
pub async fn unstar(forge: &Forge, caller: &Caller, repo: &Repo) -> Result<bool, AttentionError> {
    change(forge, caller, repo, false).await
}

struct Unit {
    repo: RepoId,
    caller: Caller,
    starred: bool,
    limit: Rate,
}

async fn change(forge: &Forge, caller: &Caller, repo: &Repo, starred: bool) -> Result<bool, AttentionError> {
    let limit = forge.settings().attention.stars;
    let unit = Unit { repo: repo.id, caller: caller.clone(), starred, limit };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<bool, AttentionError> {
    let repo = open_locked(tx, &unit.caller, unit.repo, Action::StarCreate).await?;
    let user = account(unit.caller.user_id())?;
    count(tx, "star", unit.limit, user).await?;
    let none = NoDetails {};
    let (action, payload, changed) = match unit.starred {
        true => (AuditAction::Star, Payload::Star(none), stars::add(tx, user, repo.id).await?),
        false => (AuditAction::Unstar, Payload::Unstar(none), stars::remove(tx, user, repo.id).await?),
    };
    if changed {
        let who = Who::from(&unit.caller);
        audit_own(tx, &who, action, &repo, json!({})).await?;
        emit(tx, &who, Subject::Repo(&repo), repo.visibility.into(), payload).await?;
    }
    Ok(changed)
}

/// Whether the caller stars a repository.
#[boxed]
pub async fn is_starred(forge: &Forge, caller: &Caller, repo: &Repo) -> Result<bool, Fault> {
    match caller.user_id() {
        Some(user) => Ok(stars::has(&mut *forge.store().read().await?, user, repo.id).await?),
        None => Ok(false),
    }
}

/// The repositories among these that the caller stars, in one query.
#[boxed]
pub async fn starred_among(forge: &Forge, caller: &Caller, repos: &[RepoId]) -> Result<HashSet<RepoId>, Fault> {
    match caller.user_id() {
        Some(user) if !repos.is_empty() => Ok(stars::among(&mut *forge.store().read().await?, user, repos).await?),
        _ => Ok(HashSet::new()),
    }
}

/// Accounts that star an opened repository, latest first. Its row has their number.
pub async fn stargazers(forge: &Forge, repo: &Repo, part: impl Into<Part>) -> Result<Vec<Person>, Fault> {
    Ok(stars::of_repo(&mut *forge.store().read().await?, repo.id, part.into()).await?)
}

/// Starred repositories of a user that the caller may read, the latest star first, and their total.
pub async fn of_user(
    forge: &Forge,
    caller: &Caller,
    user: UserId,
    part: impl Into<Part>,
) -> Result<(Vec<Kept>, i64), Fault> {
    Ok(stars::of_user(&mut *forge.store().read().await?, user, viewer(caller), part.into()).await?)
}

/// Filter of a user's stars.
#[derive(Debug, Clone)]
pub struct Query {
    /// The name, the owner's name or the description contains it; empty: everything.
    pub text: String,
    pub order: StarOrder,
}

/// As [`of_user`], with a search text and a sort order, within the limits of a search.
#[boxed]
pub async fn find_of_user(
    forge: &Forge,
    caller: &Caller,
    user: UserId,
    query: &Query,
    page: Page,
) -> Result<(Vec<Kept>, i64), Fault> {
    let text = query.text.trim().to_lowercase().chars().take(MAX_TEXT).collect();
    let search = Search { text, order: query.order, scan: forge.settings().repos.search_scan };
    Ok(stars::found_of_user(&mut *forge.store().read().await?, user, viewer(caller), &search, page).await?)
}
