//! Nostr threads of a repository that a key governs: issues, patches, pull requests, and their comments and statuses.
//!
//! Only events that the relay serves are shown, and only in repositories that the event itself names. [`mod@list`] and
//! [`mod@show`] read; [`mod@emit`] writes the domain events. Strangers decide how much is stored, so rows are counted in bytes
//! before their text is read, and the status of a thread comes from columns (`store::nostr::statuses`).

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

/// Owner and maintainers of a repository that signed events govern.
#[derive(Debug, Clone)]
pub struct Governed {
    /// The key that announced it.
    pub owner: PublicKey,
    pub identifier: String,
    /// Keys of the maintainers, including the owner.
    pub maintainers: BTreeSet<PublicKey>,
}

impl Governed {
    /// Owner as npub.
    pub fn npub(&self) -> String {
        nip19::npub(&self.owner)
    }

    /// Maintainers as npubs, the owner first.
    pub fn maintainer_npubs(&self) -> Vec<String> {
        let others = self.maintainers.iter().filter(|key| **key != self.owner);
        std::iter::once(&self.owner).chain(others).map(nip19::npub).collect()
    }

    fn coordinate(&self) -> Coordinate {
        Coordinate::repo(self.owner, &self.identifier)
    }

    /// Index key of events that name the repository.
    fn filed_under(&self) -> i64 {
        nostr::events::tag_key('a', &self.coordinate().to_string())
    }

    /// Keys that may set the status of a thread.
    fn deciders(&self, author: PublicKey) -> BTreeSet<PublicKey> {
        self.maintainers.iter().copied().chain([author]).collect()
    }
}

/// Owner and maintainers of a repository; `None` if accounts govern it.
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

/// A stored status event, as the rules take it.
fn status_event(word: &Word) -> Option<StatusEvent> {
    Some(StatusEvent {
        id: EventId::from_byte_array(word.id),
        author: PublicKey::from_byte_array(word.pubkey),
        created_at: u64::try_from(word.created_at).unwrap_or(0),
        status: Status::of(word.kind)?,
        root: EventId::from_byte_array(word.root),
    })
}

/// Slot of the caller for expensive reads. It is held until the work ends.
async fn slot(forge: &Forge, caller: &Caller, bytes: i64) -> Result<Option<Arc<PoolSlot>>, Fault> {
    if bytes <= LITTLE {
        return Ok(None);
    }
    Ok(Some(Arc::new(browse::Shared::of(forge).heavy(caller.client()).await?)))
}

fn seconds(forge: &Forge) -> i64 {
    forge.clock().now().micros().div_euclid(1_000_000)
}
