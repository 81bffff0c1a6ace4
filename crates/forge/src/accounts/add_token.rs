//! Creates an access token. The secret is shown once; only its hash is stored.

use super::one_time::{self, OneTime};
use crate::emit::{AuditAction, Who, audit_account};
use crate::throttle;
use crate::{Caller, Fault, Forge};
use abide_core::scope::Scopes;
use abide_core::{InputError, Timestamp, UserId};
use abide_macros::boxed;
use abide_store::accounts::tokens::{self, NewToken};
use abide_store::accounts::users;
use abide_store::{StoreError, throttles};
use serde_json::json;
use std::time::Duration;

/// Prefix of every token, so that scanners and people recognise one.
pub const PREFIX: &str = "abide_pat_";

const MAX_LABEL: usize = 200;

/// Why the token was not created.
#[derive(Debug, thiserror::Error)]
pub enum AddTokenError {
    /// The label breaks a rule.
    #[error("must have 1 to {MAX_LABEL} characters and no control characters")]
    Label,
    /// The expiry is not in the future.
    #[error("must be in the future, or empty for no expiration")]
    Expiry,
    /// The account has reached its token limit.
    #[error("an account can have at most {0} tokens; revoke one first")]
    TooMany(i64),
    /// The account has reached its rate limit.
    #[error("{}", throttle::wait(*.retry_after))]
    TooOften { retry_after: Duration },
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for AddTokenError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Label => Some("label"),
            Self::Expiry => Some("expires"),
            Self::TooMany(_) | Self::TooOften { .. } | Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for AddTokenError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Creates a token for an account and returns the secret.
#[boxed]
pub async fn add_token(
    forge: &Forge,
    who: &Caller,
    user: UserId,
    label: &str,
    scopes: Scopes,
    expires_at: Option<Timestamp>,
) -> Result<String, AddTokenError> {
    let label = label.trim();
    if label.is_empty() || label.chars().count() > MAX_LABEL || label.chars().any(char::is_control) {
        return Err(AddTokenError::Label);
    }
    if expires_at.is_some_and(|end| end <= forge.clock().now()) {
        return Err(AddTokenError::Expiry);
    }
    let secret = format!("{PREFIX}{}", OneTime::new(forge).text.expose());
    let hint = secret[secret.len() - 4..].to_owned();
    let new = NewToken {
        user_id: user,
        label: label.to_owned(),
        hash: one_time::hash(&secret).into(),
        hint,
        scopes,
        expires_at,
    };
    let settings = forge.settings();
    let unit = (new, Who::from(who), settings.accounts.tokens, settings.accounts.tokens_made);
    let added: Result<(), AddTokenError> = forge
        .store()
        .write(unit, |tx, (new, who, most, rate)| {
            Box::pin(async move {
                // The lock on the account serialises parallel requests, so that the limit cannot be exceeded.
                users::lock(tx, new.user_id).await?;
                if tokens::count_live(tx, new.user_id).await? >= *most {
                    return Err(AddTokenError::TooMany(*most));
                }
                // Tokens that the operator creates do not count.
                if let Some(user) = who.user
                    && let Some(retry_after) =
                        throttles::hit(tx, throttle::limit("token", *rate), &format!("user:{user}")).await?
                {
                    return Err(AddTokenError::TooOften { retry_after });
                }
                let id = tokens::insert(tx, new).await?;
                let meta = json!({ "token_id": id, "user_id": new.user_id.get(), "scopes": new.scopes.to_string() });
                audit_account(tx, who, AuditAction::TokenCreated, meta).await?;
                Ok(())
            })
        })
        .await;
    added.map(|()| secret)
}
