//! Whether the credential of an open connection is still valid. A stream, a fetch or a push can outlive its credential,
//! and the account can be suspended meanwhile, so long-lived connections check again and again.

use super::Forge;
use crate::{Fault, secret};
use abide_core::policy::Actor;
use abide_core::time::Timestamp;
use abide_core::{Redacted, UserId};
use abide_nostr::{PublicKey, nip19};
use abide_store::accounts::{sessions, ssh_keys, tokens, user_keys, users};
use abide_store::{Conn, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// Interval of the checks of open connections.
pub const ASK_EVERY: Duration = Duration::from_secs(3);

/// The credential of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Standing {
    /// None, so it cannot become invalid.
    #[default]
    Anonymous,
    /// An account; the credential itself is checked elsewhere.
    Account(UserId),
    /// A token, by its hash.
    Token(Redacted<[u8; 32]>),
    /// A login on the pages, by the hash of its cookie.
    Session(Redacted<[u8; 32]>),
    /// An SSH key, by its fingerprint.
    SshKey(Arc<str>),
    /// A nostr key, and the account that it must belong to.
    Linked(PublicKey, UserId),
}

impl Standing {
    /// The standing of a token.
    pub fn token(secret: &str) -> Self {
        Self::Token(secret::hash(secret).into())
    }

    /// The standing of a caller of whom only the account is known.
    pub(crate) fn of(actor: &Actor) -> Self {
        actor.user_id().map_or(Self::Anonymous, Self::Account)
    }

    /// Whether the credential is still valid.
    pub async fn holds(&self, forge: &Forge) -> Result<bool, Fault> {
        let now = forge.clock().now();
        Ok(self.holds_at(&mut *forge.store().read().await?, now).await?)
    }

    /// As [`Standing::holds`], in the transaction of a change.
    pub(crate) async fn holds_at(&self, conn: &mut Conn, now: Timestamp) -> Result<bool, StoreError> {
        let user = match self {
            Self::Anonymous => return Ok(true),
            Self::Account(id) => users::by_id(conn, *id).await?,
            Self::Token(hash) => match tokens::by_hash(conn, hash.expose()).await? {
                Some(token) if token.is_live(now) => users::by_id(conn, token.user_id).await?,
                _ => None,
            },
            Self::Session(hash) => sessions::open(conn, hash.expose(), now).await?.map(|(_, user)| user),
            Self::SshKey(fingerprint) => match ssh_keys::by_fingerprint(conn, fingerprint).await? {
                Some(key) => users::by_id(conn, key.user_id).await?,
                None => None,
            },
            Self::Linked(key, account) => {
                user_keys::by_npub(conn, &nip19::npub(key)).await?.filter(|user| user.id == *account)
            }
        };
        Ok(user.is_some_and(|user| user.suspended_at.is_none()))
    }

    /// Returns when the credential is no longer valid.
    pub async fn lost(&self, forge: &Forge) {
        if *self == Self::Anonymous {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            match self.holds(forge).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::warn!(%error, "cannot check whether a credential is still valid"),
            }
        }
    }
}
