//! A repository row, and its names.

use crate::{Row, StoreError};
use abide_core::lifecycle::State;
use abide_core::names::RESERVED_REPO_NAMES;
use abide_core::policy::RepoFacts;
use abide_core::repo::{Governance, Role, Visibility};
use abide_core::{Handle, RefName, RepoId, RepoName, Timestamp, UserId, UserName};

/// All characters except the unreserved ones of RFC 3986.
const IN_ADDRESS: &percent_encoding::AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A repository row.
#[derive(Debug, Clone)]
pub struct Repo {
    pub id: RepoId,
    pub owner_id: UserId,
    /// `None` for an unclaimed nostr key.
    pub owner_name: Option<UserName>,
    /// The owner's nostr key.
    pub owner_npub: Option<String>,
    /// Identifier of a repository governed by signed states. Any text.
    pub identifier: Option<String>,
    pub name: RepoName,
    pub description: String,
    pub visibility: Visibility,
    /// Source of authority for pushes.
    pub governance: Governance,
    pub default_branch: RefName,
    /// Since when it is archived (read-only).
    pub archived_at: Option<Timestamp>,
    /// Since when it is soft-deleted.
    pub deleted_at: Option<Timestamp>,
    pub fork_of: Option<RepoId>,
    /// Even: refs are at rest. Odd: a push is moving them.
    pub refs_generation: i64,
    pub star_count: i64,
    pub watcher_count: i64,
    /// Bytes on disk, as last measured.
    pub size_bytes: i64,
    /// When refs last moved.
    pub pushed_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Role of the user that it was loaded for.
    pub role: Option<Role>,
}

/// Version of a repository's refs, and the branch that its HEAD names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefState {
    /// Even: refs are at rest. Odd: a push is moving them.
    pub generation: i64,
    pub default_branch: RefName,
}

impl RefState {
    pub(crate) fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self { generation: row.int("refs_generation")?, default_branch: row.parsed("default_branch")? })
    }
}

impl Repo {
    pub(crate) fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: RepoId::new(row.int("id")?),
            owner_id: UserId::new(row.int("owner_id")?),
            owner_name: row.opt_text("owner_name")?.map(UserName::from_stored),
            owner_npub: row.opt_text("owner_npub")?,
            identifier: row.opt_text("identifier")?,
            name: RepoName::from_stored(row.text("name")?),
            description: row.text("description")?,
            visibility: row.parsed("visibility")?,
            governance: row.parsed("governance")?,
            default_branch: row.parsed("default_branch")?,
            archived_at: row.opt_time("archived_at")?,
            deleted_at: row.opt_time("deleted_at")?,
            fork_of: row.opt_int("fork_of_repo_id")?.map(RepoId::new),
            refs_generation: row.int("refs_generation")?,
            star_count: row.int("star_count")?,
            watcher_count: row.int("watcher_count")?,
            size_bytes: row.int("size_bytes")?,
            pushed_at: row.opt_time("pushed_at")?,
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
            role: match row.opt_text("role")? {
                Some(_) => Some(row.parsed("role")?),
                None => None,
            },
        })
    }

    /// Facts for the policy.
    pub fn facts(&self) -> RepoFacts {
        RepoFacts {
            owner: self.owner_id,
            visibility: self.visibility,
            archived: self.archived_at.is_some(),
            deleted: self.deleted_at.is_some(),
        }
    }

    /// Whether it is served: it is not soft-deleted.
    pub fn is_live(&self) -> bool {
        self.facts().is_live()
    }

    pub fn is_archived(&self) -> bool {
        self.facts().is_archived()
    }

    pub fn is_private(&self) -> bool {
        self.facts().is_private()
    }

    /// Version of its refs and default branch when the row was read.
    pub fn ref_state(&self) -> RefState {
        RefState { generation: self.refs_generation, default_branch: self.default_branch.clone() }
    }

    /// State for the lifecycle.
    pub fn state(&self) -> State {
        State {
            visibility: self.visibility,
            archived_at: self.archived_at,
            deleted_at: self.deleted_at,
            governance: self.governance,
        }
    }

    /// Current `owner/name`. For an unclaimed key: `npub/identifier`, URL-encoded.
    pub fn slug(&self) -> String {
        match (&self.owner_name, &self.owner_npub) {
            (Some(owner), _) => format!("{owner}/{}", self.name),
            (None, Some(npub)) => address(npub, self.name.as_str(), self.identifier.as_deref()),
            (None, None) => format!("~{}/{}", self.owner_id, self.name),
        }
    }

    /// Name of the owner in URLs and lists.
    pub fn owner(&self) -> Option<Handle> {
        let key = || self.owner_npub.clone().map(Handle::from_stored);
        self.owner_name.clone().map(Handle::from).or_else(key)
    }

    /// Whether the URL by key uses the repository name: there is no identifier, or browsers or the router would misread
    /// it.
    pub fn goes_by_name(&self) -> bool {
        self.identifier.as_deref().is_none_or(|identifier| !fits_address(identifier))
    }

    /// `owner/name` for display, with a shortened key. Not a URL.
    pub fn shown(&self) -> String {
        let owner = self.owner().map_or_else(|| format!("~{}", self.owner_id), |owner| owner.shown().into_owned());
        format!("{owner}/{}", self.name)
    }

    /// URL-encoded `npub/identifier`, if signed states govern it.
    pub fn nostr_slug(&self) -> Option<String> {
        Some(format!("{}/{}", self.owner_npub.as_deref()?, encoded(self.identifier.as_deref()?)))
    }
}

fn encoded(identifier: &str) -> percent_encoding::PercentEncode<'_> {
    percent_encoding::utf8_percent_encode(identifier, IN_ADDRESS)
}

fn fits_address(identifier: &str) -> bool {
    !matches!(identifier, "." | "..") && !RESERVED_REPO_NAMES.contains(&identifier)
}

/// `owner/name` in a page URL. Only repositories of an owner without a username have an identifier, which is
/// URL-encoded. An identifier that browsers or the router would misread is replaced by the name.
pub(crate) fn address(owner: &str, name: &str, identifier: Option<&str>) -> String {
    match identifier.filter(|identifier| fits_address(identifier)) {
        Some(identifier) => format!("{owner}/{}", encoded(identifier)),
        None => format!("{owner}/{name}"),
    }
}
