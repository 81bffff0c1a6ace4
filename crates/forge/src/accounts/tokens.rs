//! Lists and revokes tokens.

use crate::emit::{AuditAction, Who, audit_account};
use crate::{Caller, Fault, Forge};
use abide_core::UserId;
use abide_macros::boxed;
use abide_store::accounts::tokens::{self, Token};
use serde_json::json;

/// Maximum number of tokens in the list.
const MAX: i64 = 1000;

/// A user's tokens, without their secrets.
#[boxed]
pub async fn list(forge: &Forge, user: UserId) -> Result<Vec<Token>, Fault> {
    Ok(tokens::list(&mut *forge.store().read().await?, user, MAX).await?)
}

/// Revokes a token; `false` if the user has no such live token.
#[boxed]
pub async fn revoke(forge: &Forge, who: &Caller, user: UserId, id: i64) -> Result<bool, Fault> {
    forge
        .store()
        .write((user, id, Who::from(who)), |tx, (user, id, who)| {
            Box::pin(async move {
                let revoked = tokens::revoke(tx, *user, *id).await?;
                if revoked {
                    let meta = json!({ "token_id": id, "user_id": user.get() });
                    audit_account(tx, who, AuditAction::TokenRevoked, meta).await?;
                }
                Ok(revoked)
            })
        })
        .await
}
