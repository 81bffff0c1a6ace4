//! Links between events and repositories: facts about many events at once, for the acceptance rules.
//!
//! Every event has a distance from a repository: an announcement, issue, patch or pull request has distance 0, an event
//! that tags one of those 1, and so on (`nostr_indirect` where the kind alone does not decide). Only served events count;
//! hidden events, profiles, deletions and states link to nothing.

use crate::nostr::events::{fixed, hexadecimal_list};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use serde_json::{Value as Json, json};
use std::collections::{HashMap, HashSet};

/// Whether an event can link others to a repository.
macro_rules! links {
    () => {
        "e.kind NOT IN (0, 5, 10002, 10317, 30618) AND NOT e.hidden"
    };
}

/// Distance of an event from a repository.
macro_rules! steps {
    () => {
        "COALESCE((SELECT i.steps FROM nostr_indirect i WHERE i.n = e.n),
            CASE WHEN e.kind IN (30617, 1617, 1618, 1619, 1621) THEN 0 ELSE 1 END)"
    };
}

statements! {
    EVENTS = concat!("SELECT e.event_id, e.kind, ", steps!(), " AS steps FROM nostr_events e WHERE ", links!(), " AND e.event_id "),
        sqlite "IN (SELECT unhex(value) FROM json_each($1))",
        postgres "= ANY (ARRAY (SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))";
    /// For triples of kind, author and identifier: positions of those with a served event.
    SLOTS = concat!("SELECT q.ordinal, ", steps!(), " AS steps FROM "),
        sqlite concat!("(SELECT key AS ordinal, value ->> 0 AS kind, unhex(value ->> 1) AS pubkey, value ->> 2 AS slot
                FROM json_each($1)) q
            CROSS JOIN nostr_events e WHERE e.kind = q.kind AND e.pubkey = q.pubkey AND e.slot = q.slot AND ", links!()),
        postgres concat!("(SELECT ordinal - 1 AS ordinal, CAST(value ->> 0 AS BIGINT) AS kind,
                    decode(value ->> 1, 'hex') AS pubkey, value ->> 2 AS slot
                FROM json_array_elements(CAST(CAST($1 AS TEXT) AS JSON)) WITH ORDINALITY AS l (value, ordinal)) q
            JOIN nostr_events e ON e.kind = q.kind AND e.pubkey = q.pubkey AND e.slot = q.slot AND ", links!());
    /// For each key: the smallest distance among the first hundred events with this tag.
    TAGGED = "SELECT q.key, (SELECT min(found.steps) FROM (SELECT ",
        sqlite concat!(steps!(), " AS steps FROM nostr_tags t CROSS JOIN nostr_events e
                WHERE t.key = q.key AND e.n = t.n AND ", links!(), " LIMIT 100) found) AS steps
            FROM (SELECT value AS key FROM json_each('[' || $1 || ']')) q"),
        postgres concat!(steps!(), " AS steps FROM nostr_tags t JOIN nostr_events e ON e.n = t.n
                WHERE t.key = q.key AND ", links!(), " LIMIT 100) found) AS steps
            FROM unnest(CAST(string_to_array($1, ',') AS BIGINT[])) AS q (key)");
    /// Served patches and pull requests with a tag before a position, newest first.
    PR_EVENTS = "SELECT t.created_at, t.n, e.event_id FROM nostr_tags t JOIN nostr_events e ON e.n = t.n
        WHERE t.key = $1 AND (t.created_at, t.n) < ($2, $3) AND e.kind IN (1617, 1618, 1619) AND NOT e.hidden
        ORDER BY t.created_at DESC, t.n DESC LIMIT $4";
    NOTE = "INSERT INTO nostr_indirect (n, pubkey, steps)
        SELECT e.n, e.pubkey, CAST($2 AS BIGINT) FROM nostr_events e WHERE e.event_id = $1
        ON CONFLICT (n) DO UPDATE SET steps = excluded.steps";
    FAR = "SELECT count(*) AS n FROM nostr_indirect WHERE pubkey = $1 AND steps > 1";
    /// For pairs of key and npub: authors with a served event or an account. The account is read as a value, because
    /// PostgreSQL would build a list of all users to answer EXISTS.
    AUTHORS = "SELECT q.pubkey FROM ",
        sqlite "(SELECT unhex(value ->> 0) AS pubkey, value ->> 1 AS npub FROM json_each($1)) q
            WHERE EXISTS (SELECT 1 FROM nostr_events e WHERE e.pubkey = q.pubkey AND NOT e.hidden)
                OR (SELECT u.id FROM users u WHERE u.npub = q.npub) IS NOT NULL",
        postgres "(SELECT decode(value ->> 0, 'hex') AS pubkey, value ->> 1 AS npub
                FROM json_array_elements(CAST(CAST($1 AS TEXT) AS JSON))) q
            WHERE EXISTS (SELECT 1 FROM nostr_events e WHERE e.pubkey = q.pubkey AND NOT e.hidden)
                OR (SELECT u.id FROM users u WHERE u.npub = q.npub) IS NOT NULL";
}

/// An event that links others to a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Distance from a repository.
    pub steps: i64,
    /// Whether it is an announcement.
    pub is_repo: bool,
}

/// Which of these events are served and linked to a repository.
pub async fn events(conn: &mut Conn, ids: &[[u8; 32]]) -> Result<HashMap<[u8; 32], Link>, StoreError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = conn.all(&EVENTS, params![hexadecimal_list(ids)]).await?;
    let link = |row: &Row| {
        let is_repo = row.int("kind")? == 30_617;
        Ok((fixed(row, "event_id")?, Link { steps: row.int("steps")?, is_repo }))
    };
    rows.iter().map(link).collect()
}

/// Coordinate of a replaceable event: kind, author, identifier.
pub type EventCoordinate = (u16, [u8; 32], String);

/// Which of these coordinates have a served event that is linked to a repository.
pub async fn addresses(
    conn: &mut Conn,
    named: &[EventCoordinate],
) -> Result<HashMap<EventCoordinate, Link>, StoreError> {
    if named.is_empty() {
        return Ok(HashMap::new());
    }
    let one = |(kind, author, name): &EventCoordinate| {
        json!([kind, hex::encode(author), crate::nostr::events::indexed(name)])
    };
    let list = Json::from(named.iter().map(one).collect::<Vec<_>>()).to_string();
    let mut found = HashMap::new();
    for row in conn.all(&SLOTS, params![list]).await? {
        let address = usize::try_from(row.int("ordinal")?).ok().and_then(|index| named.get(index));
        if let Some(address) = address {
            found.insert(address.clone(), Link { steps: row.int("steps")?, is_repo: address.0 == 30_617 });
        }
    }
    Ok(found)
}

/// Which of these tag keys occur in a served event that is linked to a repository, with the smallest distance.
pub async fn tagged(conn: &mut Conn, keys: &[i64]) -> Result<HashMap<i64, i64>, StoreError> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let list = keys.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let mut found = HashMap::new();
    for row in conn.all(&TAGGED, params![list]).await? {
        if let Some(steps) = row.opt_int("steps")? {
            found.insert(row.int("key")?, steps);
        }
    }
    Ok(found)
}

/// Position in a list of PR events: the author's time and the row number.
pub type Position = (i64, i64);

/// Served patches and pull requests with this tag key before a position, newest first: their positions and event ids.
pub async fn pr_events(
    conn: &mut Conn,
    key: i64,
    before: Option<Position>,
    limit: i64,
) -> Result<Vec<(Position, [u8; 32])>, StoreError> {
    let (at, n) = before.unwrap_or((i64::MAX, i64::MAX));
    let rows = conn.all(&PR_EVENTS, params![key, at, n, limit]).await?;
    rows.iter().map(|row| Ok(((row.int("created_at")?, row.int("n")?), row.bytes32("event_id")?))).collect()
}

/// Records the distance of a stored event from a repository, where its kind alone does not decide.
pub async fn note_steps(tx: &mut Tx, id: &[u8; 32], steps: i64) -> Result<(), StoreError> {
    tx.execute(&NOTE, params![&id[..], steps]).await.map(drop)
}

/// Number of an author's events that are more than one step from a repository.
pub async fn far(conn: &mut Conn, author: &[u8; 32]) -> Result<i64, StoreError> {
    conn.only(&FAR, params![&author[..]]).await?.int("n")
}

/// Which of these authors, each with their npub, have a served event or an account.
pub async fn authors(conn: &mut Conn, keys: &[([u8; 32], String)]) -> Result<HashSet<[u8; 32]>, StoreError> {
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    let pair = |(key, npub): &([u8; 32], String)| json!([hex::encode(key), npub]);
    let list = Json::from(keys.iter().map(pair).collect::<Vec<_>>()).to_string();
    conn.all(&AUTHORS, params![list]).await?.iter().map(|row| fixed(row, "pubkey")).collect()
}
