//! Suspending an account, lifting that, and setting a password for someone.

use super::password;
use crate::tell::{Who, audit_account};
use crate::{Fault, Forge};
use abide_core::UserId;
use abide_store::users;
use serde_json::json;

/// Suspends an account or lifts the suspension. Tokens and keys of a suspended account open nothing.
pub async fn set_suspended(forge: &Forge, user: UserId, suspended: bool) -> Result<(), Fault> {
    forge
        .store()
        .write((user, suspended), |tx, &(user, suspended)| {
            Box::pin(async move {
                users::set_suspended(tx, user, suspended).await?;
                let action = if suspended { "user_suspended" } else { "user_unsuspended" };
                audit_account(tx, &Who { user: None, ip: None }, action, json!({ "user_id": user.get() })).await?;
                Ok(())
            })
        })
        .await
}

/// Sets a password; `false` if it is too short or too long.
pub async fn set_password(forge: &Forge, user: UserId, typed: String) -> Result<bool, Fault> {
    if !(password::MIN_LEN..=password::MAX_LEN).contains(&typed.chars().count()) {
        return Ok(false);
    }
    let hash = password::hash(typed).await?;
    forge
        .store()
        .write((user, hash), |tx, (user, hash)| {
            Box::pin(async move {
                users::set_password(tx, *user, hash).await?;
                audit_account(tx, &Who { user: None, ip: None }, "password_changed", json!({ "user_id": user.get() }))
                    .await?;
                Ok(true)
            })
        })
        .await
}
