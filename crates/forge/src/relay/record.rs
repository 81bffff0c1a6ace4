//! Events as rows.

use crate::Fault;
use crate::blocking::blocking;
use abide_nostr::event::{self, EventError};
use abide_nostr::filter::event_tags;
use abide_nostr::git::{Coordinate, StatusEvent};
use abide_nostr::{Event, Filter, RelayLimits, parse_event};
use abide_store::nostr::events::{NewEvent, tag_key};
use abide_store::nostr::query::Query;

/// The row of an event.
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
        status_of: StatusEvent::parse(event).ok().map(|status| status.root.to_bytes()),
    }
}

/// Parses a stored event. It was checked on arrival, so limits that were lowered since do not apply.
pub(crate) fn from_record(json: &str) -> Result<Event, EventError> {
    let most = usize::MAX;
    parse_event(json, &RelayLimits { event_bytes: most, state_bytes: most, event_tags: most, ..RelayLimits::default() })
}

/// As [`from_record`], but logs and skips an event that cannot be parsed.
pub(crate) fn readable(json: &str) -> Option<Event> {
    from_record(json).inspect_err(|error| tracing::warn!(%error, "cannot read a stored event")).ok()
}

/// JSON up to this size is parsed on the async thread.
pub(crate) const LITTLE: i64 = 64 << 10;

/// Parses events with `bytes` bytes of JSON. More than [`LITTLE`] is parsed on the blocking pool, so that connections
/// do not wait for it.
pub(crate) async fn apart<T: Send + 'static>(
    bytes: i64,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    if bytes <= LITTLE {
        return Ok(read());
    }
    blocking("reading events", read).await
}

/// Total bytes of texts.
pub(crate) fn bytes_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> i64 {
    texts.into_iter().map(|text| i64::try_from(text.len()).unwrap_or(i64::MAX)).fold(0, i64::saturating_add)
}

/// The keys of tags that name this event: by its id, or by its coordinate.
pub(crate) fn named_by(event: &Event) -> Vec<i64> {
    let id = event.id.to_hex();
    let by_id = ['e', 'E', 'q'].map(|letter| tag_key(letter, &id));
    let slot = event::slot(event).map(|slot| Coordinate::from(slot).to_string());
    let by_slot = slot.map(|slot| ['a', 'A', 'q'].map(|letter| tag_key(letter, &slot)));
    by_id.into_iter().chain(by_slot.into_iter().flatten()).collect()
}

/// The store query for a filter.
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

/// Seconds within the range of both databases.
fn seconds(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}
