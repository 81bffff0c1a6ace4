//! Finds a repository for the operator, whatever its state.

use crate::{Fault, Forge};
use abide_core::{RepoId, RepoName, UserName};
use abide_macros::boxed;
use abide_nostr::nip19;
use abide_store::accounts::user_keys;
use abide_store::repos::{self, Repo, Viewer};
use abide_store::{Conn, StoreError, nostr};
use percent_encoding::percent_decode_str;

/// Maximum number of deleted repositories with one name that an answer lists.
const NAMED: i64 = 20;

/// Why no single repository was found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No repository matches.
    #[error("repository {0} not found")]
    Nothing(String),
    /// Several deleted repositories had this name.
    #[error("several deleted repositories had the name {slug}; their ids are {}", in_words(ids))]
    Several {
        /// The requested slug.
        slug: String,
        /// Ids of the repositories, latest first.
        ids: Vec<RepoId>,
    },
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<StoreError> for FindError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

fn in_words(ids: &[RepoId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Preference for a name that both a live and a deleted repository have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meant {
    Live,
    Deleted,
}

/// The repository with this id or slug. A deleted repository is found by slug while no other deleted one has the same
/// slug.
#[boxed]
pub async fn for_operator(forge: &Forge, text: &str, meant: Meant) -> Result<Repo, FindError> {
    let mut conn = forge.store().read().await?;
    let nothing = || FindError::Nothing(text.to_owned());
    if let Ok(id) = text.parse::<RepoId>() {
        return repos::by_id(&mut conn, id, None).await?.ok_or_else(nothing);
    }
    if let Some((npub, name)) = text.split_once('/').filter(|(owner, _)| owner.starts_with("npub1")) {
        return by_key(&mut conn, npub, name).await?.ok_or_else(nothing);
    }
    let (owner, name) = slug(text).ok_or_else(nothing)?;
    let everything = Viewer { user: None, reads_everything: true };
    let live = repos::by_slug(&mut conn, &owner, &name, everything).await?;
    let deleted = repos::deleted_by_slug(&mut conn, &owner, &name, NAMED).await?;
    match (live, deleted.as_slice()) {
        (Some(live), []) => Ok(live),
        (Some(live), _) if meant == Meant::Live => Ok(live),
        (_, [only]) => Ok(only.clone()),
        (None, []) => Err(nothing()),
        (_, several) => {
            Err(FindError::Several { slug: text.to_owned(), ids: several.iter().map(|repo| repo.id).collect() })
        }
    }
}

/// The repository that a key announced, by its percent-encoded identifier or by its name.
async fn by_key(conn: &mut Conn, npub: &str, name: &str) -> Result<Option<Repo>, StoreError> {
    let Ok(key) = nip19::parse_npub(npub) else { return Ok(None) };
    let identifier = percent_decode_str(name).decode_utf8_lossy();
    match (nostr::repos::by_coordinate(conn, key.as_bytes(), &identifier, None).await?, name.parse()) {
        (None, Ok(name)) => user_keys::repo_by_name(conn, npub, &name, None).await,
        (found, _) => Ok(found),
    }
}

fn slug(text: &str) -> Option<(UserName, RepoName)> {
    let (owner, name) = text.split_once('/')?;
    Some((owner.parse().ok()?, name.parse().ok()?))
}
