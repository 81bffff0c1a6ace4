//! The JSON of an event in the log: the details of its kind, and for events of a repository the names of that time.

use super::{Kind, Payload, Push};
use crate::{RepoId, UserId};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The stored JSON of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    pub repo: RepoThen,
    pub payload: Payload,
}

/// The repository of an event when the event was written: a reader may come after a rename, a transfer or a removal.
/// Empty for events of accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoThen {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_id: Option<RepoId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<UserId>,
}

/// A row of the log that this version cannot read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("the kind {0:?} is not known to this version")]
    Kind(String),
    #[error("cannot read the payload of {kind}: {error}")]
    Payload { kind: Kind, error: serde_json::Error },
}

impl Body {
    /// Reads a row of the log. Keys that this version does not know are ignored.
    pub fn parse(kind: &str, json: &str) -> Result<Self, Unreadable> {
        let kind: Kind = kind.parse().map_err(|_| Unreadable::Kind(kind.chars().take(40).collect()))?;
        let unreadable = |error| Unreadable::Payload { kind, error };
        let repo = serde_json::from_str(json).map_err(unreadable)?;
        Ok(Self { repo, payload: Payload::parse(kind, json).map_err(unreadable)? })
    }

    /// The JSON to store. Keys are sorted, also where `serde_json` is built with `preserve_order`.
    pub fn to_json(&self) -> Json {
        let mut json = self.payload.details();
        let repo = serde_json::to_value(&self.repo).expect("the names of a repository are JSON");
        if let (Json::Object(json), Json::Object(repo)) = (&mut json, repo) {
            json.extend(repo);
        }
        json.sort_all_objects();
        json
    }

    /// Payload of a push once its repository is removed: no ref, commit, author or message.
    pub fn forgotten_push(repo: RepoId, slug: String) -> Self {
        let repo = RepoThen { repo_id: Some(repo), slug: Some(slug), owner_id: None };
        Self { repo, payload: Payload::Push(Push::default()) }
    }
}
