//! Signed events, stored as sent.
//!
//! Events that replace each other share a slot, which holds the winner: the latest `created_at`, and within one second
//! the lowest id. Deletions are in [`deleted`]; queries are in [`crate::nostr::query`].

pub use crate::nostr::deleted;

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Columns of [`Found`].
macro_rules! columns {
    () => {
        "n, event_id, pubkey, kind, created_at, hidden, json"
    };
}

/// Attempts to write a slot under concurrent writes.
const TRIES: usize = 8;

/// Longest text that an index stores unhashed.
const LONGEST_KEY: usize = 1200;

/// Expired events.
macro_rules! over {
    () => {
        "FROM nostr_events WHERE expires_at <= $1 AND kind NOT IN (30617, 30618) ORDER BY expires_at LIMIT $2"
    };
}

/// Returns expired PR events, because their refs must be removed.
macro_rules! pr_event {
    () => {
        "RETURNING CASE WHEN kind IN (1617, 1618, 1619) THEN json END AS pr_event"
    };
}

/// The rows of a slot's name, the shortest first, within a number of bytes.
macro_rules! shortest {
    () => {
        "SELECT n FROM (SELECT n, sum(octet_length(json)) OVER (ORDER BY octet_length(json), n) AS bytes
                FROM nostr_events WHERE kind = $1 AND slot = $2 ORDER BY octet_length(json), n LIMIT $3) weighed
            WHERE bytes <= $4"
    };
}

/// The rows of a slot's name of some authors, those that came first at the front, with the bytes so far.
macro_rules! earliest {
    () => {
        "SELECT n FROM (SELECT n, sum(octet_length(json)) OVER (ORDER BY n) AS bytes
            FROM nostr_events WHERE kind = $1 AND slot = $2 AND pubkey "
    };
}

statements! {
    INSERT = "INSERT INTO nostr_events
            (event_id, pubkey, kind, created_at, slot, expires_at, hidden, json, stored_at, status_of)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING RETURNING n";
    /// Events without a slot, from one list; events that already exist are not returned.
    INSERT_MANY = "INSERT INTO nostr_events (event_id, pubkey, kind, created_at, expires_at, json, stored_at, status_of) ",
        sqlite "SELECT unhex(value ->> 'id'), unhex(value ->> 'pubkey'), value ->> 'kind', value ->> 'at',
                value ->> 'until', value ->> 'json', $2, unhex(value ->> 'status_of')
            FROM json_each($1) WHERE true ON CONFLICT DO NOTHING RETURNING n, event_id",
        postgres "SELECT decode(id, 'hex'), decode(pubkey, 'hex'), kind, at, until, json, $2, decode(status_of, 'hex')
            FROM json_to_recordset(CAST(CAST($1 AS TEXT) AS JSON))
                AS r (id TEXT, pubkey TEXT, kind BIGINT, at BIGINT, until BIGINT, json TEXT, status_of TEXT)
            ON CONFLICT DO NOTHING RETURNING n, event_id";
    /// Rows of key, time and event.
    INSERT_TAGS = "INSERT INTO nostr_tags (key, created_at, n) ",
        sqlite "SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each($1)",
        postgres "SELECT CAST(value ->> 0 AS BIGINT), CAST(value ->> 1 AS BIGINT), CAST(value ->> 2 AS BIGINT)
            FROM json_array_elements(CAST(CAST($1 AS TEXT) AS JSON))";
    BY_ID = concat!("SELECT ", columns!(), " FROM nostr_events WHERE event_id = $1");
    IN_SLOT = concat!("SELECT ", columns!(), " FROM nostr_events
        WHERE kind = $1 AND pubkey = $2 AND slot = $3");
    HOLDER = "SELECT n, event_id, created_at, hidden FROM nostr_events
        WHERE kind = $1 AND pubkey = $2 AND slot = $3", postgres " FOR UPDATE";
    /// The shortest $3, as many of them as have no more than $4 bytes together: long ones take no room from others. Bytes are
    /// counted before any text is read.
    OF_SLOT = concat!("SELECT ", columns!(), " FROM nostr_events WHERE n "),
        sqlite concat!("IN (", shortest!(), ") ORDER BY n"),
        postgres concat!("= ANY (ARRAY (", shortest!(), ")) ORDER BY n");
    /// Without their texts.
    HIDDEN_OF_SLOT = "SELECT event_id, pubkey FROM nostr_events
        WHERE kind = $1 AND slot = $2 AND hidden ORDER BY n LIMIT $3";
    /// Of some authors, as many as fit into $4 bytes together.
    OF_SLOT_BY = concat!("SELECT ", columns!(), " FROM nostr_events WHERE n "),
        sqlite concat!("IN (", earliest!(), "IN (SELECT unhex(value) FROM json_each($3))) weighed
            WHERE bytes <= $4) ORDER BY n"),
        postgres concat!("= ANY (ARRAY (", earliest!(), "= ANY (ARRAY (
                SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($3 AS TEXT) AS JSON))))) weighed
            WHERE bytes <= $4)) ORDER BY n");
    KNOWN = "SELECT event_id FROM nostr_events WHERE event_id ",
        sqlite "IN (SELECT unhex(value) FROM json_each($1))",
        postgres "= ANY (ARRAY (SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))";
    SERVED_OF = concat!("SELECT ", columns!(), " FROM nostr_events
        WHERE pubkey = $1 AND NOT hidden ORDER BY created_at LIMIT $2");
    HIDDEN_OF = concat!("SELECT ", columns!(), " FROM nostr_events
        WHERE pubkey = $1 AND hidden ORDER BY created_at LIMIT $2");
    REMOVE_ROW = "DELETE FROM nostr_events WHERE n = $1";
    REMOVE = "DELETE FROM nostr_events WHERE event_id = $1";
    SET_HIDDEN = "UPDATE nostr_events SET hidden = $2 WHERE event_id = $1 AND hidden <> $2";
    /// Removes expired events, a limited number at a time. Announcements and states stay, but are not served:
    /// repositories depend on them until newer ones arrive.
    EXPIRE = "DELETE FROM nostr_events WHERE n ",
        sqlite concat!("IN (SELECT n ", over!(), ") ", pr_event!()),
        postgres concat!("= ANY (ARRAY (SELECT n ", over!(), ")) ", pr_event!());
}

/// An event to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    pub id: [u8; 32],
    pub pubkey: [u8; 32],
    pub kind: u16,
    /// The author's time, in seconds.
    pub created_at: i64,
    /// The `d` identifier of an addressable event, empty for a replaceable one, `None` for all others.
    pub slot: Option<String>,
    /// Expiration time in seconds.
    pub expires_at: Option<i64>,
    /// As sent.
    pub json: String,
    /// Distinct [`tag_key`]s of the single-letter tags.
    pub tags: Vec<i64>,
    /// The event that it is a status of, if it is one.
    pub status_of: Option<[u8; 32]>,
}

/// Result of storing an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Stored; an older event of its slot was removed.
    New,
    /// It already exists, hidden or not.
    Duplicate,
    /// A newer event holds its slot.
    Older,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Row number, ascending in order of arrival.
    pub n: i64,
    pub id: [u8; 32],
    pub pubkey: [u8; 32],
    pub kind: u16,
    /// The author's time, in seconds.
    pub created_at: i64,
    /// Whether it is stored but not served.
    pub hidden: bool,
    /// As sent.
    pub json: String,
}

impl Found {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            n: row.int("n")?,
            id: fixed(row, "event_id")?,
            pubkey: fixed(row, "pubkey")?,
            kind: u16::try_from(row.int("kind")?)
                .map_err(|error| StoreError::Unreadable { column: "kind", reason: error.to_string() })?,
            created_at: row.int("created_at")?,
            hidden: row.bool("hidden")?,
            json: row.text("json")?,
        })
    }
}

/// Index key of a single-letter tag. Two tags may share a key, so results must be checked.
pub fn tag_key(letter: char, value: &str) -> i64 {
    let mut hash = Sha256::new();
    hash.update(letter.encode_utf8(&mut [0; 4]).as_bytes());
    hash.update(value.as_bytes());
    let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = hash.finalize().into();
    i64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// Text in a form that both engines can index: a long text, or one with a NUL, is replaced by its hash.
pub(crate) fn indexed(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST_KEY && !text.contains('\0') && !text.starts_with('\u{1}') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("\u{1}{}", hex::encode(Sha256::digest(text))))
}

/// Ids or keys as one parameter.
pub(crate) fn hexadecimal_list(list: &[[u8; 32]]) -> String {
    Json::from(list.iter().map(hex::encode).collect::<Vec<_>>()).to_string()
}

pub(crate) fn fixed(row: &Row, column: &'static str) -> Result<[u8; 32], StoreError> {
    row.bytes(column)?
        .try_into()
        .map_err(|bytes: Vec<u8>| StoreError::Unreadable { column, reason: format!("{} bytes", bytes.len()) })
}

/// Stores an event, replacing an older one in its slot. The new event inherits whether the slot is hidden.
pub async fn insert(tx: &mut Tx, event: &NewEvent) -> Result<Kept, StoreError> {
    for _ in 0..TRIES {
        if tx.one(&BY_ID, params![&event.id[..]]).await?.is_some() {
            return Ok(Kept::Duplicate);
        }
        let mut hidden = false;
        if let Some(slot) = &event.slot {
            let values = params![i64::from(event.kind), &event.pubkey[..], &*indexed(slot)];
            if let Some(holder) = tx.one(&HOLDER, values).await? {
                if (holder.int("created_at")?, Reverse(fixed(&holder, "event_id")?))
                    > (event.created_at, Reverse(event.id))
                {
                    return Ok(Kept::Older);
                }
                hidden = holder.bool("hidden")?;
                tx.execute(&REMOVE_ROW, params![holder.int("n")?]).await?;
            }
        }
        if let Some(n) = insert_row(tx, event, hidden).await? {
            insert_tags(tx, &[(n, event)]).await?;
            return Ok(Kept::New);
        }
        // A concurrent writer took the slot or stored the event in between; try again.
    }
    Err(StoreError::Conflict(sqlx::Error::Protocol("a slot is written by many at once".to_owned())))
}

async fn insert_row(tx: &mut Tx, event: &NewEvent, hidden: bool) -> Result<Option<i64>, StoreError> {
    let slot = event.slot.as_deref().map(|slot| indexed(slot).into_owned());
    let stored_at = tx.now();
    let values = params![
        &event.id[..],
        &event.pubkey[..],
        i64::from(event.kind),
        event.created_at,
        slot,
        event.expires_at,
        hidden,
        &event.json,
        stored_at,
        event.status_of.as_ref().map(|root| root.to_vec())
    ];
    tx.one(&INSERT, values).await?.map(|row| row.int("n")).transpose()
}

async fn insert_tags(tx: &mut Tx, events: &[(i64, &NewEvent)]) -> Result<(), StoreError> {
    let rows = |(n, event): &(i64, &NewEvent)| {
        let (n, at) = (*n, event.created_at);
        event.tags.iter().map(move |key| json!([key, at, n])).collect::<Vec<_>>()
    };
    let rows: Vec<Json> = events.iter().flat_map(rows).collect();
    if rows.is_empty() {
        return Ok(());
    }
    tx.execute(&INSERT_TAGS, params![Json::from(rows).to_string()]).await.map(drop)
}

/// Stores many events: those without a slot in one statement, the others one by one. Results are in the order of the
/// events.
pub async fn insert_many(tx: &mut Tx, events: &[NewEvent]) -> Result<Vec<Kept>, StoreError> {
    let mut regular: Vec<&NewEvent> = events.iter().filter(|event| event.slot.is_none()).collect();
    // Sorted, because two writers that insert the same events in different orders would deadlock.
    regular.sort_unstable_by_key(|event| event.id);
    regular.dedup_by_key(|event| event.id);
    let mut fresh = insert_regular(tx, &regular).await?;
    let mut kept = Vec::with_capacity(events.len());
    for event in events {
        kept.push(match &event.slot {
            Some(_) => insert(tx, event).await?,
            None if fresh.remove(&event.id) => Kept::New,
            None => Kept::Duplicate,
        });
    }
    Ok(kept)
}

/// Inserts distinct events without a slot; returns the ids of new ones.
async fn insert_regular(tx: &mut Tx, events: &[&NewEvent]) -> Result<HashSet<[u8; 32]>, StoreError> {
    if events.is_empty() {
        return Ok(HashSet::new());
    }
    let row = |event: &&NewEvent| {
        let (id, pubkey) = (hex::encode(event.id), hex::encode(event.pubkey));
        json!({"id": id, "pubkey": pubkey, "kind": event.kind, "at": event.created_at, "until": event.expires_at,
            "json": event.json, "status_of": event.status_of.as_ref().map(hex::encode)})
    };
    let list = Json::from(events.iter().map(row).collect::<Vec<_>>()).to_string();
    let now = tx.now();
    let mut numbers = HashMap::new();
    for row in tx.all(&INSERT_MANY, params![list, now]).await? {
        numbers.insert(fixed(&row, "event_id")?, row.int("n")?);
    }
    let inserted: Vec<(i64, &NewEvent)> =
        events.iter().filter_map(|event| Some((*numbers.get(&event.id)?, *event))).collect();
    insert_tags(tx, &inserted).await?;
    Ok(numbers.into_keys().collect())
}

/// An event, hidden or not.
pub async fn by_id(conn: &mut Conn, id: &[u8; 32]) -> Result<Option<Found>, StoreError> {
    conn.one(&BY_ID, params![&id[..]]).await?.map(|row| Found::from_row(&row)).transpose()
}

/// Which of these events are stored, hidden or not.
pub async fn known(conn: &mut Conn, ids: &[[u8; 32]]) -> Result<HashSet<[u8; 32]>, StoreError> {
    let rows = conn.all(&KNOWN, params![hexadecimal_list(ids)]).await?;
    rows.iter().map(|row| fixed(row, "event_id")).collect()
}

/// The event in a slot, hidden or not.
pub async fn in_slot(conn: &mut Conn, kind: u16, pubkey: &[u8; 32], slot: &str) -> Result<Option<Found>, StoreError> {
    let row = conn.one(&IN_SLOT, params![i64::from(kind), &pubkey[..], &*indexed(slot)]).await?;
    row.map(|row| Found::from_row(&row)).transpose()
}

/// The events that hold slots of this name, of every author, hidden or not: the shortest, so many and so many bytes at the
/// most. In the order in which they came.
pub async fn of_slot(conn: &mut Conn, kind: u16, slot: &str, limit: i64, bytes: i64) -> Result<Vec<Found>, StoreError> {
    let rows = conn.all(&OF_SLOT, params![i64::from(kind), &*indexed(slot), limit, bytes]).await?;
    rows.iter().map(Found::from_row).collect()
}

/// The hidden events that hold slots of this name, of every author: ids and authors.
pub async fn hidden_of_slot(
    conn: &mut Conn,
    kind: u16,
    slot: &str,
    limit: i64,
) -> Result<Vec<([u8; 32], [u8; 32])>, StoreError> {
    let rows = conn.all(&HIDDEN_OF_SLOT, params![i64::from(kind), &*indexed(slot), limit]).await?;
    rows.iter().map(|row| Ok((fixed(row, "event_id")?, fixed(row, "pubkey")?))).collect()
}

/// Events of some authors in slots of this name, as many as fit into this many bytes together.
pub async fn of_slot_by(
    conn: &mut Conn,
    kind: u16,
    slot: &str,
    authors: &[[u8; 32]],
    bytes: i64,
) -> Result<Vec<Found>, StoreError> {
    let values = params![i64::from(kind), &*indexed(slot), hexadecimal_list(authors), bytes];
    conn.all(&OF_SLOT_BY, values).await?.iter().map(Found::from_row).collect()
}

/// Visible events of an author, oldest first.
pub async fn served_of(conn: &mut Conn, pubkey: &[u8; 32], limit: i64) -> Result<Vec<Found>, StoreError> {
    conn.all(&SERVED_OF, params![&pubkey[..], limit]).await?.iter().map(Found::from_row).collect()
}

/// Hidden events of an author, oldest first.
pub async fn hidden_of(conn: &mut Conn, pubkey: &[u8; 32], limit: i64) -> Result<Vec<Found>, StoreError> {
    conn.all(&HIDDEN_OF, params![&pubkey[..], limit]).await?.iter().map(Found::from_row).collect()
}

/// Removes an event; returns whether it existed.
pub async fn remove(tx: &mut Tx, id: &[u8; 32]) -> Result<bool, StoreError> {
    Ok(tx.execute(&REMOVE, params![&id[..]]).await? > 0)
}

/// Hides or shows an event; returns whether that changed anything.
pub async fn set_hidden(tx: &mut Tx, id: &[u8; 32], hidden: bool) -> Result<bool, StoreError> {
    Ok(tx.execute(&SET_HIDDEN, params![&id[..], hidden]).await? > 0)
}

/// Removes up to `limit` events that expired by `now`, in seconds. Returns their number, and the JSON of the PR events
/// among them.
pub async fn expire(tx: &mut Tx, now: i64, limit: i64) -> Result<(usize, Vec<String>), StoreError> {
    let gone = tx.all(&EXPIRE, params![now, limit]).await?;
    let pr_events = gone.iter().filter_map(|row| row.opt_text("pr_event").transpose()).collect::<Result<_, _>>()?;
    Ok((gone.len(), pr_events))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_of_letter_and_value() {
        assert_eq!(tag_key('a', "x"), tag_key('a', "x"));
        assert_ne!(tag_key('a', "x"), tag_key('A', "x"));
        assert_ne!(tag_key('a', "x"), tag_key('a', "y"));
    }

    #[test]
    fn what_an_index_cannot_hold_is_known_by_its_hash() {
        assert_eq!(indexed("repo"), "repo");
        assert_eq!(indexed(""), "");
        let long = "x".repeat(LONGEST_KEY + 1);
        let odd = [long.as_str(), "a\0b", "\u{1}", "a\0c"].map(|text| indexed(text).into_owned());
        assert!(odd.iter().all(|key| key.len() == 65 && !key.contains('\0')));
        assert_eq!(odd.iter().collect::<HashSet<_>>().len(), 4);
    }
}
