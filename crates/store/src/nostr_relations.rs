//! What belongs to what: facts about many events at once, for the rules that say what is accepted.
//!
//! The roots are what everything else hangs on: announcements, issues, patches, pull requests and their updates. Only
//! what is served counts; hidden events relate to nothing.

use crate::nostr_events::{fixed, hexadecimal, hexadecimal_list};
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError};
use serde_json::{Value as Json, json};
use std::collections::HashSet;

/// The kinds of the roots.
macro_rules! roots {
    () => {
        "(30617, 1617, 1618, 1619, 1621)"
    };
}

statements! {
    ROOTS = concat!("SELECT event_id FROM nostr_events WHERE kind IN ", roots!(), " AND NOT hidden AND event_id "),
        sqlite "IN (SELECT unhex(value) FROM json_each($1))",
        postgres "= ANY (ARRAY (SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))";
    /// Of pairs of owner and identifier, the places of those that are announced and served.
    REPOS = "SELECT q.place FROM ",
        sqlite "(SELECT key AS place, unhex(value ->> 0) AS pubkey, value ->> 1 AS slot FROM json_each($1)) q
            CROSS JOIN nostr_events e WHERE e.kind = 30617 AND e.pubkey = q.pubkey AND e.slot = q.slot AND NOT e.hidden",
        postgres "(SELECT place - 1 AS place, decode(value ->> 0, 'hex') AS pubkey, value ->> 1 AS slot
                FROM json_array_elements(CAST(CAST($1 AS TEXT) AS JSON)) WITH ORDINALITY AS l (value, place)) q
            JOIN nostr_events e ON e.kind = 30617 AND e.pubkey = q.pubkey AND e.slot = q.slot AND NOT e.hidden";
    /// Which of these keys a root has among its tags.
    TAGGED = "SELECT q.key FROM ",
        sqlite concat!("(SELECT value AS key FROM json_each('[' || $1 || ']')) q WHERE EXISTS (
            SELECT 1 FROM nostr_tags t CROSS JOIN nostr_events e
            WHERE t.key = q.key AND e.n = t.n AND e.kind IN ", roots!(), " AND NOT e.hidden)"),
        postgres concat!("unnest(CAST(string_to_array($1, ',') AS BIGINT[])) AS q (key) WHERE EXISTS (
            SELECT 1 FROM nostr_tags t JOIN nostr_events e ON e.n = t.n
            WHERE t.key = q.key AND e.kind IN ", roots!(), " AND NOT e.hidden)");
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

/// Which of these events are served roots.
pub async fn roots(conn: &mut Conn, ids: &[[u8; 32]]) -> Result<HashSet<[u8; 32]>, StoreError> {
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = conn.all(&ROOTS, params![hexadecimal_list(ids)]).await?;
    rows.iter().map(|row| fixed(row, "event_id")).collect()
}

/// Which of these repositories, by owner and identifier, are announced and served.
pub async fn repos(conn: &mut Conn, repos: &[([u8; 32], String)]) -> Result<HashSet<([u8; 32], String)>, StoreError> {
    if repos.is_empty() {
        return Ok(HashSet::new());
    }
    let pair = |(owner, name): &([u8; 32], String)| json!([hexadecimal(owner), crate::nostr_events::indexed(name)]);
    let list = Json::from(repos.iter().map(pair).collect::<Vec<_>>()).to_string();
    let mut found = HashSet::new();
    for row in conn.all(&REPOS, params![list]).await? {
        let place = usize::try_from(row.int("place")?).ok();
        found.extend(place.and_then(|place| repos.get(place)).cloned());
    }
    Ok(found)
}

/// Which of these tag keys a served root has.
pub async fn tagged(conn: &mut Conn, keys: &[i64]) -> Result<HashSet<i64>, StoreError> {
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    let list = keys.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    conn.all(&TAGGED, params![list]).await?.iter().map(|row| row.int("key")).collect()
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
