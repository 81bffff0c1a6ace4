//! Words on how far threads are, read from columns alone: a status may be as large as any event, and nothing of its text
//! decides.

use crate::nostr::events::fixed;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError};
use serde_json::{Value as Json, json};

/// The words of one author on one thread, the newest first.
macro_rules! words {
    () => {
        "FROM nostr_events s WHERE s.status_of = q.root AND s.pubkey = q.pubkey
            AND NOT s.hidden AND (s.expires_at IS NULL OR s.expires_at > $2) AND s.n "
    };
}

macro_rules! newest {
    () => {
        " ORDER BY s.created_at DESC, s.event_id LIMIT $4"
    };
}

statements! {
    /// Of pairs of a thread and an author: the newest words of each pair, without some rows.
    NEWEST = "SELECT q.ordinal AS ordinal, e.n AS n, e.event_id AS event_id, e.pubkey AS pubkey, e.kind AS kind,
            e.created_at AS created_at FROM ",
        sqlite concat!("(SELECT key AS ordinal, unhex(value ->> 0) AS root, unhex(value ->> 1) AS pubkey FROM json_each($1)) q
            CROSS JOIN nostr_events e WHERE e.n IN (SELECT s.n ", words!(),
            "NOT IN (SELECT value FROM json_each('[' || $3 || ']'))", newest!(), ")"),
        postgres concat!("(SELECT ordinal - 1 AS ordinal, decode(value ->> 0, 'hex') AS root, decode(value ->> 1, 'hex') AS pubkey
                FROM json_array_elements(CAST(CAST($1 AS TEXT) AS JSON)) WITH ORDINALITY AS l (value, ordinal)) q
            CROSS JOIN LATERAL (SELECT s.n, s.event_id, s.pubkey, s.kind, s.created_at ", words!(),
            "<> ALL (CAST(string_to_array($3, ',') AS BIGINT[]))", newest!(), ") e");
}

/// A thread and an author whose word on it is asked for.
pub type Pair = ([u8; 32], [u8; 32]);

/// A word on how far a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// The thread that it is about.
    pub root: [u8; 32],
    /// Its row.
    pub n: i64,
    /// The event.
    pub id: [u8; 32],
    /// Who says so.
    pub pubkey: [u8; 32],
    /// The kind of the event, which is the status.
    pub kind: u16,
    /// The author's time, in seconds.
    pub created_at: i64,
}

/// The newest words of each author on each thread, at most `each` of a pair; of one second the lowest id first. Rows in `but`
/// are passed over. `now` is in seconds.
pub async fn newest(
    conn: &mut Conn,
    pairs: &[Pair],
    but: &[i64],
    each: i64,
    now: i64,
) -> Result<Vec<Word>, StoreError> {
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let list: Vec<Json> = pairs.iter().map(|(root, key)| json!([hex::encode(root), hex::encode(key)])).collect();
    let but = but.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let rows = conn.all(&NEWEST, params![Json::from(list).to_string(), now, but, each]).await?;
    let word = |row: &crate::Row| {
        let pair = usize::try_from(row.int("ordinal")?).ok().and_then(|index| pairs.get(index));
        let (root, _) = pair.ok_or_else(|| unreadable("ordinal", "no such pair"))?;
        Ok(Word {
            root: *root,
            n: row.int("n")?,
            id: fixed(row, "event_id")?,
            pubkey: fixed(row, "pubkey")?,
            kind: u16::try_from(row.int("kind")?).map_err(|error| unreadable("kind", &error.to_string()))?,
            created_at: row.int("created_at")?,
        })
    };
    rows.iter().map(word).collect()
}

fn unreadable(column: &'static str, reason: &str) -> StoreError {
    StoreError::Unreadable { column, reason: reason.to_owned() }
}
