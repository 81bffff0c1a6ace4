//! Turns off a lost second factor, by a site admin or by the operator. The password is still needed to log in, every
//! session ends, and a mail notifies the account.

use super::admin::AdminError;
use crate::emit::{AuditAction, Who, audit_account};
use crate::mail::{self, letters};
use crate::{Access, By, Caller, Fault, Forge};
use abide_core::UserId;
use abide_core::account::{AdminRefusal, may_reset_factor};
use abide_core::policy::SiteAdmin;
use abide_macros::boxed;
use abide_store::Tx;
use abide_store::accounts::{sessions, totp, users};
use serde_json::json;

/// Whether an account has a second factor, for site admins.
#[boxed]
pub async fn is_on(forge: &Forge, _: &By, user: UserId) -> Result<bool, Fault> {
    let found = totp::get(&mut *forge.store().read().await?, user).await?;
    Ok(found.is_some_and(|totp| totp.confirmed_at.is_some()))
}

/// Turns off the second factor of another account, for site admins.
#[boxed]
pub async fn by_admin(forge: &Forge, caller: &Caller, user: UserId) -> Result<(), AdminError> {
    let admin = caller.ensure_admin()?;
    may_reset_factor(admin.id(), user)?;
    reset(forge, Some(admin), user, Who::from(caller)).await
}

/// Turns off the second factor of an account, for the operator of the server.
#[boxed]
pub async fn by_operator(forge: &Forge, user: UserId) -> Result<(), AdminError> {
    reset(forge, None, user, Who::default()).await
}

async fn reset(forge: &Forge, admin: Option<SiteAdmin>, user: UserId, who: Who) -> Result<(), AdminError> {
    let unit = (forge.clone(), admin, user, who);
    forge.store().write(unit, |tx, (forge, admin, user, who)| Box::pin(write(tx, forge, *admin, *user, who))).await
}

async fn write(
    tx: &mut Tx,
    forge: &Forge,
    admin: Option<SiteAdmin>,
    user: UserId,
    who: &Who,
) -> Result<(), AdminError> {
    if let Some(admin) = admin
        && !users::lock_admins(tx).await?.contains(&admin.id())
    {
        return Err(Access::NotFound.into());
    }
    let account = users::lock(tx, user).await?.ok_or(Access::NotFound)?;
    let factor = totp::lock(tx, user).await?.filter(|totp| totp.confirmed_at.is_some());
    if factor.is_none() {
        return Err(AdminRefusal::NoSecondFactor.into());
    }
    totp::remove(tx, user).await?;
    sessions::end_all(tx, user).await?;
    if let Some(email) = &account.email {
        mail::enqueue(tx, forge, email, &letters::factor_reset(&forge.settings().public_url)).await?;
    }
    Ok(audit_account(tx, who, AuditAction::TotpReset, json!({ "user_id": user.get() })).await?)
}
