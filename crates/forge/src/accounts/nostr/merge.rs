//! Merges the account of a key without a username into another account that links the key.

use super::NostrError;
use crate::attention::watch;
use crate::emit::{AuditAction, Who, audit_repo};
use abide_core::{RepoName, UserId};
use abide_store::accounts::users::User;
use abide_store::accounts::{totp, user_keys, user_merge};
use abide_store::repos::{self, redirects};
use abide_store::{StoreError, Tx};
use serde_json::json;

/// Maximum length of a name, so that a number fits behind it.
const LONGEST: usize = 90;

/// Moves repositories, stars and threads, and removes the merged account. Its sessions and tokens end with it.
///
/// A repository that gets another name leaves no redirect at the account, where it never bore the old one: other
/// repositories did, and theirs stay in force. The address by the key leads to it as before.
pub(super) async fn merge(tx: &mut Tx, who: &Who, from: &User, to: UserId) -> Result<(), NostrError> {
    if from.suspended_at.is_some() {
        return Err(NostrError::Suspended);
    }
    let secured = totp::get(tx, from.id).await?.is_some_and(|totp| totp.confirmed_at.is_some());
    if from.name.is_some() || from.password_hash.is_some() || secured {
        return Err(NostrError::KeyTaken);
    }
    user_keys::set(tx, from.id, None).await?;
    let moving = user_merge::repos(tx, from.id).await?;
    for &id in &moving {
        let Some(repo) = repos::lock(tx, id, None).await? else { continue };
        let live = repo.is_live();
        if live && let Some(name) = other_name(tx, from.id, to, &repo.name).await? {
            repos::rename(tx, id, &name).await?;
        }
        repos::hand_over(tx, id, to).await?;
        let Some(moved) = repos::by_id(tx, id, None).await? else { continue };
        if live {
            redirects::take(tx, to, &moved.name, id, Some(to).into()).await?;
        }
        let meta = json!({ "from_user_id": from.id.get(), "to_user_id": to.get(), "old_name": repo.name.as_str(),
            "new_name": moved.name.as_str() });
        audit_repo(tx, who, AuditAction::RepoMovedWithKey, &moved, meta).await?;
    }
    user_merge::attention(tx, from.id, to).await?;
    // After the choices of both accounts, which hold.
    watch::on_ownership_of(tx, to, &moving).await?;
    user_merge::remove(tx, from.id).await?;
    Ok(())
}

/// The first name with a number that is free in both accounts; `None` if the name itself is free.
async fn other_name(tx: &mut Tx, from: UserId, to: UserId, name: &RepoName) -> Result<Option<RepoName>, StoreError> {
    if !repos::name_taken(tx, to, name).await? {
        return Ok(None);
    }
    for number in 2..10_000 {
        let tail = format!("-{number}");
        let head: String = name.as_str().chars().take(LONGEST).collect();
        let Ok(other) = format!("{head}{tail}").parse::<RepoName>() else { continue };
        if !repos::name_taken(tx, to, &other).await? && !repos::name_taken(tx, from, &other).await? {
            return Ok(Some(other));
        }
    }
    Err(StoreError::Missing)
}
