//! Whether someone whose connection stays open may still be here. A stream can outlive the token that opened it, and the
//! account behind it can be suspended: whoever keeps a connection open asks again and again.

use super::one_time::hash;
use crate::{Fault, Forge, relay};
use abide_nostr::grasp::signer::Signer;
use abide_nostr::{PublicKey, nip19};
use abide_store::{tokens, user_keys, users};
use std::time::Duration;

/// How often connections that stay open ask.
pub const ASK_EVERY: Duration = Duration::from_secs(3);

/// What someone came in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: there is nothing to lose.
    Anonymous,
    /// A token, by its hash.
    Token([u8; 32]),
    /// A nostr key that must belong to an account.
    Linked(PublicKey),
}

impl Standing {
    /// Someone with a token.
    pub fn token(secret: &str) -> Self {
        Self::Token(hash(secret))
    }

    /// Whether it would still let them in.
    pub async fn holds(&self, forge: &Forge) -> Result<bool, Fault> {
        let mut conn = forge.store().read().await?;
        match self {
            Self::Anonymous => Ok(true),
            Self::Token(hash) => {
                let Some(token) = tokens::by_hash(&mut conn, hash).await? else { return Ok(false) };
                let user = users::by_id(&mut conn, token.user_id).await?;
                Ok(token.is_live(forge.clock().now()) && user.is_some_and(|user| user.suspended_at.is_none()))
            }
            Self::Linked(key) => {
                let user = user_keys::by_npub(&mut conn, &nip19::npub(key)).await?;
                Ok(user.is_some_and(|user| user.suspended_at.is_none()))
            }
        }
    }
}

/// Whether the account of a key is suspended, or was when it was deleted. Another key without an account is a stranger's.
pub(crate) async fn is_suspended(forge: &Forge, key: &PublicKey) -> Result<bool, Fault> {
    Ok(relay::signer(&mut *forge.store().read().await?, *key).await? == Signer::Suspended)
}
