//! Sign-up: users create their own accounts.

use super::new_account::{self, Draft, FieldError};
use super::{invites, one_time, verify};
use crate::disk::{self, Writer};
use crate::{Fault, Forge, throttle};
use abide_core::{InputError, Redacted, UserId};
use abide_macros::boxed;
use abide_store::accounts::emails;
use abide_store::accounts::links::{self, Purpose};
use abide_store::accounts::users::NewUser;
use abide_store::{StoreError, Tx, throttles};
use std::net::IpAddr;
use std::time::Duration;

pub use abide_core::account::SignUpMode;

pub(super) const SCOPE: &str = "signup:ip";

/// Input of a new account.
#[derive(Debug)]
pub struct Request {
    pub name: String,
    pub email: String,
    pub password: Redacted<String>,
    /// The part after `/invite/` in the invitation link.
    pub invite: Option<Redacted<String>>,
}

/// Why the account was not created.
#[derive(Debug, thiserror::Error)]
pub enum SignUpError {
    /// The input breaks a rule.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Sign-up is closed.
    #[error("sign-up is closed; ask the site administrator for an account")]
    Closed,
    /// An invitation is needed, and this one is missing or no longer works.
    #[error("this invitation was used, cancelled or has expired; ask for a new one")]
    Invite,
    /// Too many sign-ups from one network.
    #[error("{}", throttle::wait(*.retry_after))]
    Throttled { retry_after: Duration },
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for SignUpError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Field(error) => error.field(),
            Self::Invite => Some("invite"),
            Self::Closed | Self::Throttled { .. } | Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for SignUpError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Creates an account and sends the verification mail. The account can be used at once.
#[boxed]
pub async fn sign_up(forge: &Forge, ip: Option<IpAddr>, request: Request) -> Result<UserId, SignUpError> {
    let invite = match (forge.settings().signup.mode, request.invite.as_ref().map(Redacted::expose)) {
        (SignUpMode::Closed, _) => return Err(SignUpError::Closed),
        (_, Some(invite)) if invites::is_open(forge, invite).await? => Some(one_time::hash(invite)),
        (SignUpMode::Invite, _) => return Err(SignUpError::Invite),
        (SignUpMode::Open, _) => {
            disk::ensure_room(forge, Writer::Stranger)?;
            None
        }
    };
    let draft = Draft::new(&request.name, &request.email, request.password)?;
    admit(forge, ip).await?;
    let new = draft.hashed(forge, false).await?;
    let proof = verify::Proof::new(forge);
    let unit = Unit { forge: forge.clone(), new, invite, ip: ip.map(|ip| ip.to_string()), proof };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

/// Counts the sign-ups from one network, including refused ones: each reveals whether a name or an address is taken.
async fn admit(forge: &Forge, ip: Option<IpAddr>) -> Result<(), SignUpError> {
    let input = (throttle::limit(SCOPE, forge.settings().signup.by_ip()), throttle::network(ip));
    let hit = forge.store().write(input, |tx, (limit, network)| Box::pin(throttles::hit(tx, *limit, network)));
    match hit.await.map_err(|error: StoreError| SignUpError::from(error))? {
        Some(retry_after) => Err(SignUpError::Throttled { retry_after }),
        None => Ok(()),
    }
}

struct Unit {
    forge: Forge,
    new: NewUser,
    invite: Option<[u8; 32]>,
    ip: Option<String>,
    proof: verify::Proof,
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<UserId, SignUpError> {
    let mut proved = false;
    if let Some(hash) = &unit.invite {
        let link = links::use_up(tx, Purpose::Invite, hash).await?.ok_or(SignUpError::Invite)?;
        // The invitation was sent to this address, so the address is verified.
        proved = link.address.is_some_and(|address| emails::fold(&address) == emails::fold(&unit.new.email));
    }
    let added = new_account::write::<SignUpError>(tx, &unit.new, unit.ip.as_deref(), true).await?;
    if proved {
        emails::verify(tx, added.email).await?;
    } else {
        unit.proof.send(tx, &unit.forge, added.user, added.email, &unit.new.email).await?;
    }
    Ok(added.user)
}
