//! Changes the viewer's own password.

use super::confirm::{self, ConfirmError};
use super::new_account::FieldError;
use super::password;
use super::sessions::Viewer;
use crate::emit::{AuditAction, Who, audit_account};
use crate::mail::{self, letters};
use crate::{Fault, Forge};
use abide_core::account::password_fits;
use abide_core::{InputError, Redacted, UserId};
use abide_macros::boxed;
use abide_store::accounts::links::{self, Purpose};
use abide_store::accounts::{sessions, users};
use abide_store::{StoreError, Tx};
use serde_json::json;

/// Why the password was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangePasswordError {
    /// The new password is too short or too long.
    #[error(transparent)]
    Field(FieldError),
    /// The current password is wrong.
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for ChangePasswordError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Field(error) => error.field(),
            Self::Confirm(error) => error.field(),
            Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for ChangePasswordError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Changes the viewer's password and ends all their other sessions.
#[boxed]
pub async fn change_password(
    forge: &Forge,
    viewer: &Viewer,
    current: String,
    new: String,
) -> Result<(), ChangePasswordError> {
    if !password_fits(&new) {
        return Err(ChangePasswordError::Field(FieldError::PasswordLength));
    }
    confirm::password(forge, viewer, current).await?;
    let hash = password::hash(forge, new.into()).await?;
    let keep = hex::decode(&viewer.session_id).unwrap_or_default();
    let unit = Change { forge: forge.clone(), user: viewer.user.id, hash, who: Who::from(&viewer.caller), keep };
    forge.store().write(unit, |tx, unit| Box::pin(async move { Ok(write(tx, unit).await?) })).await
}

/// A password change that is about to be written.
pub(super) struct Change {
    pub forge: Forge,
    pub user: UserId,
    pub hash: Redacted<String>,
    pub who: Who,
    /// Hash of the session that stays; empty: none stays.
    pub keep: Vec<u8>,
}

/// Sets the password, revokes every reset link, and ends every session except `keep`. A mail notifies the owner.
pub(super) async fn write(tx: &mut Tx, change: &Change) -> Result<(), StoreError> {
    let user = change.user;
    users::set_password(tx, user, &change.hash).await?;
    links::revoke_of_user(tx, user, Purpose::Reset).await?;
    let ended = sessions::end_others(tx, user, &change.keep).await?;
    if let Some(email) = users::by_id(tx, user).await?.and_then(|user| user.email) {
        let letter = letters::password_changed(&change.forge.settings().public_url);
        mail::enqueue(tx, &change.forge, &email, &letter).await?;
    }
    let meta = json!({ "user_id": user.get(), "sessions_ended": ended });
    audit_account(tx, &change.who, AuditAction::PasswordChanged, meta).await
}
