//! A repository as its row tells it, and what it is called where.

use crate::{Row, StoreError};
use abide_core::lifecycle::State;
use abide_core::names::RESERVED_REPO_NAMES;
use abide_core::policy::RepoFacts;
use abide_core::repo::{Governance, Role, Visibility};
use abide_core::{Handle, RefName, RepoId, RepoName, Timestamp, UserId, UserName};

/// Everything but what RFC 3986 leaves alone.
const IN_ADDRESS: &percent_encoding::AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A repository as its row tells it.
#[derive(Debug, Clone)]
pub struct Repo {
    /// For life.
    pub id: RepoId,
    /// Whose it is.
    pub owner_id: UserId,
    /// What the owner is called; `None` for an unclaimed nostr key.
    pub owner_name: Option<UserName>,
    /// The owner's key in nostr, as people write it.
    pub owner_npub: Option<String>,
    /// What its key calls it, if signed states rule it. Any text.
    pub identifier: Option<String>,
    /// What it is called.
    pub name: RepoName,
    /// What it says about itself.
    pub description: String,
    /// Who may read it without a role.
    pub visibility: Visibility,
    /// Where the authority to push comes from.
    pub governance: Governance,
    /// What clones check out.
    pub default_branch: RefName,
    /// Since when it is read-only.
    pub archived_at: Option<Timestamp>,
    /// Since when it is soft-deleted.
    pub deleted_at: Option<Timestamp>,
    /// What it was forked from.
    pub fork_of: Option<RepoId>,
    /// Even: refs are at rest. Odd: someone is moving them.
    pub refs_generation: i64,
    /// How many star it.
    pub star_count: i64,
    /// How many watch it.
    pub watcher_count: i64,
    /// Bytes on disk, as last measured.
    pub size_bytes: i64,
    /// When refs last moved.
    pub pushed_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The role of the user it was loaded for.
    pub role: Option<Role>,
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

    /// What the policy needs to know.
    pub fn facts(&self) -> RepoFacts {
        RepoFacts {
            owner: self.owner_id,
            visibility: self.visibility,
            archived: self.archived_at.is_some(),
            deleted: self.deleted_at.is_some(),
        }
    }

    /// What the lifecycle needs to know.
    pub fn state(&self) -> State {
        State {
            visibility: self.visibility,
            archived_at: self.archived_at,
            deleted_at: self.deleted_at,
            governance: self.governance,
        }
    }

    /// `owner/name` right now. Of a key that nobody has claimed yet: `npub/identifier`, safe in an address.
    pub fn slug(&self) -> String {
        match (&self.owner_name, &self.owner_npub) {
            (Some(owner), _) => format!("{owner}/{}", self.name),
            (None, Some(npub)) => address(npub, self.name.as_str(), self.identifier.as_deref()),
            (None, None) => format!("~{}/{}", self.owner_id, self.name),
        }
    }

    /// What the owner goes by.
    pub fn owner(&self) -> Option<Handle> {
        let key = || self.owner_npub.clone().map(Handle::from_stored);
        self.owner_name.clone().map(Handle::from).or_else(key)
    }

    /// Whether the address by key holds the name: there is no identifier, or browsers or the router would take it for
    /// something else.
    pub fn goes_by_name(&self) -> bool {
        self.identifier.as_deref().is_none_or(|identifier| !fits_address(identifier))
    }

    /// `owner/name` as people read it, with a key in short. No address.
    pub fn shown(&self) -> String {
        let owner = self.owner().map_or_else(|| format!("~{}", self.owner_id), |owner| owner.shown().into_owned());
        format!("{owner}/{}", self.name)
    }

    /// `npub/identifier`, safe in an address, if signed states rule it.
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

/// `owner/name` in the address of a page. An identifier, which only a repository of an owner without a name is called
/// by, stands there encoded; one that browsers or the router take for something else gives way to the name.
pub(crate) fn address(owner: &str, name: &str, identifier: Option<&str>) -> String {
    match identifier.filter(|identifier| fits_address(identifier)) {
        Some(identifier) => format!("{owner}/{}", encoded(identifier)),
        None => format!("{owner}/{name}"),
    }
}
