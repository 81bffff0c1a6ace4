//! The first admin: created by a link that the server prints at its first start.

use super::new_account::{self, Draft, FieldError};
use super::one_time::{self, OneTime};
use crate::{Fault, Forge};
use abide_core::{InputError, UserId};
use abide_macros::boxed;
use abide_store::accounts::emails;
use abide_store::accounts::links::{self, NewLink, Purpose};
use abide_store::accounts::users::{self, NewUser};
use abide_store::{StoreError, Tx};
use std::net::IpAddr;

/// Why the first admin was not created.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// The input breaks a rule.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The link does not work.
    #[error("this link was used, has expired, or the server was restarted; restart the server to get a new link")]
    Link,
    /// An administrator exists already.
    #[error("this site already has an administrator; add another with `abide user add --admin`")]
    Done,
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for SetUpError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Field(error) => error.field(),
            Self::Link | Self::Done | Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for SetUpError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// A new link to the setup page, while no administrator exists: on an open server, others may sign up before the operator
/// uses the link. Revokes older links.
#[boxed]
pub async fn link(forge: &Forge) -> Result<Option<String>, Fault> {
    let secret = OneTime::new(forge);
    let url = one_time::url(forge, "setup", &secret);
    let unit = (secret.hash, forge.settings().signup.setup_ttl);
    let made = forge.store().write(unit, |tx, (hash, ttl)| {
        Box::pin(async move {
            if users::any_admin(tx).await? {
                return Ok::<_, Fault>(false);
            }
            links::revoke_setup(tx).await?;
            let link = NewLink::new(*hash, Purpose::Setup, tx.now().plus(*ttl));
            links::insert(tx, &link).await?;
            Ok(true)
        })
    });
    Ok(made.await?.then_some(url))
}

/// Whether the site has no account yet.
#[boxed]
pub async fn is_needed(forge: &Forge) -> Result<bool, Fault> {
    Ok(!users::any(&mut *forge.store().read().await?).await?)
}

/// Whether the link still works.
#[boxed]
pub async fn is_open(forge: &Forge, token: &str) -> Result<bool, Fault> {
    let open = one_time::open(forge, Purpose::Setup, token).await?;
    Ok(open.is_some() && !users::any_admin(&mut *forge.store().read().await?).await?)
}

/// Creates the first admin and uses up the link.
#[boxed]
pub async fn set_up(
    forge: &Forge,
    ip: Option<IpAddr>,
    token: &str,
    name: &str,
    email: &str,
    password: String,
) -> Result<UserId, SetUpError> {
    // Checked before the password is hashed: requests without a valid link cost nothing.
    if !is_open(forge, token).await? {
        return Err(SetUpError::Link);
    }
    let new = Draft::new(name, email, password.into())?.hashed(forge, true).await?;
    let unit = (new, one_time::hash(token), ip.map(|ip| ip.to_string()));
    forge.store().write(unit, |tx, (new, hash, ip)| Box::pin(write(tx, new, hash, ip.as_deref()))).await
}

async fn write(tx: &mut Tx, new: &NewUser, hash: &[u8; 32], ip: Option<&str>) -> Result<UserId, SetUpError> {
    links::use_up(tx, Purpose::Setup, hash).await?.ok_or(SetUpError::Link)?;
    if users::any_admin(tx).await? {
        return Err(SetUpError::Done);
    }
    let added = new_account::write::<SetUpError>(tx, new, ip, true).await?;
    // The operator's address is trusted without a mail.
    emails::verify(tx, added.email).await?;
    Ok(added.user)
}
