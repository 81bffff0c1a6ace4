//! Nostr threads as notifications need them: titles, text excerpts and participants.
//!
//! Each row belongs to the event that it was made from and is deleted with it. Hidden events are not shown.

use crate::nostr::events::{fixed, hexadecimal_list};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::UserId;
use std::collections::HashMap;

statements! {
    PUT = "INSERT INTO nostr_news (n, root, user_id, title, excerpt) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (n) DO NOTHING";
    THREAD = "SELECT e.event_id, e.kind, m.title FROM nostr_news m JOIN nostr_events e ON e.n = m.n
        WHERE m.n = $1 AND NOT e.hidden";
    /// Accounts that started the thread or commented on it; the one that started it comes first.
    PARTICIPANTS = "SELECT user_id, min(n) AS first FROM nostr_news WHERE root = $1 AND user_id IS NOT NULL
        GROUP BY user_id ORDER BY first LIMIT $2";
    /// Without their texts, which may be large.
    HEADS = "SELECT n, event_id, pubkey, kind, CAST(octet_length(json) AS BIGINT) AS bytes FROM nostr_events
        WHERE NOT hidden AND event_id ",
        sqlite "IN (SELECT unhex(value) FROM json_each($1))",
        postgres "= ANY (ARRAY (SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))";
    JSON = "SELECT json FROM nostr_events WHERE n = $1 AND NOT hidden";
}

/// An event to notify about.
#[derive(Debug, Clone)]
pub struct New {
    /// Row of the event.
    pub n: i64,
    /// Row of the thread's root event.
    pub root: i64,
    /// The author's account.
    pub user: Option<UserId>,
    /// Title; empty for a comment.
    pub title: String,
    /// Start of the text.
    pub excerpt: String,
}

/// Records an event to notify about.
pub async fn put(tx: &mut Tx, new: &New) -> Result<(), StoreError> {
    let values = params![new.n, new.root, new.user, new.title.as_str(), new.excerpt.as_str()];
    tx.execute(&PUT, values).await.map(drop)
}

/// A served thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Id of the root event.
    pub id: [u8; 32],
    pub kind: u16,
    pub title: String,
}

/// The thread that an event starts; `None` once it is deleted or hidden.
pub async fn thread(conn: &mut Conn, n: i64) -> Result<Option<Thread>, StoreError> {
    let Some(row) = conn.one(&THREAD, params![n]).await? else { return Ok(None) };
    Ok(Some(Thread { id: fixed(&row, "event_id")?, kind: kind(&row)?, title: row.text("title")? }))
}

/// Accounts that take part in a thread, up to a limit, and whether each started it.
pub async fn participants(conn: &mut Conn, root: i64, limit: i64) -> Result<Vec<(UserId, bool)>, StoreError> {
    let rows = conn.all(&PARTICIPANTS, params![root, limit]).await?;
    rows.iter().map(|row| Ok((UserId::new(row.int("user_id")?), row.int("first")? == root))).collect()
}

/// An event that is served, without its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its row.
    pub n: i64,
    /// Its author.
    pub pubkey: [u8; 32],
    /// Its kind.
    pub kind: u16,
    /// The length of its JSON.
    pub bytes: i64,
}

/// These events by id, as far as they are served.
pub async fn heads(conn: &mut Conn, ids: &[[u8; 32]]) -> Result<HashMap<[u8; 32], Head>, StoreError> {
    let rows = conn.all(&HEADS, params![hexadecimal_list(ids)]).await?;
    let head = |row: &crate::Row| {
        let (n, pubkey, bytes) = (row.int("n")?, fixed(row, "pubkey")?, row.int("bytes")?);
        Ok((fixed(row, "event_id")?, Head { n, pubkey, kind: kind(row)?, bytes }))
    };
    rows.iter().map(head).collect()
}

fn kind(row: &crate::Row) -> Result<u16, StoreError> {
    u16::try_from(row.int("kind")?)
        .map_err(|error| StoreError::Unreadable { column: "kind", reason: error.to_string() })
}

/// JSON of an event; `None` once it is deleted or hidden.
pub async fn json(conn: &mut Conn, n: i64) -> Result<Option<String>, StoreError> {
    conn.one(&JSON, params![n]).await?.map(|row| row.text("json")).transpose()
}
