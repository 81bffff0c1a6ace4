//! Deletes an account: logins and credentials at once, repositories with the usual grace period.
//!
//! The row stays without a name. Texts elsewhere are shown as a ghost's, and redirects of repositories that the account
//! transferred still work. If the texts are to be removed too, a job removes them in batches.

use super::confirm::{self, ConfirmError};
use super::sessions::Viewer;
use crate::emit::{AuditAction, Subject, Who, audit_account, emit};
use crate::grasp::erase;
use crate::jobs::{self, Job, JobError, Kind};
use crate::repos::{LifeError, delete, transfer};
use crate::{Access, Caller, Fault, Forge, GraspSettings};
use abide_core::account::{self, DeleteRefusal, Deleter};
use abide_core::event::{Payload, Publicity, UserDeleted};
use abide_core::{InputError, UserId, UserName};
use abide_macros::boxed;
use abide_nostr::nip19;
use abide_store::accounts::{retire, user_keys, users};
use abide_store::repos::{self, Page, Viewer as Reader};
use abide_store::{StoreError, Tx};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

pub use abide_core::account::Remains;

/// Texts that one transaction removes.
const BATCH: i64 = 200;

/// Why the account was not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// The account does not exist, or the caller may not know.
    #[error(transparent)]
    Access(#[from] Access),
    /// A rule forbids it.
    #[error(transparent)]
    Refused(#[from] DeleteRefusal),
    /// The typed name does not match.
    #[error("type the account name to confirm")]
    Unconfirmed,
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
}

impl InputError for DeleteError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Unconfirmed => Some("name"),
            Self::Confirm(error) => error.field(),
            Self::Access(_) | Self::Refused(_) => None,
        }
    }
}

impl From<StoreError> for DeleteError {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

impl From<Fault> for DeleteError {
    fn from(fault: Fault) -> Self {
        Self::Access(fault.into())
    }
}

/// Deletes the viewer's own account, after they typed its name and password.
#[boxed]
pub async fn delete_own(
    forge: &Forge,
    viewer: &Viewer,
    typed: &str,
    password: String,
    remains: Remains,
) -> Result<(), DeleteError> {
    let name = viewer.user.handle();
    if name.is_none_or(|name| name.as_str() != typed.trim().to_lowercase()) {
        return Err(DeleteError::Unconfirmed);
    }
    confirm::password(forge, viewer, password).await?;
    run(forge, Deleter::Owner, Who::from(&viewer.caller), viewer.user.id, remains).await
}

/// Deletes an account, by a site admin.
#[boxed]
pub async fn delete_by_admin(
    forge: &Forge,
    caller: &Caller,
    user: UserId,
    remains: Remains,
) -> Result<(), DeleteError> {
    let admin = caller.ensure_admin()?;
    run(forge, Deleter::Admin(admin), Who::from(caller), user, remains).await
}

/// Deletes an account, by the operator at the command line.
#[boxed]
pub async fn delete_by_operator(forge: &Forge, user: UserId, remains: Remains) -> Result<(), DeleteError> {
    run(forge, Deleter::Operator, Who::default(), user, remains).await
}

struct Unit {
    by: Deleter,
    who: Who,
    user: UserId,
    remains: Remains,
    grace: Duration,
    grasp: GraspSettings,
}

async fn run(forge: &Forge, by: Deleter, who: Who, user: UserId, remains: Remains) -> Result<(), DeleteError> {
    let (grace, grasp) = (forge.settings().lifecycle.grace, forge.settings().grasp.clone());
    let unit = Unit { by, who, user, remains, grace, grasp };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<(), DeleteError> {
    let admins = users::lock_admins(tx).await?;
    if matches!(unit.by, Deleter::Admin(admin) if !admins.contains(&admin.id())) {
        return Err(Access::NotFound.into());
    }
    let user = users::lock(tx, unit.user).await?.filter(|user| !user.is_deleted()).ok_or(Access::NotFound)?;
    account::may_delete(unit.by, user.id, user.suspended_at.is_some(), &admins)?;
    let deleted = delete_repos(tx, unit).await?;
    transfer::decline_all(tx, &unit.who, user.id).await?;
    retire::clear(tx, user.id).await?;
    users::retire(tx, &user).await?;
    let meta = json!({
        "user_id": user.id.get(), "name": user.name.as_ref().map(UserName::as_str), "npub": user.npub,
        "content": unit.remains.as_str(), "repositories": deleted,
    });
    audit_account(tx, &unit.who, AuditAction::UserDeleted, meta).await?;
    let deleted = Payload::UserDeleted(UserDeleted { user_id: user.id });
    emit(tx, &unit.who, Subject::User(user.id), Publicity::Public, deleted).await?;
    if unit.remains == Remains::Removed {
        let key = Some(user.id.to_string());
        let payload = Erasure { user_id: user.id, npub: user.npub.clone() };
        jobs::enqueue(tx, Kind::AccountErase, &payload, key).await?;
    }
    Ok(())
}

/// Soft-deletes the account's repositories; returns their number.
async fn delete_repos(tx: &mut Tx, unit: &Unit) -> Result<u64, DeleteError> {
    const PAGE: Page = Page { limit: 100, offset: 0 };
    let everything = Reader { user: None, reads_everything: true };
    let mut deleted = 0;
    loop {
        let (owned, _) = repos::of_owner(tx, unit.user, everything, PAGE).await?;
        if owned.is_empty() {
            return Ok(deleted);
        }
        for repo in owned {
            let Some(repo) = repos::lock(tx, repo.id, None).await? else { continue };
            let ended = delete::step(tx, &unit.who, &repo, unit.grace, &unit.grasp).await;
            ended.map_err(|error| match error {
                LifeError::Access(access) => access,
                other => Fault::Internal(other.to_string()).into(),
            })?;
            deleted += 1;
        }
    }
}

/// Payload of the job.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Erasure {
    user_id: UserId,
    npub: Option<String>,
}

/// Runs the job: removes the account's texts in other people's repositories, and the events that its nostr key signed.
/// `false`: the account is not deleted.
async fn erase(forge: &Forge, Erasure { user_id: user, npub }: Erasure) -> Result<bool, Fault> {
    // A job that is run by hand must not erase a live account.
    let account = users::by_id(&mut *forge.store().read().await?, user).await?;
    if account.is_none_or(|account| !account.is_deleted()) {
        return Ok(false);
    }
    loop {
        let more: Result<bool, StoreError> =
            forge.store().write(user, |tx, user| Box::pin(retire::erase_some(tx, *user, BATCH))).await;
        if !more? {
            break;
        }
    }
    // The row has lost its key, and another account may have linked the key since.
    let key = npub.and_then(|npub| nip19::parse_npub(&npub).ok());
    if let Some(key) = key {
        let taken = user_keys::by_npub(&mut *forge.store().read().await?, &nip19::npub(&key)).await?;
        if taken.is_none() {
            erase::erase(forge, key).await?;
        }
    }
    Ok(true)
}

/// The job.
pub(crate) async fn work(forge: &Forge, job: &Job) -> Result<(), JobError> {
    let lacking = || JobError::Final("the payload names no deleted account; this job is queued with a deletion".into());
    match erase(forge, jobs::payload(job).ok_or_else(lacking)?).await? {
        true => Ok(()),
        false => Err(lacking()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_stored_as_ever() {
        let user_id = UserId::new(3);
        jobs::assert_stored(&Erasure { user_id, npub: None }, r#"{"npub":null,"user_id":3}"#);
        let npub = Some("npub1x".to_owned());
        jobs::assert_stored(&Erasure { user_id, npub }, r#"{"npub":"npub1x","user_id":3}"#);
    }
}
