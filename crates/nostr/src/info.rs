//! Relay information document (NIP-11).

use crate::RelayLimits;
use serde::Serialize;

/// NIPs that the relay supports.
pub const SUPPORTED_NIPS: [u16; 9] = [1, 9, 11, 34, 40, 42, 45, 77, 98];

/// Document served for `Accept: application/nostr+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RelayInfo {
    pub name: String,
    pub description: String,
    /// The operator's key, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pubkey: Option<String>,
    /// Other contact of the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// See [`SUPPORTED_NIPS`].
    pub supported_nips: Vec<u16>,
    /// Enabled parts of GRASP, such as `GRASP-01`.
    pub supported_grasps: Vec<String>,
    /// Rule for accepting repositories.
    pub repo_acceptance_criteria: String,
    /// Description of content that the operator excludes; absent if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curation: Option<String>,
    /// URL of a page about the software.
    pub software: String,
    pub version: String,
    pub limitation: Limitation,
}

/// RelayLimits that clients should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limitation {
    max_message_length: usize,
    max_event_length: usize,
    max_subscriptions: usize,
    max_filters: usize,
    max_limit: usize,
    default_limit: usize,
    max_subid_length: usize,
    max_event_tags: usize,
    created_at_upper_limit: u64,
    auth_required: bool,
    payment_required: bool,
    /// Only events linked to a repository here are accepted.
    restricted_writes: bool,
}

impl From<&RelayLimits> for Limitation {
    fn from(limits: &RelayLimits) -> Self {
        Self {
            max_message_length: limits.message_bytes,
            max_event_length: limits.event_bytes,
            max_subscriptions: limits.subscriptions,
            max_filters: limits.filters,
            max_limit: limits.filter_limit,
            default_limit: limits.filter_limit,
            max_subid_length: limits.subscription_id_chars,
            max_event_tags: limits.event_tags,
            created_at_upper_limit: limits.ahead.as_secs(),
            auth_required: false,
            payment_required: false,
            restricted_writes: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> RelayInfo {
        RelayInfo {
            name: "Abide".into(),
            description: String::new(),
            pubkey: None,
            contact: None,
            icon: None,
            supported_nips: SUPPORTED_NIPS.into(),
            supported_grasps: vec!["GRASP-01".into()],
            repo_acceptance_criteria: "anyone".into(),
            curation: None,
            software: "https://git.example.org".into(),
            version: "0".into(),
            limitation: Limitation::from(&RelayLimits::default()),
        }
    }

    #[test]
    fn the_document_tells_the_bounds_and_what_is_on() {
        let value = serde_json::to_value(info()).unwrap();
        assert_eq!(value["limitation"]["max_message_length"], 1_048_576);
        assert_eq!(value["limitation"]["max_subscriptions"], 500);
        assert_eq!(value["limitation"]["max_filters"], 20);
        assert_eq!(value["limitation"]["max_limit"], 500);
        assert_eq!(value["limitation"]["created_at_upper_limit"], 900);
        assert_eq!(value["supported_grasps"][0], "GRASP-01");
        assert_eq!(value["supported_nips"].as_array().unwrap().len(), 9);
    }

    #[test]
    fn curation_is_there_only_where_something_is_left_out() {
        assert!(serde_json::to_value(info()).unwrap().get("curation").is_none());
        let curating = RelayInfo { curation: Some("no spam".into()), ..info() };
        assert_eq!(serde_json::to_value(curating).unwrap()["curation"], "no spam");
    }
}
