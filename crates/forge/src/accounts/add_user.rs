//! Adding an account.

use super::password;
use crate::tell::{Who, audit_account};
use crate::{Fault, Forge};
use abide_core::names::InvalidName;
use abide_core::{UserId, UserName};
use abide_store::StoreError;
use abide_store::users::{self, NewUser};
use serde_json::json;

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
}

/// Why there is no new account.
#[derive(Debug, thiserror::Error)]
pub enum AddUserError {
    /// The name breaks a rule.
    #[error("name: {0}")]
    InvalidName(#[from] InvalidName),
    /// The address cannot be one.
    #[error("email: an address looks like someone@example.org and has at most 254 characters")]
    InvalidEmail,
    /// The password is too short or too long.
    #[error("password: it has {} to {} characters", password::MIN_LEN, password::MAX_LEN)]
    PasswordLength,
    /// Someone has the name or the address.
    #[error("name or email: another account has it already")]
    Taken,
    /// The machine failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<StoreError> for AddUserError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unique => Self::Taken,
            other => Self::Fault(other.into()),
        }
    }
}

/// Adds an account.
pub async fn add_user(forge: &Forge, request: Request) -> Result<UserId, AddUserError> {
    let name: UserName = request.name.parse()?;
    if !looks_like_an_address(&request.email) {
        return Err(AddUserError::InvalidEmail);
    }
    if !(password::MIN_LEN..=password::MAX_LEN).contains(&request.password.chars().count()) {
        return Err(AddUserError::PasswordLength);
    }
    let password_hash = password::hash(request.password).await?;
    let new = NewUser { name, email: request.email, password_hash, site_admin: request.site_admin };
    forge
        .store()
        .write(new, |tx, new| {
            Box::pin(async move {
                let id = users::insert(tx, new).await?;
                let meta = json!({ "user_id": id.get(), "name": new.name.as_str(), "site_admin": new.site_admin });
                audit_account(tx, &Who { user: None, ip: None }, "user_created", meta).await?;
                Ok(id)
            })
        })
        .await
}

/// Only a mail can prove an address; this keeps out what cannot be one.
fn looks_like_an_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let plain = !text.chars().any(|c| c.is_whitespace() || c.is_control() || "<>,;".contains(c));
    plain
        && text.len() <= 254
        && !local.is_empty()
        && domain.contains('.')
        && !domain.starts_with('.')
        && !domain.ends_with('.')
}

#[cfg(test)]
mod tests {
    use super::looks_like_an_address;

    #[test]
    fn what_cannot_be_an_address_is_refused() {
        assert!(looks_like_an_address("a.b+c@example.org"));
        for bad in ["", "a", "@example.org", "a@b", "a@.org", "a b@example.org", "a@example.org\n", "<a@example.org>"] {
            assert!(!looks_like_an_address(bad), "{bad:?}");
        }
    }
}
