//! What belongs to what: facts about many events at once, for the rules that say what is accepted.
//!
//! Everything hangs on repositories, at a number of steps: an announcement, issue, patch or pull request is at none, an
//! event that tags one of those at one, and so on (`nostr_indirect` where a kind alone does not tell). Only what is
//! served counts; hidden events relate to nothing, and neither do profiles, deletions and states.

use crate::nostr_events::{fixed, hexadecimal, hexadecimal_list};
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

/// How many steps an event is from a repository.
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
    /// Of kinds, authors and identifiers, the places of those that are served.
    SLOTS = concat!("SELECT q.place, ", steps!(), " AS steps FROM "),
        sqlite concat!("(SELECT key AS place, value ->> 0 AS kind, unhex(value ->> 1) AS pubkey, value ->> 2 AS slot
                FROM json_each($1)) q
            CROSS JOIN nostr_events e WHERE e.kind = q.kind AND e.pubkey = q.pubkey AND e.slot = q.slot AND ", links!()),
        postgres concat!("(SELECT place - 1 AS place, CAST(value ->> 0 AS BIGINT) AS kind,
                    decode(value ->> 1, 'hex') AS pubkey, value ->> 2 AS slot
                FROM json_array_elements(CAST(CAST($1 AS TEXT) AS JSON)) WITH ORDINALITY AS l (value, place)) q
            JOIN nostr_events e ON e.kind = q.kind AND e.pubkey = q.pubkey AND e.slot = q.slot AND ", links!());
    /// Which of these keys an event has among its tags, and how near the nearest of the first hundred is.
    TAGGED = "SELECT q.key, (SELECT min(found.steps) FROM (SELECT ",
        sqlite concat!(steps!(), " AS steps FROM nostr_tags t CROSS JOIN nostr_events e
                WHERE t.key = q.key AND e.n = t.n AND ", links!(), " LIMIT 100) found) AS steps
            FROM (SELECT value AS key FROM json_each('[' || $1 || ']')) q"),
        postgres concat!(steps!(), " AS steps FROM nostr_tags t JOIN nostr_events e ON e.n = t.n
                WHERE t.key = q.key AND ", links!(), " LIMIT 100) found) AS steps
            FROM unnest(CAST(string_to_array($1, ',') AS BIGINT[])) AS q (key)");
    /// Served patches and pull requests with a tag, the newest first.
    PROPOSALS = "SELECT e.json FROM nostr_tags t JOIN nostr_events e ON e.n = t.n
        WHERE t.key = $1 AND e.kind IN (1617, 1618, 1619) AND NOT e.hidden ORDER BY t.created_at DESC LIMIT $2";
    NOTE = "INSERT INTO nostr_indirect (n, pubkey, steps)
        SELECT e.n, e.pubkey, CAST($2 AS BIGINT) FROM nostr_events e WHERE e.event_id = $1
        ON CONFLICT (n) DO UPDATE SET steps = excluded.steps";
    FAR = "SELECT count(*) AS n FROM nostr_indirect WHERE pubkey = $1 AND steps > 1";
    /// Of pairs of a key and how people write it: those of whom something is served, or who have an account. Asked as a
    /// value, because PostgreSQL would make a list of everyone to answer whether there is one.
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
    /// How far it is from a repository.
    pub steps: i64,
    /// Whether it is an announcement itself.
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

/// The address of an event that others replace: kind, author, identifier.
pub type Address = (u16, [u8; 32], String);

/// Which of these addresses have a served event that is linked to a repository.
pub async fn addresses(conn: &mut Conn, named: &[Address]) -> Result<HashMap<Address, Link>, StoreError> {
    if named.is_empty() {
        return Ok(HashMap::new());
    }
    let one = |(kind, author, name): &Address| json!([kind, hexadecimal(author), crate::nostr_events::indexed(name)]);
    let list = Json::from(named.iter().map(one).collect::<Vec<_>>()).to_string();
    let mut found = HashMap::new();
    for row in conn.all(&SLOTS, params![list]).await? {
        let address = usize::try_from(row.int("place")?).ok().and_then(|place| named.get(place));
        if let Some(address) = address {
            found.insert(address.clone(), Link { steps: row.int("steps")?, is_repo: address.0 == 30_617 });
        }
    }
    Ok(found)
}

/// Which of these tag keys a served event has that is linked to a repository, and in how many steps at the least.
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

/// Served patches and pull requests that have this tag key, as they were sent, the newest first.
pub async fn proposals(conn: &mut Conn, key: i64, limit: i64) -> Result<Vec<String>, StoreError> {
    conn.all(&PROPOSALS, params![key, limit]).await?.iter().map(|row| row.text("json")).collect()
}

/// Notes how far a stored event is from a repository, where its kind alone does not tell.
pub async fn note_steps(tx: &mut Tx, id: &[u8; 32], steps: i64) -> Result<(), StoreError> {
    tx.execute(&NOTE, params![&id[..], steps]).await.map(drop)
}

/// How many events of an author are more than one step from a repository.
pub async fn far(conn: &mut Conn, author: &[u8; 32]) -> Result<i64, StoreError> {
    conn.only(&FAR, params![&author[..]]).await?.int("n")
}

/// Which of these authors, each with their npub, have published anything that is served, or have an account.
pub async fn authors(conn: &mut Conn, keys: &[([u8; 32], String)]) -> Result<HashSet<[u8; 32]>, StoreError> {
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    let pair = |(key, npub): &([u8; 32], String)| json!([hexadecimal(key), npub]);
    let list = Json::from(keys.iter().map(pair).collect::<Vec<_>>()).to_string();
    conn.all(&AUTHORS, params![list]).await?.iter().map(|row| fixed(row, "pubkey")).collect()
}
