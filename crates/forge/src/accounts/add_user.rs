//! Adding an account for someone, by the operator.

use super::new_account::{self, Draft, FieldError};
use crate::{Fault, Forge};
use abide_core::UserId;
use abide_store::users::NewUser;
use abide_store::{StoreError, Tx, emails};

/// What a new account is asked for.
pub struct Request {
    /// As typed.
    pub name: String,
    /// As typed.
    pub email: String,
    /// As typed.
    pub password: String,
    /// May administer the site.
    pub site_admin: bool,
    /// The operator vouches for the address: mail goes there without a proof.
    pub verified: bool,
}

/// Why there is no new account.
#[derive(Debug, thiserror::Error)]
pub enum AddUserError {
    /// What was typed breaks a rule.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The machine failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl AddUserError {
    /// Which field of the form it is about.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Self::Field(error) => Some(error.field()),
            Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for AddUserError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Adds an account.
pub async fn add_user(forge: &Forge, request: Request) -> Result<UserId, AddUserError> {
    let draft = Draft::new(&request.name, &request.email, request.password)?;
    let new = draft.hashed(forge, request.site_admin).await?;
    forge.store().write((new, request.verified), |tx, (new, verified)| Box::pin(write(tx, new, *verified))).await
}

async fn write(tx: &mut Tx, new: &NewUser, verified: bool) -> Result<UserId, AddUserError> {
    let added = new_account::write::<AddUserError>(tx, new, None, false).await?;
    if verified {
        emails::verify(tx, added.email).await?;
    }
    Ok(added.user)
}
