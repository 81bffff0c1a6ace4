//! Events that belong to an announcement in purgatory: issues, comments, patches and pull requests. They wait with it,
//! are served when it is, and go when it goes. One that belongs to several announcements goes with the last of them.

use crate::nostr_events::{hexadecimal, hexadecimal_list};
use crate::purgatory::Bytes32;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use serde_json::{Value as Json, json};

statements! {
    PUT = "INSERT INTO purgatory_attached (event_id, pubkey, json, bytes, address, created_at)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (event_id) DO NOTHING";
    LINK = "INSERT INTO purgatory_attached_repos (event_id, pubkey, identifier) VALUES ($1, $2, $3)
        ON CONFLICT (event_id, identifier, pubkey) DO NOTHING";
    GET = "SELECT event_id, pubkey, json FROM purgatory_attached WHERE event_id = $1";
    OF_REPO = "SELECT a.event_id, a.pubkey, a.json FROM purgatory_attached_repos r
        JOIN purgatory_attached a ON a.event_id = r.event_id
        WHERE r.identifier = $2 AND r.pubkey = $1 ORDER BY a.created_at, a.event_id LIMIT $3";
    REMOVE = "DELETE FROM purgatory_attached WHERE event_id = $1";
    UNLINK = "DELETE FROM purgatory_attached_repos WHERE identifier = $2 AND pubkey = $1 RETURNING event_id";
    REMOVE_ALONE = "DELETE FROM purgatory_attached WHERE event_id = $1
        AND NOT EXISTS (SELECT 1 FROM purgatory_attached_repos r WHERE r.event_id = $1)";
    /// Of pairs of owner and identifier, the places of those whose announcement waits.
    WAITING_REPOS = "SELECT q.place, w.pubkey, w.identifier FROM ",
        sqlite "(SELECT key AS place, unhex(value ->> 0) AS pubkey, value ->> 1 AS identifier FROM json_each($1)) q
            CROSS JOIN purgatory_announcements w WHERE w.identifier = q.identifier AND w.pubkey = q.pubkey",
        postgres "(SELECT place - 1 AS place, decode(value ->> 0, 'hex') AS pubkey, value ->> 1 AS identifier
                FROM json_array_elements(CAST(CAST($1 AS TEXT) AS JSON)) WITH ORDINALITY AS l (value, place)) q
            JOIN purgatory_announcements w ON w.identifier = q.identifier AND w.pubkey = q.pubkey";
    /// Of these events, those that are an announcement in purgatory or wait with one, each with its announcements.
    WAITING_IDS = "SELECT w.event_id, w.pubkey, w.identifier FROM (
            SELECT event_id, pubkey, identifier FROM purgatory_announcements
            UNION ALL SELECT event_id, pubkey, identifier FROM purgatory_attached_repos) w WHERE w.event_id ",
        sqlite "IN (SELECT unhex(value) FROM json_each($1))",
        postgres "= ANY (ARRAY (SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))";
    /// Repositories whose announcement does not wait, although something waits with it.
    HOMELESS = "SELECT DISTINCT r.pubkey, r.identifier FROM purgatory_attached_repos r
        WHERE NOT EXISTS (SELECT 1 FROM purgatory_announcements w
            WHERE w.identifier = r.identifier AND w.pubkey = r.pubkey) LIMIT $1";
    COUNTS = "SELECT
        (SELECT CAST(COALESCE(sum(bytes), 0) AS BIGINT) FROM purgatory_attached WHERE pubkey = $1) AS key_bytes,
        count(a.event_id) AS of_repo, CAST(COALESCE(sum(a.bytes), 0) AS BIGINT) AS repo_bytes
        FROM purgatory_attached_repos r JOIN purgatory_attached a ON a.event_id = r.event_id
        WHERE r.identifier = $3 AND r.pubkey = $2";
}

/// An event that waits with an announcement.
#[derive(Debug, Clone)]
pub struct Attached {
    /// The event's id.
    pub event_id: Bytes32,
    /// Its author.
    pub pubkey: Bytes32,
    /// The event as it was sent.
    pub json: String,
}

impl Attached {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self { event_id: row.bytes32("event_id")?, pubkey: row.bytes32("pubkey")?, json: row.text("json")? })
    }
}

/// The key and identifier of an announced repository.
pub type Home = (Bytes32, String);

/// Lets an event wait with these announcements; `false` if it waits already.
pub async fn put(tx: &mut Tx, event: &Attached, homes: &[Home], address: Option<&str>) -> Result<bool, StoreError> {
    let (now, bytes) = (tx.now(), i64::try_from(event.json.len()).unwrap_or(i64::MAX));
    let values = params![&event.event_id[..], &event.pubkey[..], event.json.as_str(), bytes, address, now];
    if tx.execute(&PUT, values).await? == 0 {
        return Ok(false);
    }
    for (owner, identifier) in homes {
        tx.execute(&LINK, params![&event.event_id[..], &owner[..], identifier.as_str()]).await?;
    }
    Ok(true)
}

/// The event of this id, if it waits with an announcement.
pub async fn get(conn: &mut Conn, id: &Bytes32) -> Result<Option<Attached>, StoreError> {
    conn.one(&GET, params![&id[..]]).await?.as_ref().map(Attached::from_row).transpose()
}

/// The events that wait with an announcement, in the order in which they came.
pub async fn of_repo(
    conn: &mut Conn,
    owner: &Bytes32,
    identifier: &str,
    limit: i64,
) -> Result<Vec<Attached>, StoreError> {
    conn.all(&OF_REPO, params![&owner[..], identifier, limit]).await?.iter().map(Attached::from_row).collect()
}

/// Takes an event out; `false` if it did not wait.
pub async fn remove(tx: &mut Tx, id: &Bytes32) -> Result<bool, StoreError> {
    Ok(tx.execute(&REMOVE, params![&id[..]]).await? > 0)
}

/// An announcement ends without its git data: what waits with no other one goes. Returns how many events went.
pub async fn drop_with(tx: &mut Tx, owner: &Bytes32, identifier: &str) -> Result<u64, StoreError> {
    let mut gone = 0;
    for row in tx.all(&UNLINK, params![&owner[..], identifier]).await? {
        let id = row.bytes32("event_id")?;
        gone += tx.execute(&REMOVE_ALONE, params![&id[..]]).await?;
    }
    Ok(gone)
}

/// Of these repositories, those whose announcement waits.
pub async fn waiting_repos(conn: &mut Conn, repos: &[Home]) -> Result<Vec<Home>, StoreError> {
    if repos.is_empty() {
        return Ok(Vec::new());
    }
    let pair = |(owner, name): &Home| json!([hexadecimal(owner), name]);
    // PostgreSQL knows no NUL, and no identifier has one.
    let named = repos.iter().filter(|(_, name)| !name.contains('\0'));
    let list = Json::from(named.map(pair).collect::<Vec<_>>()).to_string();
    let rows = conn.all(&WAITING_REPOS, params![list]).await?;
    rows.iter().map(|row| Ok((row.bytes32("pubkey")?, row.text("identifier")?))).collect()
}

/// Of these events, those that are an announcement in purgatory or wait with one, each with that announcement.
pub async fn waiting_ids(conn: &mut Conn, ids: &[Bytes32]) -> Result<Vec<(Bytes32, Home)>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = conn.all(&WAITING_IDS, params![hexadecimal_list(ids)]).await?;
    let pair = |row: &Row| Ok((row.bytes32("event_id")?, (row.bytes32("pubkey")?, row.text("identifier")?)));
    rows.iter().map(pair).collect()
}

/// Repositories whose announcement does not wait, although something waits with it.
pub async fn homeless(conn: &mut Conn, limit: i64) -> Result<Vec<Home>, StoreError> {
    let rows = conn.all(&HOMELESS, params![limit]).await?;
    rows.iter().map(|row| Ok((row.bytes32("pubkey")?, row.text("identifier")?))).collect()
}

/// How much waits with announcements.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Bytes of one author.
    pub key_bytes: i64,
    /// Events of one announcement.
    pub of_repo: i64,
    /// Bytes of one announcement.
    pub repo_bytes: i64,
}

/// Counts what an author has waiting, and what waits with an announcement.
pub async fn counts(conn: &mut Conn, author: &Bytes32, home: &Home) -> Result<Counts, StoreError> {
    let row = conn.only(&COUNTS, params![&author[..], &home.0[..], home.1.as_str()]).await?;
    Ok(Counts { key_bytes: row.int("key_bytes")?, of_repo: row.int("of_repo")?, repo_bytes: row.int("repo_bytes")? })
}
