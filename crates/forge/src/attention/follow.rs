//! Follows: the public events of a followed account appear in the follower's feed.

use super::{AttentionError, Part, Person, count};
use crate::emit::{AuditAction, Subject, Who, audit_account, emit};
use crate::{Access, Caller, Fault, Forge, Rate};
use abide_core::UserId;
use abide_core::attention::may_follow;
use abide_core::event::{Follow, Payload, Publicity};
use abide_macros::boxed;
use abide_store::Tx;
use abide_store::accounts::users::{self, User};
use abide_store::attention::follows;

/// Follows an account. `true` if the caller did not follow it before.
#[boxed]
pub async fn follow(forge: &Forge, caller: &Caller, user: &User) -> Result<bool, AttentionError> {
    change(forge, caller, user, true).await
}

/// Unfollows an account. `true` if the caller followed it.
#[boxed]
pub async fn unfollow(forge: &Forge, caller: &Caller, user: &User) -> Result<bool, AttentionError> {
    change(forge, caller, user, false).await
}

struct Unit {
    caller: Caller,
    followed: UserId,
    follow: bool,
    limit: Rate,
}

async fn change(forge: &Forge, caller: &Caller, user: &User, follow: bool) -> Result<bool, AttentionError> {
    let limit = forge.settings().attention.follows;
    let unit = Unit { caller: caller.clone(), followed: user.id, follow, limit };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<bool, AttentionError> {
    let follower = may_follow(&unit.caller.actor, unit.followed)?;
    let followed = users::by_id(tx, unit.followed).await?.ok_or(Access::NotFound)?;
    // A suspended account cannot be followed, but it can be unfollowed.
    if unit.follow && followed.suspended_at.is_some() {
        return Err(Access::NotFound.into());
    }
    count(tx, "follow", unit.limit, follower).await?;
    let (action, changed) = match unit.follow {
        true => (AuditAction::Follow, follows::add(tx, follower, followed.id).await?),
        false => (AuditAction::Unfollow, follows::remove(tx, follower, followed.id).await?),
    };
    if !changed {
        return Ok(false);
    }
    let who = Who::from(&unit.caller);
    let name = |user: &User| user.handle().map(|handle| handle.to_string());
    let follower = users::by_id(tx, follower).await?.ok_or(Access::NotFound)?;
    let payload = Payload::Follow(Follow {
        user_id: followed.id,
        user: name(&followed),
        follower_id: follower.id,
        follower: name(&follower),
    });
    audit_account(tx, &who, action, payload.details()).await?;
    if unit.follow {
        emit(tx, &who, Subject::User(followed.id), Publicity::Public, payload).await?;
    }
    Ok(true)
}

/// Whether one account follows another.
#[boxed]
pub async fn follows(forge: &Forge, follower: UserId, followed: UserId) -> Result<bool, Fault> {
    Ok(follows::has(&mut *forge.store().read().await?, follower, followed).await?)
}

/// Followers of an account, latest first.
pub async fn followers(forge: &Forge, user: UserId, part: impl Into<Part>) -> Result<Vec<Person>, Fault> {
    Ok(follows::followers(&mut *forge.store().read().await?, user, part.into()).await?)
}

/// Accounts that an account follows, the latest first.
pub async fn following(forge: &Forge, user: UserId, part: impl Into<Part>) -> Result<Vec<Person>, Fault> {
    Ok(follows::following(&mut *forge.store().read().await?, user, part.into()).await?)
}

/// Number of followers of an account, and of accounts that it follows.
#[boxed]
pub async fn counts(forge: &Forge, user: UserId) -> Result<(i64, i64), Fault> {
    Ok(follows::counts(&mut *forge.store().read().await?, user).await?)
}
