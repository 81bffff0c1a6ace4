//! Details of events about accounts. Accounts are public, so these have nothing that their pages do not show.

use crate::UserId;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserCreated {
    pub user_id: UserId,
    /// `None` for the account of a nostr key.
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub npub: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRenamed {
    pub user_id: UserId,
    pub old_name: Option<String>,
    pub new_name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserDeleted {
    pub user_id: UserId,
}

/// A nostr key that was linked to an account or unlinked from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedKey {
    pub user_id: UserId,
    pub npub: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follow {
    /// The account that is followed.
    pub user_id: UserId,
    pub user: Option<String>,
    pub follower_id: UserId,
    pub follower: Option<String>,
}
