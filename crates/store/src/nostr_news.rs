//! Threads that came by nostr, as far as people are told of them: titles, the beginnings of texts, and who takes part.
//!
//! Each row hangs on the event that it was made from and goes with it. Hidden events are told to nobody.

use crate::nostr_events::{fixed, hexadecimal_list};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use abide_core::UserId;
use std::collections::HashMap;

statements! {
    PUT = "INSERT INTO nostr_news (n, root, user_id, title, excerpt) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (n) DO NOTHING";
    THREAD = "SELECT e.event_id, e.kind, m.title FROM nostr_news m JOIN nostr_events e ON e.n = m.n
        WHERE m.n = $1 AND NOT e.hidden";
    /// Accounts that began the thread or commented on it; the one that began it comes first.
    PARTICIPANTS = "SELECT user_id, min(n) AS first FROM nostr_news WHERE root = $1 AND user_id IS NOT NULL
        GROUP BY user_id ORDER BY first LIMIT $2";
    /// Without their texts, which may be large.
    HEADS = "SELECT n, event_id, pubkey, kind, CAST(octet_length(json) AS BIGINT) AS bytes FROM nostr_events
        WHERE NOT hidden AND event_id ",
        sqlite "IN (SELECT unhex(value) FROM json_each($1))",
        postgres "= ANY (ARRAY (SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))";
    JSON = "SELECT json FROM nostr_events WHERE n = $1 AND NOT hidden";
}

/// An event that people are told of.
#[derive(Debug, Clone)]
pub struct New {
    /// The event.
    pub n: i64,
    /// The event that begins its thread.
    pub root: i64,
    /// The account of its author.
    pub user: Option<UserId>,
    /// Its title; empty for a comment.
    pub title: String,
    /// The beginning of its text.
    pub excerpt: String,
}

/// Notes an event that people are told of.
pub async fn put(tx: &mut Tx, new: &New) -> Result<(), StoreError> {
    let values = params![new.n, new.root, new.user, new.title.as_str(), new.excerpt.as_str()];
    tx.execute(&PUT, values).await.map(drop)
}

/// A thread that is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// The event that begins it.
    pub id: [u8; 32],
    /// The kind of that event.
    pub kind: u16,
    /// Its title.
    pub title: String,
}

/// The thread that an event begins; `None` once it is deleted or hidden.
pub async fn thread(conn: &mut Conn, n: i64) -> Result<Option<Thread>, StoreError> {
    let Some(row) = conn.one(&THREAD, params![n]).await? else { return Ok(None) };
    Ok(Some(Thread { id: fixed(&row, "event_id")?, kind: kind(&row)?, title: row.text("title")? }))
}

/// The accounts that take part in a thread, so many at most, and whether each of them began it.
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

/// An event as it is sent; `None` once it is deleted or hidden.
pub async fn json(conn: &mut Conn, n: i64) -> Result<Option<String>, StoreError> {
    conn.one(&JSON, params![n]).await?.map(|row| row.text("json")).transpose()
}
