//! Events as rows.

use abide_nostr::event::{self, Slot};
use abide_nostr::filter::event_tags;
use abide_nostr::{Event, Filter};
use abide_store::nostr_events::{NewEvent, tag_key};
use abide_store::nostr_query::Query;

/// An event as it is stored.
pub fn to_record(event: &Event) -> NewEvent {
    let mut tags: Vec<i64> = event_tags(event).map(|(letter, value)| tag_key(letter.as_char(), value)).collect();
    tags.sort_unstable();
    tags.dedup();
    NewEvent {
        id: event.id.to_bytes(),
        pubkey: event.pubkey.to_bytes(),
        kind: event.kind.as_u16(),
        created_at: seconds(event.created_at.as_secs()),
        slot: event::slot(event).map(|slot| slot.identifier),
        expires_at: event::expiration(event).map(seconds),
        json: event::to_json(event),
        tags,
    }
}

/// A filter as it is looked up.
pub(super) fn to_query(filter: &Filter) -> Query {
    Query {
        ids: filter.ids.as_ref().map(|ids| ids.iter().map(|id| id.to_bytes()).collect()),
        authors: filter.authors.as_ref().map(|authors| authors.iter().map(|author| author.to_bytes()).collect()),
        kinds: filter.kinds.as_ref().map(|kinds| kinds.iter().copied().collect()),
        tags: filter
            .tags
            .iter()
            .map(|(letter, wanted)| wanted.iter().map(|value| tag_key(letter.as_char(), value)).collect())
            .collect(),
        since: filter.since.map(seconds),
        until: filter.until.map(seconds),
        limit: i64::try_from(filter.limit).unwrap_or(i64::MAX),
    }
}

/// What deleting this event is noted under: its id, and the slot that it takes.
pub(super) fn targets(event: &Event) -> (String, Option<String>) {
    let slot = |Slot { kind, author, identifier }| format!("a:{kind}:{author}:{identifier}");
    (format!("e:{}", event.id), event::slot(event).map(slot))
}

/// Seconds as both databases can hold them.
fn seconds(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}
