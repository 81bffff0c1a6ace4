//! Invitations: a link that lets someone sign up, once.

use super::new_account::FieldError;
use super::one_time::{self, OneTime};
use super::sign_up::SignUpMode;
use crate::emit::{AuditAction, Who, audit_account};
use crate::mail::{self, letters};
use crate::{Access, By, Fault, Forge};
use abide_core::InputError;
use abide_core::account::{EmailAddress, InvalidEmail};
use abide_macros::boxed;
use abide_store::accounts::links::{self, NewLink, Purpose};
use abide_store::{StoreError, Tx};
use serde_json::json;

pub use abide_store::accounts::links::Invite;

/// Maximum number of invitations in the list.
const MAX: i64 = 1000;

/// Why the invitation was not created.
#[derive(Debug, thiserror::Error)]
pub enum InviteError {
    /// The address is not valid.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Sign-up is closed, so an invitation would not work.
    #[error("sign-up is closed; set signup.mode to invite or open first")]
    Closed,
    /// The limit of open invitations is reached.
    #[error("there are {0} open invitations, which is the limit; cancel some first")]
    TooMany(i64),
    /// The caller is not an admin, or an internal failure.
    #[error(transparent)]
    Access(#[from] Access),
}

impl InputError for InviteError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Field(error) => error.field(),
            _ => None,
        }
    }
}

impl From<StoreError> for InviteError {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

/// Creates an invitation and returns its link, which is shown only once. With an address, the link is also sent there.
#[boxed]
pub async fn create(forge: &Forge, by: &By, email: Option<String>) -> Result<String, InviteError> {
    if forge.settings().signup.mode == SignUpMode::Closed {
        return Err(InviteError::Closed);
    }
    let typed = email.filter(|typed| !typed.trim().is_empty());
    let parsed = typed.map(|typed| typed.parse::<EmailAddress>()).transpose();
    let address = parsed.map_err(|error: InvalidEmail| FieldError::from(error))?;
    let secret = OneTime::new(forge);
    let url = one_time::url(forge, "invite", &secret);
    let unit = Unit { forge: forge.clone(), who: Who::from(by), address, hash: secret.hash, url: url.clone() };
    let invited: Result<(), InviteError> = forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await;
    invited.map(|()| url)
}

struct Unit {
    forge: Forge,
    who: Who,
    address: Option<EmailAddress>,
    hash: [u8; 32],
    url: String,
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<(), InviteError> {
    let settings = unit.forge.settings();
    let now = tx.now();
    if links::count_invites(tx, now).await? >= settings.signup.open_invites {
        return Err(InviteError::TooMany(settings.signup.open_invites));
    }
    let address = unit.address.as_ref().map(ToString::to_string);
    let link = NewLink {
        address: address.clone(),
        created_by: unit.who.user,
        ..NewLink::new(unit.hash, Purpose::Invite, now.plus(settings.signup.invite_ttl))
    };
    let id = links::insert(tx, &link).await?;
    if let Some(address) = &address {
        let letter = letters::invite(&unit.forge.settings().public_url, &unit.url, settings.signup.invite_ttl);
        mail::enqueue(tx, &unit.forge, address, &letter).await?;
    }
    audit_account(tx, &unit.who, AuditAction::InviteCreated, json!({ "invite_id": id, "address": address })).await?;
    Ok(())
}

/// Whether an invitation still works.
#[boxed]
pub async fn is_open(forge: &Forge, token: &str) -> Result<bool, Fault> {
    Ok(one_time::open(forge, Purpose::Invite, token).await?.is_some())
}

/// Open invitations, newest first.
#[boxed]
pub async fn list(forge: &Forge, _: &By) -> Result<Vec<Invite>, Fault> {
    let now = forge.clock().now();
    Ok(links::invites(&mut *forge.store().read().await?, now, MAX).await?)
}

/// Revokes an invitation; `false` if it does not exist or was accepted.
#[boxed]
pub async fn revoke(forge: &Forge, by: &By, id: i64) -> Result<bool, Fault> {
    forge
        .store()
        .write((id, Who::from(by)), |tx, (id, who)| {
            Box::pin(async move {
                let revoked = links::revoke(tx, Purpose::Invite, *id).await?;
                if revoked {
                    audit_account(tx, who, AuditAction::InviteRevoked, json!({ "invite_id": id })).await?;
                }
                Ok(revoked)
            })
        })
        .await
}
