//! Events that their authors deleted are not accepted again.

use abide_nostr::Event;
use abide_nostr::event::{self, Slot};
use abide_nostr::grasp::{Prefix, Refusal};
use abide_store::nostr::events::deleted;
use abide_store::{Conn, StoreError};

/// The targets under which a deletion of this event is recorded: its id, and its slot.
pub(crate) fn targets(event: &Event) -> (String, Option<String>) {
    let slot = |Slot { kind, author, identifier }| format!("a:{kind}:{author}:{identifier}");
    (format!("e:{}", event.id), event::slot(event).map(slot))
}

/// Whether the author deleted this event: by its id, or its slot at the event's time or later.
pub(crate) async fn is_deleted(conn: &mut Conn, event: &Event) -> Result<bool, StoreError> {
    let author = event.pubkey.to_bytes();
    let (id, slot) = targets(event);
    if deleted::at(conn, &author, &id).await?.is_some() {
        return Ok(true);
    }
    let Some(slot) = slot else { return Ok(false) };
    let until = deleted::at(conn, &author, &slot).await?;
    Ok(until.is_some_and(|until| event.created_at.as_secs() <= u64::try_from(until).unwrap_or(0)))
}

/// The answer to a deleted event.
pub(crate) fn refusal() -> Refusal {
    Refusal::new(Prefix::Blocked, "this event was deleted by its author")
}
