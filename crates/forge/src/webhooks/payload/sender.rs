//! Senders of events: accounts, keys without an account, and the server.

use crate::Forge;
use crate::github::SimpleUser;
use abide_core::{Handle, UserId};
use abide_store::accounts::{user_keys, users};
use abide_store::{StoreError, Tx};
use serde::Serialize;

/// User who caused an event.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Sender {
    Account(SimpleUser),
    Other(NoAccount),
}

/// A sender without an account. It has no lists of its own, so it lacks their URLs.
#[derive(Debug, Serialize)]
pub(super) struct NoAccount {
    login: String,
    id: Option<i64>,
    node_id: Option<&'static str>,
    avatar_url: &'static str,
    gravatar_id: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    html_url: String,
    #[serde(rename = "type")]
    kind: &'static str,
    site_admin: bool,
}

impl Sender {
    /// The account; the server if there is none. A deleted account appears as the ghost.
    pub(super) async fn of(tx: &mut Tx, forge: &Forge, id: Option<UserId>) -> Result<Self, StoreError> {
        let Some(id) = id else { return Ok(Self::server(forge)) };
        Ok(Self::Account(account(tx, forge, id).await?))
    }

    /// Signer of a nostr event: the account that the key is linked to, or the key.
    pub(super) async fn signer(tx: &mut Tx, forge: &Forge, npub: &str) -> Result<Self, StoreError> {
        Ok(match user_keys::by_npub(tx, npub).await? {
            Some(user) => {
                let name = user.handle();
                Self::Account(SimpleUser::new(forge, user.id, name.as_ref().map(Handle::as_str), user.site_admin))
            }
            None => Self::Other(NoAccount {
                login: npub.to_owned(),
                id: None,
                node_id: None,
                avatar_url: "",
                gravatar_id: "",
                url: None,
                html_url: format!("{}/{npub}", forge.settings().public_url),
                kind: "User",
                site_admin: false,
            }),
        })
    }

    /// Sender of events that a background job or the operator caused.
    fn server(forge: &Forge) -> Self {
        Self::Other(NoAccount {
            login: "abide".to_owned(),
            id: Some(0),
            node_id: Some("U_0"),
            avatar_url: "",
            gravatar_id: "",
            url: Some(forge.settings().public_url.clone()),
            html_url: forge.settings().public_url.clone(),
            kind: "Bot",
            site_admin: false,
        })
    }

    pub(super) fn login(&self) -> &str {
        match self {
            Self::Account(user) => user.login(),
            Self::Other(other) => &other.login,
        }
    }
}

/// An account by id. A deleted one appears as the ghost.
pub(super) async fn account(tx: &mut Tx, forge: &Forge, id: UserId) -> Result<SimpleUser, StoreError> {
    Ok(match users::by_id(tx, id).await? {
        Some(user) => SimpleUser::of(forge, &user),
        None => SimpleUser::new(forge, id, None, false),
    })
}
