//! Changes an account's username. The old name redirects to the account, and nobody else can take it.

use super::confirm::{self, ConfirmError};
use super::new_account::FieldError;
use super::sessions::Viewer;
use crate::attention::watch;
use crate::emit::{AuditAction, Subject, Who, audit_account, emit};
use crate::{Fault, Forge};
use abide_core::event::{Payload, Publicity, UserRenamed};
use abide_core::names::InvalidName;
use abide_core::{InputError, UserId, UserName};
use abide_macros::boxed;
use abide_store::accounts::{user_merge, user_redirects, users};
use abide_store::{StoreError, Tx};

pub use abide_store::accounts::user_redirects::OldName;

/// Why the name was not changed.
#[derive(Debug, thiserror::Error)]
pub enum RenameError {
    /// The new name breaks a rule or is taken.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The account has this name already.
    #[error("the account already has this name")]
    Same,
    /// The account has a name already; changing it needs the password.
    #[error("this account already has a user name; change it in the account settings")]
    Named,
    /// The account has reached its limit of old names.
    #[error("this account has {0} old names, the limit; reuse one of them, or ask an administrator to release one")]
    TooMany(i64),
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for RenameError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Field(error) => error.field(),
            Self::Same | Self::Named | Self::TooMany(_) => Some("name"),
            Self::Confirm(error) => error.field(),
            Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for RenameError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unique => Self::Field(FieldError::NameTaken),
            other => Self::Fault(other.into()),
        }
    }
}

/// Renames the viewer's account.
#[boxed]
pub async fn rename(
    forge: &Forge,
    viewer: &Viewer,
    new_name: &str,
    current_password: String,
) -> Result<UserName, RenameError> {
    let name = parse(new_name)?;
    confirm::password(forge, viewer, current_password).await?;
    change(forge, Who::from(&viewer.caller), viewer.user.id, name, false).await
}

/// Gives the viewer's account its first name. No URL uses a name of the account yet, so a session is enough.
#[boxed]
pub async fn pick(forge: &Forge, viewer: &Viewer, name: &str) -> Result<UserName, RenameError> {
    change(forge, Who::from(&viewer.caller), viewer.user.id, parse(name)?, true).await
}

/// Renames an account, by the operator at the command line.
#[boxed]
pub async fn rename_by_operator(forge: &Forge, user: UserId, new_name: &str) -> Result<UserName, RenameError> {
    change(forge, Who::default(), user, parse(new_name)?, false).await
}

fn parse(typed: &str) -> Result<UserName, RenameError> {
    Ok(typed.trim().parse().map_err(|error: InvalidName| FieldError::from(error))?)
}

async fn change(forge: &Forge, who: Who, user: UserId, name: UserName, first: bool) -> Result<UserName, RenameError> {
    let keep = forge.settings().accounts.old_names;
    let unit = Unit { user, name: name.clone(), who, keep, first };
    let renamed: Result<(), RenameError> = forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await;
    renamed.map(|()| name)
}

struct Unit {
    user: UserId,
    name: UserName,
    who: Who,
    keep: i64,
    /// Only if the account has no name.
    first: bool,
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<(), RenameError> {
    let gone = || Fault::Internal("the account vanished".into());
    let user = users::lock(tx, unit.user).await?.ok_or_else(gone)?;
    if user.name.as_ref() == Some(&unit.name) {
        return Err(RenameError::Same);
    }
    if unit.first && user.name.is_some() {
        return Err(RenameError::Named);
    }
    users::set_name(tx, unit.user, user.name.as_ref(), &unit.name).await?;
    if user_redirects::count(tx, unit.user).await? > unit.keep {
        return Err(RenameError::TooMany(unit.keep));
    }
    if user.name.is_none() {
        let owned = user_merge::repos(tx, unit.user).await?;
        watch::on_ownership_of(tx, unit.user, &owned).await?;
    }
    let payload = Payload::UserRenamed(UserRenamed {
        user_id: unit.user,
        old_name: user.name.as_ref().map(ToString::to_string),
        new_name: unit.name.to_string(),
    });
    audit_account(tx, &unit.who, AuditAction::UserRenamed, payload.details()).await?;
    emit(tx, &unit.who, Subject::User(unit.user), Publicity::Public, payload).await?;
    Ok(())
}

/// The viewer's old names, oldest first.
#[boxed]
pub async fn redirects(forge: &Forge, viewer: &Viewer) -> Result<Vec<OldName>, Fault> {
    Ok(user_redirects::list(&mut *forge.store().read().await?, viewer.user.id).await?)
}
