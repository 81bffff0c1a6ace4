//! Email addresses of an account.

use super::new_account::FieldError;
use super::sessions::Viewer;
use super::verify;
use crate::emit::{AuditAction, Who, audit_account};
use crate::mail::{self, letters};
use crate::{Fault, Forge, throttle};
use abide_core::account::{EmailAddress, InvalidEmail};
use abide_core::{InputError, UserId};
use abide_macros::boxed;
use abide_store::accounts::{emails, users};
use abide_store::{StoreError, Tx, throttles};
use serde_json::json;
use std::time::Duration;

pub use abide_store::accounts::emails::Email;

/// Why the addresses were not changed.
#[derive(Debug, thiserror::Error)]
pub enum EmailError {
    /// The input breaks a rule.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The account has reached its address limit.
    #[error("an account can have at most {0} addresses; remove one first")]
    TooMany(i64),
    /// The account has no such address.
    #[error("your account does not have this address")]
    NotFound,
    /// The primary address cannot be removed: mail needs an address.
    #[error("this is your primary address; make another address primary first")]
    Primary,
    /// The address is not verified.
    #[error("this address is not verified; open the link in the verification mail")]
    Unverified,
    #[error("{}", throttle::wait(*.retry_after))]
    Throttled { retry_after: Duration },
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for EmailError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Field(error) => error.field(),
            Self::TooMany(_) => Some("email"),
            _ => None,
        }
    }
}

impl From<StoreError> for EmailError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// The viewer's addresses.
#[boxed]
pub async fn list(forge: &Forge, viewer: &Viewer) -> Result<Vec<Email>, Fault> {
    of_user(forge, viewer.user.id).await
}

/// The addresses of an account, for its owner without a session.
#[boxed]
pub async fn of_user(forge: &Forge, user: UserId) -> Result<Vec<Email>, Fault> {
    Ok(emails::list(&mut *forge.store().read().await?, user).await?)
}

struct Unit {
    forge: Forge,
    who: Who,
    viewer: UserId,
}

impl Unit {
    fn new(forge: &Forge, viewer: &Viewer) -> Self {
        Self { forge: forge.clone(), who: Who::from(&viewer.caller), viewer: viewer.user.id }
    }
}

/// Adds an address and sends the verification mail. Returns its id.
#[boxed]
pub async fn add(forge: &Forge, viewer: &Viewer, typed: &str) -> Result<i64, EmailError> {
    let address: EmailAddress = typed.parse().map_err(|error: InvalidEmail| FieldError::from(error))?;
    let unit = (Unit::new(forge, viewer), address.to_string(), verify::Proof::new(forge));
    let added: Result<Result<i64, EmailError>, EmailError> =
        forge.store().write(unit, |tx, (unit, address, proof)| Box::pin(write_added(tx, unit, address, proof))).await;
    added?
}

/// The inner refusals stay counted: each reveals whether an address is taken, or would send another mail.
async fn write_added(
    tx: &mut Tx,
    unit: &Unit,
    address: &str,
    proof: &verify::Proof,
) -> Result<Result<i64, EmailError>, EmailError> {
    let settings = unit.forge.settings();
    // The lock on the account serialises parallel requests, so that the limit cannot be exceeded.
    users::lock(tx, unit.viewer).await?;
    if emails::count(tx, unit.viewer).await? >= settings.accounts.emails {
        return Err(EmailError::TooMany(settings.accounts.emails));
    }
    let limit = throttle::limit(verify::MAILS, settings.mail.by_account());
    if let Some(retry_after) = throttles::hit(tx, limit, &unit.viewer.to_string()).await? {
        return Ok(Err(EmailError::Throttled { retry_after }));
    }
    if emails::by_address(tx, address).await?.is_some() {
        return Ok(Err(FieldError::EmailTaken.into()));
    }
    // Another transaction may take the address at this moment.
    let id = match emails::insert(tx, unit.viewer, address, false).await {
        Err(StoreError::Unique) => return Err(FieldError::EmailTaken.into()),
        inserted => inserted?,
    };
    proof.send(tx, &unit.forge, unit.viewer, id, address).await?;
    let meta = json!({ "user_id": unit.viewer.get(), "email_id": id, "address": address });
    audit_account(tx, &unit.who, AuditAction::EmailAdded, meta).await?;
    Ok(Ok(id))
}

/// Removes one of the viewer's addresses.
#[boxed]
pub async fn remove(forge: &Forge, viewer: &Viewer, id: i64) -> Result<(), EmailError> {
    forge
        .store()
        .write((Unit::new(forge, viewer), id), |tx, (unit, id)| {
            Box::pin(async move {
                let email = emails::by_id(tx, unit.viewer, *id).await?.ok_or(EmailError::NotFound)?;
                if !emails::remove(tx, unit.viewer, *id).await? {
                    return Err(EmailError::Primary);
                }
                let meta = json!({ "user_id": unit.viewer.get(), "email_id": id, "address": email.address });
                audit_account(tx, &unit.who, AuditAction::EmailRemoved, meta).await?;
                Ok(())
            })
        })
        .await
}

/// Makes a verified address the primary one. A mail notifies the previous primary address.
#[boxed]
pub async fn make_primary(forge: &Forge, viewer: &Viewer, id: i64) -> Result<(), EmailError> {
    forge.store().write((Unit::new(forge, viewer), id), |tx, (unit, id)| Box::pin(write_primary(tx, unit, *id))).await
}

async fn write_primary(tx: &mut Tx, unit: &Unit, id: i64) -> Result<(), EmailError> {
    let user = users::lock(tx, unit.viewer).await?.ok_or(EmailError::NotFound)?;
    let email = emails::by_id(tx, unit.viewer, id).await?.ok_or(EmailError::NotFound)?;
    if email.is_primary {
        return Ok(());
    }
    if email.verified_at.is_none() {
        return Err(EmailError::Unverified);
    }
    emails::set_primary(tx, unit.viewer, id).await?;
    if let Some(before) = &user.email {
        let letter = letters::address_changed(&unit.forge.settings().public_url, &email.address);
        mail::enqueue(tx, &unit.forge, before, &letter).await?;
    }
    let meta = json!({ "user_id": unit.viewer.get(), "before": user.email, "after": email.address });
    audit_account(tx, &unit.who, AuditAction::PrimaryEmailChanged, meta).await?;
    Ok(())
}
