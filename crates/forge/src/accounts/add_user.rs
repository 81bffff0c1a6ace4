//! Creates an account for someone, by the operator.

use super::new_account::{self, Draft, FieldError};
use crate::{Fault, Forge};
use abide_core::{InputError, Redacted, UserId};
use abide_macros::boxed;
use abide_store::accounts::emails;
use abide_store::accounts::users::NewUser;
use abide_store::{StoreError, Tx};

/// Input of a new account.
#[derive(Debug)]
pub struct Request {
    pub name: String,
    pub email: String,
    pub password: Redacted<String>,
    pub site_admin: bool,
    /// The operator vouches for the address: it counts as verified without a mail.
    pub verified: bool,
}

/// Why the account was not created.
#[derive(Debug, thiserror::Error)]
pub enum AddUserError {
    /// The input breaks a rule.
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for AddUserError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Field(error) => error.field(),
            Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for AddUserError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Creates an account.
#[boxed]
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
