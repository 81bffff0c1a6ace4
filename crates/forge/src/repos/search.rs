//! Repository search. Repositories that the caller may not read are neither found nor counted.

use crate::open::viewer;
use crate::{Caller, Fault, Forge};
use abide_core::InputError;
use abide_core::search::{InvalidSearch, Terms};
use abide_macros::boxed;
use abide_store::StoreError;
use abide_store::accounts::users;
use abide_store::repos::search::{self, Search};
use abide_store::repos::{Page, Repo};

pub use abide_core::search::Sort;
pub use abide_store::repos::search::MAX_TOTAL;

/// A search query.
#[derive(Debug, Clone)]
pub struct Query {
    /// As typed: words, and optionally `topic:` and `user:`.
    pub text: String,
    /// Only repositories with this topic.
    pub topic: Option<String>,
    /// Only repositories of this owner.
    pub owner: Option<String>,
    pub sort: Sort,
}

/// Why the search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The text breaks a rule.
    #[error(transparent)]
    Invalid(#[from] InvalidSearch),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for SearchError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Invalid(_) => Some("q"),
            Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for SearchError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// A page of the matching repositories that the caller may read, and their number (counted up to [`MAX_TOTAL`]). Each
/// word is searched in the name, the owner's name, the description and the topics.
#[boxed]
pub async fn search(
    forge: &Forge,
    caller: &Caller,
    query: &Query,
    page: Page,
) -> Result<(Vec<Repo>, i64), SearchError> {
    let mut terms = Terms::parse(&query.text)?;
    if let Some(topic) = &query.topic {
        terms.only_topic(topic);
    }
    if let Some(owner) = &query.owner {
        terms.only_owner(owner);
    }
    let _slot = forge.search_slot(caller.client()).await.map_err(Fault::from)?;
    let mut conn = forge.store().read().await?;
    let owner = match &terms.owner {
        None => None,
        Some(name) => match users::by_name(&mut conn, name).await? {
            Some(user) => Some(user.id),
            None => return Ok((Vec::new(), 0)),
        },
    };
    if terms.impossible {
        return Ok((Vec::new(), 0));
    }
    let scan = forge.settings().repos.search_scan;
    let search = Search { words: terms.words, topic: terms.topic, owner, sort: query.sort, scan };
    Ok(search::find(&mut conn, &search, viewer(caller), page).await?)
}
