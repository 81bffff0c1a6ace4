//! Password reset: a link that works once, sent to the account's address.
//!
//! A request does the same work for every address: it counts, and queues a job. Only the job checks whether an account
//! exists, so neither the answer nor its duration reveals that.

use super::change_password::{self, Change};
use super::new_account::FieldError;
use super::one_time::{self, OneTime};
use super::password;
use crate::emit::Who;
use crate::jobs::{self, Job, Kind};
use crate::mail::{self, letters};
use crate::sealed::SealedPayload;
use crate::{Fault, Forge, sealed, throttle};
use abide_core::InputError;
use abide_core::account::{EmailAddress, password_fits};
use abide_macros::boxed;
use abide_store::accounts::links::{self, NewLink, Purpose};
use abide_store::accounts::{emails, users};
use abide_store::{StoreError, Tx, throttles};
use std::net::IpAddr;
use std::time::Duration;

const BY_NETWORK: &str = "reset:ip";
const BY_ADDRESS: &str = "reset:email";
/// Purpose under which the address in a queued job is sealed.
const PURPOSE: &str = "reset request";

/// Why the reset failed.
#[derive(Debug, thiserror::Error)]
pub enum ResetError {
    /// The input breaks a rule.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The link does not work.
    #[error("this link was already used or has expired; request a new one")]
    Link,
    #[error("{}", throttle::wait(*.retry_after))]
    Throttled { retry_after: Duration },
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for ResetError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Field(error) => error.field(),
            Self::Link | Self::Throttled { .. } | Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for ResetError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Asks for a link. `Ok` does not reveal whether the account exists.
#[boxed]
pub async fn ask(forge: &Forge, ip: Option<IpAddr>, email: &str) -> Result<(), ResetError> {
    let address: EmailAddress = email.parse().map_err(FieldError::from)?;
    let settings = forge.settings();
    let by_network = (throttle::limit(BY_NETWORK, settings.reset.by_ip()), throttle::network(ip));
    // The identifier is signed, so that the throttle table does not list addresses.
    let counted = hex::encode(&sealed::sign(forge, PURPOSE, emails::fold(address.as_str()).as_bytes())[..16]);
    let by_address = (throttle::limit(BY_ADDRESS, settings.reset.by_email()), counted);
    let payload = SealedPayload::new(forge, PURPOSE, address.as_str().as_bytes());
    let waits: Option<Duration> = forge
        .store()
        .write((by_network, by_address, payload), |tx, (by_network, by_address, payload)| {
            Box::pin(async move {
                for (limit, identifier) in [by_network, by_address] {
                    if let Some(wait) = throttles::hit(tx, *limit, identifier).await? {
                        return Ok::<_, ResetError>(Some(wait));
                    }
                }
                jobs::enqueue(tx, Kind::AccountReset, payload, None).await?;
                Ok(None)
            })
        })
        .await?;
    match waits {
        Some(retry_after) => Err(ResetError::Throttled { retry_after }),
        None => Ok(()),
    }
}

/// Runs the job: sends the link, if the address belongs to an account and is trusted to be its owner's.
pub(crate) async fn answer(forge: &Forge, job: &Job) -> Result<(), Fault> {
    let payload: Option<SealedPayload> = jobs::payload(job);
    let address =
        payload.and_then(|payload| payload.open(forge, PURPOSE)).and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(address) = address else { return Ok(()) };
    let unit = (forge.clone(), address, OneTime::new(forge));
    forge
        .store()
        .write(unit, |tx, (forge, address, secret)| {
            Box::pin(async move { Ok(send(tx, forge, address, secret).await?) })
        })
        .await
}

async fn send(tx: &mut Tx, forge: &Forge, address: &str, secret: &OneTime) -> Result<(), StoreError> {
    let Some((email, of_account)) = emails::by_address(tx, address).await? else { return Ok(()) };
    // An unverified address must not open an account that has another address.
    if email.verified_at.is_none() && of_account > 1 {
        return Ok(());
    }
    let Some(user) = users::by_id(tx, email.user_id).await?.filter(|user| user.suspended_at.is_none()) else {
        return Ok(());
    };
    let ttl = forge.settings().reset.ttl;
    links::revoke_of_user(tx, user.id, Purpose::Reset).await?;
    let link = NewLink {
        user_id: Some(user.id),
        email_id: Some(email.id),
        ..NewLink::new(secret.hash, Purpose::Reset, tx.now().plus(ttl))
    };
    links::insert(tx, &link).await?;
    let name = user.handle().map(|handle| handle.shown().into_owned()).unwrap_or_default();
    let letter = letters::reset(&name, &one_time::url(forge, "reset", secret), ttl);
    mail::enqueue(tx, forge, &email.address, &letter).await
}

/// Whether a link still works.
#[boxed]
pub async fn is_open(forge: &Forge, token: &str) -> Result<bool, Fault> {
    Ok(one_time::open(forge, Purpose::Reset, token).await?.is_some())
}

/// Sets a new password and uses up the link. Every session of the account ends; its second factor stays.
#[boxed]
pub async fn set(forge: &Forge, ip: Option<IpAddr>, token: &str, new: String) -> Result<(), ResetError> {
    // Checked before the password is hashed: requests without a valid link cost nothing.
    if !is_open(forge, token).await? {
        return Err(ResetError::Link);
    }
    if !password_fits(&new) {
        return Err(FieldError::PasswordLength.into());
    }
    let hash = password::hash(forge, new.into()).await?;
    let unit = (forge.clone(), one_time::hash(token), hash, ip);
    forge
        .store()
        .write(unit, |tx, (forge, token, hash, ip)| {
            Box::pin(async move {
                let link = links::use_up(tx, Purpose::Reset, token).await?.ok_or(ResetError::Link)?;
                let (Some(user), Some(email)) = (link.user_id, link.email_id) else { return Err(ResetError::Link) };
                // The link was sent to this address, so the address is verified.
                emails::verify(tx, email).await?;
                let change = Change {
                    forge: forge.clone(),
                    user,
                    hash: hash.clone(),
                    who: Who::new(user, *ip),
                    keep: Vec::new(),
                };
                Ok(change_password::write(tx, &change).await?)
            })
        })
        .await
}
