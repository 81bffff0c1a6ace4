//! Details of a push: refs before and after, and the newest commits of branches.
//!
//! Everything is optional in rows of older versions; only repository and slug are left once a repository is removed.
//! Ref names and object ids are plain text, so that one that this version refuses does not hide the others.

use crate::{PushId, RefUpdate};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_id: Option<PushId>,
    /// Number of refs; `refs` may have less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refs: Option<Vec<PushedRef>>,
}

impl Push {
    pub fn refs(&self) -> &[PushedRef] {
        self.refs.as_deref().unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedRef {
    pub name: String,
    #[serde(default)]
    pub before: String,
    #[serde(default)]
    pub after: String,
    /// Newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<PushedCommit>,
}

impl PushedRef {
    /// `None` if the name or an object id is not valid.
    pub fn update(&self) -> Option<RefUpdate> {
        Some(RefUpdate { name: self.name.parse().ok()?, old: self.before.parse().ok()?, new: self.after.parse().ok()? })
    }

    pub fn is_created(&self) -> bool {
        is_zero(&self.before)
    }

    pub fn is_deleted(&self) -> bool {
        is_zero(&self.after)
    }
}

fn is_zero(oid: &str) -> bool {
    oid.bytes().all(|byte| byte == b'0')
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedCommit {
    pub id: String,
    pub tree: String,
    /// First line, cut.
    pub message: String,
    /// Time of the committer, in seconds.
    pub time: i64,
    pub author: Person,
    /// Only if it is not the author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committer: Option<Person>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    pub name: String,
    pub email: String,
}
