//! Removes the events that the key of a deleted account signed, and records them as deleted, so that another relay
//! cannot send them again.
//!
//! Announcements and states of repositories in their grace period are hidden. They stay for as long as the repository
//! can be restored; purging the repository removes them.

use super::Halt;
use super::deletion::{self, After};
use crate::relay::readable;
use crate::{Fault, Forge};
use abide_nostr::event::slot;
use abide_nostr::{Event, EventId, PublicKey, kinds};
use abide_store::nostr::events::{Found, deleted};
use abide_store::nostr::{self, purgatory};
use abide_store::{StoreError, Tx};

/// Events that one transaction removes.
const BATCH: i64 = 100;
/// Hidden events that are recorded as deleted; more than the repositories of an account can have.
const HIDDEN: i64 = 10_000;

/// Removes all events that a key signed, in batches.
pub(crate) async fn erase(forge: &Forge, author: PublicKey) -> Result<(), Fault> {
    loop {
        let written = forge.store().write(author, |tx, author| Box::pin(write(tx, *author))).await;
        let after = match written {
            Ok(after) => after,
            Err(Halt::Refused(refusal)) => return Err(Fault::Internal(refusal.reason.into_owned())),
            Err(Halt::Store(error)) => return Err(error.into()),
        };
        let more = after.covered > 0;
        after.finish(forge).await?;
        if !more {
            return Ok(());
        }
    }
}

async fn write(tx: &mut Tx, author: PublicKey) -> Result<After, Halt> {
    let mut after = After::default();
    for id in purgatory::ids_of(tx, author.as_bytes(), BATCH).await? {
        note_id(tx, author, &id).await?;
        deletion::waiting(tx, &author, &EventId::from_byte_array(id), &mut after).await?;
    }
    for found in nostr::events::served_of(tx, author.as_bytes(), BATCH).await? {
        stored(tx, author, &found, &mut after).await?;
    }
    if after.covered == 0 {
        for found in nostr::events::hidden_of(tx, author.as_bytes(), HIDDEN).await? {
            note_id(tx, author, &found.id).await?;
        }
    }
    Ok(after)
}

async fn stored(tx: &mut Tx, author: PublicKey, found: &Found, after: &mut After) -> Result<(), Halt> {
    let Some(event) = readable(&found.json) else {
        nostr::events::remove(tx, &found.id).await?;
        after.covered += 1;
        return Ok(());
    };
    if rules_a_repository(tx, &event).await? {
        // The operator restored the repository in the meantime.
        return Ok(());
    }
    note_id(tx, author, &found.id).await?;
    if let Some(slot) = slot(&event) {
        // Older versions at the same coordinate have other ids.
        let target = format!("a:{}:{}:{}", found.kind, author.to_hex(), slot.identifier);
        let at = seconds(tx).max(found.created_at);
        deleted::note(tx, author.as_bytes(), &target, at, &found.id).await?;
    }
    after.covered += 1;
    deletion::remove(tx, &event, after).await
}

async fn rules_a_repository(tx: &mut Tx, event: &Event) -> Result<bool, StoreError> {
    let Some(slot) = slot(event).filter(|slot| slot.kind == kinds::ANNOUNCEMENT) else { return Ok(false) };
    Ok(nostr::repos::by_coordinate(tx, event.pubkey.as_bytes(), &slot.identifier, None).await?.is_some())
}

async fn note_id(tx: &mut Tx, author: PublicKey, id: &[u8; 32]) -> Result<(), StoreError> {
    let (target, at) = (format!("e:{}", EventId::from_byte_array(*id).to_hex()), seconds(tx));
    deleted::note(tx, author.as_bytes(), &target, at, id).await
}

fn seconds(tx: &Tx) -> i64 {
    tx.now().micros() / 1_000_000
}
