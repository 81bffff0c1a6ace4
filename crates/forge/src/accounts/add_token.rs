//! Making an access token. The secret is shown once; only its hash is kept.

use crate::tell::{Who, audit_account};
use crate::{Fault, Forge};
use abide_core::scope::Scopes;
use abide_core::{Timestamp, UserId};
use abide_store::tokens::{self, NewToken};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// What every token starts with, so that scanners and people recognise one.
pub const PREFIX: &str = "abide_pat_";

/// Makes a token and returns the secret.
pub async fn add_token(
    forge: &Forge,
    user: UserId,
    label: String,
    scopes: Scopes,
    expires_at: Option<Timestamp>,
) -> Result<String, Fault> {
    let mut random = [0; 32];
    forge.random().fill(&mut random);
    let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
    let hint = secret[secret.len() - 4..].to_owned();
    let new = NewToken { user_id: user, label, hash: hash(&secret), hint, scopes, expires_at };
    forge
        .store()
        .write(new, |tx, new| {
            Box::pin(async move {
                let id = tokens::insert(tx, new).await?;
                let meta = json!({ "token_id": id, "user_id": new.user_id.get(), "scopes": new.scopes.to_string() });
                audit_account(tx, &Who { user: Some(new.user_id), ip: None }, "token_created", meta).await?;
                Ok::<_, Fault>(())
            })
        })
        .await?;
    Ok(secret)
}

/// What is stored of a secret. It has 256 random bits, so a fast hash is enough.
pub(crate) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
