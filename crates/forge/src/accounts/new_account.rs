//! Common part of all ways to create an account: the rules for the input, and the rows.

use super::password;
use crate::emit::{AuditAction, Subject, Who, audit_account, emit};
use crate::{Fault, Forge};
use abide_core::account::{EmailAddress, InvalidEmail, password_fits};
use abide_core::event::{Payload, Publicity, UserCreated};
use abide_core::names::InvalidName;
use abide_core::{InputError, Redacted, UserId, UserName};
use abide_store::accounts::emails;
use abide_store::accounts::users::{self, NewUser};
use abide_store::{StoreError, Tx};
use serde_json::json;

/// A field of a new account that breaks a rule.
#[derive(Debug, thiserror::Error)]
pub enum FieldError {
    /// The name breaks a rule.
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    /// The address is not valid.
    #[error(transparent)]
    InvalidEmail(#[from] InvalidEmail),
    /// The password is too short or too long.
    #[error("must have {} to {} characters", password::MIN_LEN, password::MAX_LEN)]
    PasswordLength,
    /// An account has the name, or had it.
    #[error("this user name is taken")]
    NameTaken,
    /// An account has the address.
    #[error("another account uses this address")]
    EmailTaken,
}

impl InputError for FieldError {
    fn field(&self) -> Option<&'static str> {
        Some(match self {
            Self::InvalidName(_) | Self::NameTaken => "name",
            Self::InvalidEmail(_) | Self::EmailTaken => "email",
            Self::PasswordLength => "password",
        })
    }
}

/// Input that passed the checks that need no database.
pub(super) struct Draft {
    name: UserName,
    email: EmailAddress,
    password: Redacted<String>,
}

impl Draft {
    pub(super) fn new(name: &str, email: &str, password: Redacted<String>) -> Result<Self, FieldError> {
        let (name, email) = (name.trim().parse()?, email.parse()?);
        match password_fits(password.expose()) {
            true => Ok(Self { name, email, password }),
            false => Err(FieldError::PasswordLength),
        }
    }

    /// Hashes the password, which is the expensive part.
    pub(super) async fn hashed(self, forge: &Forge, site_admin: bool) -> Result<NewUser, Fault> {
        let password_hash = password::hash(forge, self.password).await?;
        Ok(NewUser { name: self.name, email: self.email.to_string(), password_hash, site_admin })
    }
}

/// Ids of a new account's rows: the account and its address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Added {
    pub user: UserId,
    pub email: i64,
}

/// Writes the account. The actor is the new account itself if it signed up, otherwise the operator.
pub(super) async fn write<E>(tx: &mut Tx, new: &NewUser, ip: Option<&str>, by_themselves: bool) -> Result<Added, E>
where
    E: From<FieldError> + From<StoreError>,
{
    if users::by_any_name(tx, &new.name).await?.is_some() {
        return Err(FieldError::NameTaken.into());
    }
    if emails::by_address(tx, &new.email).await?.is_some() {
        return Err(FieldError::EmailTaken.into());
    }
    // Another transaction may take the name or the address at this moment. The unique indexes decide, and cannot say
    // which it was.
    let user = match users::insert(tx, new).await {
        Err(StoreError::Unique) => return Err(FieldError::NameTaken.into()),
        inserted => inserted?,
    };
    let address = emails::by_address(tx, &new.email).await?;
    let (email, _) = address.ok_or(StoreError::Missing)?;
    let who = Who { user: by_themselves.then_some(user), ip: ip.map(str::to_owned) };
    let meta = json!({ "user_id": user.get(), "name": new.name.as_str(), "site_admin": new.site_admin });
    audit_account(tx, &who, AuditAction::UserCreated, meta).await?;
    let created = UserCreated { user_id: user, name: Some(new.name.to_string()), npub: None };
    emit(tx, &who, Subject::User(user), Publicity::Public, Payload::UserCreated(created)).await?;
    Ok(Added { user, email: email.id })
}
