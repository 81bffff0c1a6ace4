//! Profile of an account.

use crate::emit::{AuditAction, Who, audit_account};
use crate::{Access, Caller, Fault, Forge};
use abide_core::InputError;
use abide_core::account::{InvalidProfile, ProfileField};
use abide_core::policy::DenyCode;
use abide_macros::boxed;
use abide_store::StoreError;
use abide_store::accounts::users::{self, Profile};
use serde_json::json;

/// Input as typed. Every field may be empty.
#[derive(Debug, Clone)]
pub struct Request {
    pub display_name: String,
    pub bio: String,
    pub website: String,
    pub location: String,
}

/// Why the profile was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The input breaks a rule.
    #[error(transparent)]
    Field(#[from] InvalidProfile),
    /// Nobody is logged in, or the caller lacks permission.
    #[error(transparent)]
    Access(#[from] Access),
}

impl InputError for ProfileError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Field(error) => error.field(),
            Self::Access(_) => None,
        }
    }
}

impl From<StoreError> for ProfileError {
    fn from(error: StoreError) -> Self {
        Self::Access(Fault::from(error).into())
    }
}

/// Replaces the caller's profile. A profile that holds already changes nothing and emits nothing.
#[boxed]
pub async fn edit(forge: &Forge, caller: &Caller, request: Request) -> Result<(), ProfileError> {
    let user = caller.user_id().ok_or(Access::Denied(DenyCode::LoginRequired))?;
    let display_name = ProfileField::DisplayName.check(&request.display_name)?;
    let profile = Profile {
        display_name: (!display_name.is_empty()).then_some(display_name),
        bio: ProfileField::Bio.check(&request.bio)?,
        website: ProfileField::Website.check(&request.website)?,
        location: ProfileField::Location.check(&request.location)?,
    };
    forge
        .store()
        .write((user, profile, Who::from(caller)), |tx, (id, profile, who)| {
            Box::pin(async move {
                let user = users::lock(tx, *id).await?.ok_or(Access::Denied(DenyCode::LoginRequired))?;
                if user.suspended_at.is_some() {
                    return Err(Access::Denied(DenyCode::Suspended).into());
                }
                let before = Profile {
                    display_name: user.display_name,
                    bio: user.bio,
                    website: user.website,
                    location: user.location,
                };
                if before != *profile {
                    users::set_profile(tx, *id, profile).await?;
                    audit_account(tx, who, AuditAction::ProfileEdited, json!({ "user_id": id.get() })).await?;
                }
                Ok(())
            })
        })
        .await
}
