//! Nostr threads of a repository that a key governs: issues, patches, pull requests, and their comments and statuses.
//!
//! Only what the relay serves is shown, and only to repositories that the event itself names. [`mod@list`] and [`mod@show`]
//! read; [`mod@emit`] writes the domain events. Strangers decide how much there is, so rows are counted in bytes before their
//! text is read, and how far a thread is comes from columns (`store::nostr_statuses`).

pub(crate) mod emit;
pub mod list;
pub mod show;

use crate::circle::{Circle, Counting};
use crate::relay::LITTLE;
use crate::{Caller, Fault, Forge, GraspSettings, browse};
use abide_git::PoolSlot;
use abide_macros::boxed;
use abide_nostr::git::{Coordinate, Status, StatusEvent};
use abide_nostr::{EventId, PublicKey, nip19};
use abide_store::nostr::statuses::Word;
use abide_store::repos::Repo;
use abide_store::{Conn, StoreError, nostr};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Who rules a repository.
#[derive(Debug, Clone)]
pub struct Governed {
    /// The key that announced it.
    pub owner: PublicKey,
    pub identifier: String,
    /// Keys whose signature counts, the owner included.
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
        nostr::events::tag_key('a', &self.coordinate().to_string())
    }

    /// The keys whose word on the status of a thread counts.
    fn deciders(&self, author: PublicKey) -> BTreeSet<PublicKey> {
        self.maintainers.iter().copied().chain([author]).collect()
    }
}

/// Who rules a repository; `None` if accounts do.
#[boxed]
pub async fn governed(forge: &Forge, repo: &Repo) -> Result<Option<Governed>, Fault> {
    Ok(governed_in(&mut *forge.store().read().await?, &forge.settings().grasp, repo).await?)
}

async fn governed_in(conn: &mut Conn, settings: &GraspSettings, repo: &Repo) -> Result<Option<Governed>, StoreError> {
    let (Some(npub), Some(identifier)) = (&repo.owner_npub, &repo.identifier) else { return Ok(None) };
    let Ok(owner) = nip19::parse_npub(npub) else { return Ok(None) };
    let circle = Circle::load(conn, settings, identifier, owner, Counting::Served).await?;
    Ok(Some(Governed { owner, identifier: identifier.clone(), maintainers: circle.members }))
}

/// A word on a status as the rules know it.
fn status_event(word: &Word) -> Option<StatusEvent> {
    Some(StatusEvent {
        id: EventId::from_byte_array(word.id),
        author: PublicKey::from_byte_array(word.pubkey),
        created_at: u64::try_from(word.created_at).unwrap_or(0),
        status: Status::of(word.kind)?,
        root: EventId::from_byte_array(word.root),
    })
}

/// A slot of the caller among what takes a while, where more than a little is read. It stays with the work.
async fn slot(forge: &Forge, caller: &Caller, bytes: i64) -> Result<Option<Arc<PoolSlot>>, Fault> {
    if bytes <= LITTLE {
        return Ok(None);
    }
    Ok(Some(Arc::new(browse::Shared::of(forge).heavy(caller.client()).await?)))
}

fn seconds(forge: &Forge) -> i64 {
    forge.clock().now().micros().div_euclid(1_000_000)
}
