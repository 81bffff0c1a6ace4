//! Deletions by authors, recorded so that deleted events do not come back.

use crate::nostr::events::indexed;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, StoreError, Tx};
use serde_json::{Value as Json, json};
use std::collections::HashMap;

statements! {
    /// The latest request wins.
    NOTE = "INSERT INTO nostr_deleted (pubkey, target, at, event_id) VALUES ($1, $2, $3, $4)
        ON CONFLICT (pubkey, target) DO UPDATE SET at = excluded.at, event_id = excluded.event_id
        WHERE excluded.at > nostr_deleted.at";
    AT = "SELECT at FROM nostr_deleted WHERE pubkey = $1 AND target = $2";
    /// For pairs of author and target: deletion times by position in the list.
    AT_MANY = "SELECT q.ordinal, d.at FROM ",
        sqlite "(SELECT key AS ordinal, unhex(value ->> 0) AS pubkey, value ->> 1 AS target FROM json_each($1)) q
            CROSS JOIN nostr_deleted d WHERE d.pubkey = q.pubkey AND d.target = q.target",
        postgres "(SELECT ordinal - 1 AS ordinal, decode(value ->> 0, 'hex') AS pubkey, value ->> 1 AS target
                FROM json_array_elements(CAST(CAST($1 AS TEXT) AS JSON)) WITH ORDINALITY AS l (value, ordinal)) q
            CROSS JOIN LATERAL (SELECT at FROM nostr_deleted WHERE pubkey = q.pubkey AND target = q.target LIMIT 1) d";
}

/// Records that an author deleted `e:<id>` or `a:<kind>:<author>:<identifier>` at this second, by this event.
pub async fn note(tx: &mut Tx, pubkey: &[u8; 32], target: &str, at: i64, event: &[u8; 32]) -> Result<(), StoreError> {
    tx.execute(&NOTE, params![&pubkey[..], &*indexed(target), at, &event[..]]).await.map(drop)
}

/// Time in seconds of this author's last deletion of the target.
pub async fn at(conn: &mut Conn, pubkey: &[u8; 32], target: &str) -> Result<Option<i64>, StoreError> {
    conn.one(&AT, params![&pubkey[..], &*indexed(target)]).await?.map(|row| row.int("at")).transpose()
}

/// [`at`] for many pairs: deletion times by position in the list.
pub async fn at_many(conn: &mut Conn, asked: &[([u8; 32], String)]) -> Result<HashMap<usize, i64>, StoreError> {
    if asked.is_empty() {
        return Ok(HashMap::new());
    }
    let pair = |(pubkey, target): &([u8; 32], String)| json!([hex::encode(pubkey), indexed(target)]);
    let list = Json::from(asked.iter().map(pair).collect::<Vec<_>>()).to_string();
    let mut found = HashMap::new();
    for row in conn.all(&AT_MANY, params![list]).await? {
        if let Ok(index) = usize::try_from(row.int("ordinal")?) {
            found.insert(index, row.int("at")?);
        }
    }
    Ok(found)
}
