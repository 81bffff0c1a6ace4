//! Details of events about a repository itself.
//!
//! Names and slugs are plain text: they are those of the time of the event, and the store may cut a long one.

use crate::repo::{Governance, Role, Visibility};
use crate::transfer::Status;
use crate::{RepoId, Timestamp, TransferId, UserId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoCreated {
    /// Full ref name.
    pub default_branch: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoForked {
    pub source_id: RepoId,
    /// Slug of the source.
    pub source: String,
    pub ref_count: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicsChanged {
    /// The topics afterwards.
    pub topics: Vec<String>,
}

/// A rename, or a restore, which may change the name. A restore under the same name has it twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameChange {
    pub old_name: String,
    pub new_name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archived {
    pub before: bool,
    pub after: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisibilityChanged {
    pub before: Visibility,
    pub after: Visibility,
}

/// A transfer offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    pub transfer_id: TransferId,
    /// Name of the owner at the time of the offer; `None` if the account is gone.
    pub from: Option<String>,
    pub from_id: UserId,
    /// Name of the recipient.
    pub to: Option<String>,
    pub to_id: UserId,
    /// Slug at the time of the offer.
    pub offered_as: String,
    pub expires_at: Timestamp,
    pub status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoSoftDeleted {
    /// Missing in rows of the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_until: Option<Timestamp>,
}

/// The event outlives the repository's row, so it has what readers would look up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoHardDeleted {
    pub snapshot: RepoSnapshot,
    /// Admins to notify. Missing in rows of the first version.
    #[serde(default)]
    pub admins: Vec<UserId>,
}

/// A repository's row without its description, which is removed with all other user text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoSnapshot {
    pub id: RepoId,
    pub slug: String,
    pub owner_id: UserId,
    pub name: String,
    pub visibility: Visibility,
    pub governance: Governance,
    pub default_branch: String,
    pub fork_of: Option<RepoId>,
    #[serde(default)]
    pub size_bytes: i64,
    #[serde(default)]
    pub star_count: i64,
    #[serde(default)]
    pub watcher_count: i64,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    pub pushed_at: Option<Timestamp>,
    pub archived_at: Option<Timestamp>,
    pub deleted_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedirectReleased {
    pub old_owner_id: UserId,
    pub old_name: String,
}

/// A role that was given, changed or taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleChange {
    pub user_id: UserId,
    pub user: String,
    pub before: Option<Role>,
    pub after: Option<Role>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncementPromoted {
    /// In hexadecimal.
    pub pubkey: String,
    pub identifier: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncementReplaced {
    /// Id of the new announcement, in hexadecimal.
    pub event: String,
}
