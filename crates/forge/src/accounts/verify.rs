//! Verification of an email address: a link that works once, sent to the address.

use super::one_time::{self, OneTime};
use super::sessions::Viewer;
use crate::emit::{AuditAction, Who, audit_account};
use crate::mail::{self, letters};
use crate::throttle;
use crate::{Fault, Forge};
use abide_core::UserId;
use abide_macros::boxed;
use abide_store::accounts::emails;
use abide_store::accounts::links::{self, NewLink, Purpose};
use abide_store::{StoreError, Tx, throttles};
use serde_json::json;
use std::time::Duration;

/// Throttle scope of mails that an account causes.
pub(super) const MAILS: &str = "mail:account";

/// A link that is about to be sent. Created before the transaction, which may run more than once.
pub(super) struct Proof(OneTime);

impl Proof {
    pub(super) fn new(forge: &Forge) -> Self {
        Self(OneTime::new(forge))
    }

    /// Stores the link and queues the mail, in the caller's transaction. Revokes earlier links for the address.
    pub(super) async fn send(
        &self,
        tx: &mut Tx,
        forge: &Forge,
        user: UserId,
        email: i64,
        address: &str,
    ) -> Result<(), StoreError> {
        links::revoke_of_email(tx, email, Purpose::Verify).await?;
        let ttl = forge.settings().mail.verify_ttl;
        let link = NewLink {
            user_id: Some(user),
            email_id: Some(email),
            ..NewLink::new(self.0.hash, Purpose::Verify, tx.now().plus(ttl))
        };
        links::insert(tx, &link).await?;
        mail::enqueue(tx, forge, address, &letters::verify(&one_time::url(forge, "verify", &self.0), ttl)).await
    }
}

/// Whether a link still works.
#[boxed]
pub async fn is_open(forge: &Forge, token: &str) -> Result<bool, Fault> {
    Ok(one_time::open(forge, Purpose::Verify, token).await?.is_some())
}

/// Uses up a link and marks its address as verified; `false` if the link does not work.
#[boxed]
pub async fn confirm(forge: &Forge, token: &str) -> Result<bool, Fault> {
    forge.store().write(one_time::hash(token), |tx, hash| Box::pin(write(tx, hash))).await
}

async fn write(tx: &mut Tx, hash: &[u8; 32]) -> Result<bool, Fault> {
    let Some(link) = links::use_up(tx, Purpose::Verify, hash).await? else { return Ok(false) };
    let (Some(user), Some(email)) = (link.user_id, link.email_id) else { return Ok(false) };
    if emails::verify(tx, email).await? {
        let who = Who { user: Some(user), ip: None };
        audit_account(tx, &who, AuditAction::EmailVerified, json!({ "user_id": user.get(), "email_id": email }))
            .await?;
    }
    Ok(true)
}

/// Why no mail was sent.
#[derive(Debug, thiserror::Error)]
pub enum ResendError {
    /// The account has no such address.
    #[error("your account does not have this address")]
    NotFound,
    /// The address is verified already.
    #[error("this address is already verified")]
    Verified,
    #[error("{}", throttle::wait(*.retry_after))]
    Throttled { retry_after: Duration },
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<StoreError> for ResendError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Sends the verification mail for one of the viewer's addresses again.
#[boxed]
pub async fn resend(forge: &Forge, viewer: &Viewer, email_id: i64) -> Result<(), ResendError> {
    let unit = (forge.clone(), viewer.user.id, email_id, Proof::new(forge));
    let waits = forge.store().write(unit, |tx, (forge, user, email, proof)| {
        Box::pin(async move {
            let email = emails::by_id(tx, *user, *email).await?.ok_or(ResendError::NotFound)?;
            if email.verified_at.is_some() {
                return Err(ResendError::Verified);
            }
            let limit = throttle::limit(MAILS, forge.settings().mail.by_account());
            let waits = throttles::hit(tx, limit, &user.to_string()).await?;
            if waits.is_none() {
                proof.send(tx, forge, *user, email.id, &email.address).await?;
            }
            // Not an error, because an error would roll the count back.
            Ok(waits)
        })
    });
    match waits.await? {
        Some(retry_after) => Err(ResendError::Throttled { retry_after }),
        None => Ok(()),
    }
}
