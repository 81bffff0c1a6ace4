//! Details of events about webhooks. They name the receiver's host only: the rest of an address may be a secret.

use crate::HookId;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookCreated {
    pub hook_id: HookId,
    #[serde(flatten)]
    pub choice: HookChoice,
}

/// Settings of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookChoice {
    pub host: String,
    pub events: Vec<String>,
    pub active: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookEdited {
    pub hook_id: HookId,
    #[serde(flatten)]
    pub choice: HookChoice,
    pub before: HookChoice,
    pub secret_changed: bool,
    pub address_changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookDeleted {
    pub hook_id: HookId,
    pub host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookHealth {
    pub hook_id: HookId,
    pub host: String,
    /// Deliveries that failed in a row.
    pub failures: i64,
}
