//! What was said by nostr about a repository that a key governs: issues, patches, pull requests and what hangs on them.
//!
//! Only what the relay serves is shown, and only to repositories that the event itself names. [`mod@list`] and [`mod@show`]
//! read; [`mod@tell`] writes the domain events.

pub mod list;
pub mod show;
pub(crate) mod tell;

use crate::grasp::GraspSettings;
use crate::relay::readable;
use crate::{Fault, Forge};
use abide_nostr::git::{Announcement, Coordinate};
use abide_nostr::grasp::maintainers::{Model, maintainers};
use abide_nostr::{Event, PublicKey, kinds, nip19};
use abide_store::nostr_query::{self, Query};
use abide_store::repos::Repo;
use abide_store::{Conn, StoreError, nostr_events};
use std::collections::{BTreeMap, BTreeSet};

/// Announcements of one identifier that are looked at.
const ANNOUNCEMENTS: i64 = 500;

/// The kinds that say how far a thread is.
const STATUSES: [u16; 4] = [kinds::STATUS_OPEN, kinds::STATUS_APPLIED, kinds::STATUS_CLOSED, kinds::STATUS_DRAFT];

/// Who rules a repository.
#[derive(Debug, Clone)]
pub struct Governed {
    /// The key that announced it.
    pub owner: PublicKey,
    /// What that key calls it.
    pub identifier: String,
    /// Whose signature counts, the owner included.
    pub maintainers: BTreeSet<PublicKey>,
}

impl Governed {
    /// The owner as people write it.
    pub fn npub(&self) -> String {
        nip19::npub(&self.owner)
    }

    /// The maintainers as people write them, the owner first.
    pub fn maintainer_npubs(&self) -> Vec<String> {
        let others = self.maintainers.iter().filter(|key| **key != self.owner);
        std::iter::once(&self.owner).chain(others).map(nip19::npub).collect()
    }

    fn coordinate(&self) -> Coordinate {
        Coordinate::repo(self.owner, &self.identifier)
    }

    /// The key under which events that name the repository are filed.
    fn filed_under(&self) -> i64 {
        nostr_events::tag_key('a', &self.coordinate().to_string())
    }
}

/// Who rules a repository; `None` if accounts do.
pub async fn governed(forge: &Forge, repo: &Repo) -> Result<Option<Governed>, Fault> {
    Ok(governed_in(&mut *forge.store().read().await?, &forge.settings().grasp, repo).await?)
}

async fn governed_in(conn: &mut Conn, settings: &GraspSettings, repo: &Repo) -> Result<Option<Governed>, StoreError> {
    let (Some(npub), Some(identifier)) = (&repo.owner_npub, &repo.identifier) else { return Ok(None) };
    let Ok(owner) = nip19::parse_npub(npub) else { return Ok(None) };
    let mut kept = nostr_events::of_slot(conn, kinds::ANNOUNCEMENT, identifier, ANNOUNCEMENTS).await?;
    kept.extend(nostr_events::in_slot(conn, kinds::ANNOUNCEMENT, owner.as_bytes(), identifier).await?);
    let listed: BTreeMap<PublicKey, Vec<PublicKey>> = kept
        .iter()
        .filter(|found| !found.hidden)
        .filter_map(|found| readable(&found.json))
        .filter_map(|event| Announcement::parse(&event, &settings.limits).ok())
        .map(|announcement| (announcement.owner, announcement.maintainers))
        .collect();
    let maintainers = maintainers(owner, &listed, Model::Recursive, settings.maintainers);
    Ok(Some(Governed { owner, identifier: identifier.clone(), maintainers }))
}

/// The events that a query finds, the newest first, without the first `skip`.
async fn events(conn: &mut Conn, query: &Query, skip: usize, now: i64) -> Result<Vec<Event>, StoreError> {
    let places = nostr_query::places(conn, query, now).await?;
    let rows: Vec<i64> = places.iter().skip(skip).map(|place| place.n).collect();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut json = nostr_query::json_of(conn, &rows).await?;
    Ok(rows.iter().filter_map(|row| readable(&json.remove(row)?)).collect())
}

fn seconds(forge: &Forge) -> i64 {
    forge.clock().now().micros().div_euclid(1_000_000)
}
