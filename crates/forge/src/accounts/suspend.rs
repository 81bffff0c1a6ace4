//! Suspends and unsuspends accounts and sets passwords, by the operator.

use super::change_password::{self, Change};
use super::password;
use crate::emit::{AuditAction, Who, audit_account};
use crate::grasp::spread;
use crate::{Fault, Forge};
use abide_core::UserId;
use abide_core::account::password_fits;
use abide_macros::boxed;
use abide_store::accounts::{sessions, user_keys, users};
use abide_store::{StoreError, Tx, nostr};
use serde_json::json;

/// Suspends an account or lifts the suspension. Tokens and keys of a suspended account do not work, and its sessions
/// end.
#[boxed]
pub async fn set_suspended(forge: &Forge, user: UserId, suspended: bool) -> Result<(), Fault> {
    forge
        .store()
        .write((user, suspended), |tx, &(user, suspended)| {
            Box::pin(async move { Ok(write(tx, &Who::default(), user, suspended).await?) })
        })
        .await
}

pub(super) async fn write(tx: &mut Tx, who: &Who, user: UserId, suspended: bool) -> Result<(), StoreError> {
    users::set_suspended(tx, user, suspended).await?;
    let action = if suspended {
        sessions::end_all(tx, user).await?;
        AuditAction::UserSuspended
    } else {
        for repo in nostr::repos::of_owner(tx, user).await? {
            spread::enqueue_for(tx, repo).await?;
        }
        AuditAction::UserUnsuspended
    };
    audit_account(tx, who, action, json!({ "user_id": user.get() })).await
}

/// Readmits a key whose account was deleted while suspended; `false` if no such account had it.
#[boxed]
pub async fn readmit_key(forge: &Forge, npub: &str) -> Result<bool, Fault> {
    forge
        .store()
        .write(npub.to_owned(), |tx, npub| {
            Box::pin(async move {
                let readmitted = user_keys::readmit(tx, npub).await?;
                if readmitted {
                    audit_account(tx, &Who::default(), AuditAction::KeyReadmitted, json!({ "npub": npub })).await?;
                }
                Ok(readmitted)
            })
        })
        .await
}

/// Sets a password and ends every session; `false` if it is too short or too long.
#[boxed]
pub async fn set_password(forge: &Forge, user: UserId, typed: String) -> Result<bool, Fault> {
    if !password_fits(&typed) {
        return Ok(false);
    }
    let hash = password::hash(forge, typed.into()).await?;
    let unit = Change { forge: forge.clone(), user, hash, who: Who::default(), keep: Vec::new() };
    let changed: Result<(), Fault> = forge
        .store()
        .write(unit, |tx, unit| Box::pin(async move { Ok(change_password::write(tx, unit).await?) }))
        .await;
    changed.map(|()| true)
}
