//! Events that belong to an announcement or a pull request in purgatory: issues, comments, patches and pull requests.
//! They wait with it, are served with it, and are removed with it. An event that waits with several is removed with the
//! last.

use crate::nostr::events::hexadecimal_list;
use crate::nostr::purgatory::Bytes32;
use crate::nostr::relations::Link;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use serde_json::{Value as Json, json};

statements! {
    PUT = "INSERT INTO purgatory_attached (event_id, pubkey, json, bytes, address, created_at, steps)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (event_id) DO NOTHING";
    LINK = "INSERT INTO purgatory_attached_repos (event_id, pubkey, identifier) VALUES ($1, $2, $3)
        ON CONFLICT (event_id, identifier, pubkey) DO NOTHING";
    LINK_PR_EVENT = "INSERT INTO purgatory_attached_proposals (event_id, proposal_id) VALUES ($1, $2)
        ON CONFLICT (event_id, proposal_id) DO NOTHING";
    GET = "SELECT event_id, pubkey, json, steps FROM purgatory_attached WHERE event_id = $1";
    OF_REPO = "SELECT a.event_id, a.pubkey, a.json, a.steps FROM purgatory_attached_repos r
        JOIN purgatory_attached a ON a.event_id = r.event_id
        WHERE r.identifier = $2 AND r.pubkey = $1 ORDER BY a.created_at, a.event_id LIMIT $3";
    OF_PR_EVENT = "SELECT a.event_id, a.pubkey, a.json, a.steps FROM purgatory_attached_proposals r
        JOIN purgatory_attached a ON a.event_id = r.event_id
        WHERE r.proposal_id = $1 ORDER BY a.created_at, a.event_id LIMIT $2";
    REMOVE = "DELETE FROM purgatory_attached WHERE event_id = $1";
    UNLINK = "DELETE FROM purgatory_attached_repos WHERE identifier = $2 AND pubkey = $1 RETURNING event_id";
    UNLINK_PR_EVENT = "DELETE FROM purgatory_attached_proposals WHERE proposal_id = $1 RETURNING event_id";
    REMOVE_ALONE = "DELETE FROM purgatory_attached WHERE event_id = $1
        AND NOT EXISTS (SELECT 1 FROM purgatory_attached_repos r WHERE r.event_id = $1)
        AND NOT EXISTS (SELECT 1 FROM purgatory_attached_proposals p WHERE p.event_id = $1)";
    /// For pairs of owner and identifier: positions of those with a waiting announcement.
    WAITING_REPOS = "SELECT q.ordinal, w.pubkey, w.identifier FROM ",
        sqlite "(SELECT key AS ordinal, unhex(value ->> 0) AS pubkey, value ->> 1 AS identifier FROM json_each($1)) q
            CROSS JOIN purgatory_announcements w WHERE w.identifier = q.identifier AND w.pubkey = q.pubkey",
        postgres "(SELECT ordinal - 1 AS ordinal, decode(value ->> 0, 'hex') AS pubkey, value ->> 1 AS identifier
                FROM json_array_elements(CAST(CAST($1 AS TEXT) AS JSON)) WITH ORDINALITY AS l (value, ordinal)) q
            JOIN purgatory_announcements w ON w.identifier = q.identifier AND w.pubkey = q.pubkey";
    /// Of these events, the announcements and pull requests in purgatory and the events that wait with one. Each comes
    /// with what it waits with: a key and an identifier, or the id of a pull request alone.
    WAITING_IDS = "SELECT found.event_id, found.pubkey, found.identifier FROM (
            SELECT event_id, pubkey, identifier FROM purgatory_announcements
            UNION ALL SELECT event_id, pubkey, identifier FROM purgatory_attached_repos
            UNION ALL SELECT event_id, event_id, NULL FROM purgatory_proposals WHERE json IS NOT NULL
            UNION ALL SELECT event_id, proposal_id, NULL FROM purgatory_attached_proposals) found
        WHERE found.event_id ",
        sqlite "IN (SELECT unhex(value) FROM json_each($1))",
        postgres "= ANY (ARRAY (SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))";
    /// How far those of these events that wait are from a repository.
    LINKS = "SELECT found.steps, found.repo FROM (
            SELECT event_id, 0 AS steps, CAST(1 AS BIGINT) AS repo FROM purgatory_announcements
            UNION ALL SELECT event_id, steps, 0 FROM purgatory_attached
            UNION ALL SELECT event_id, 0, 0 FROM purgatory_proposals WHERE json IS NOT NULL) found
        WHERE found.event_id ",
        sqlite "IN (SELECT unhex(value) FROM json_each($1))",
        postgres "= ANY (ARRAY (SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))";
    FAR = "SELECT count(*) AS n FROM purgatory_attached WHERE pubkey = $1 AND steps > 1";
    /// Repositories that no longer have a waiting announcement, although events wait with it.
    HOMELESS = "SELECT DISTINCT r.pubkey, r.identifier FROM purgatory_attached_repos r
        WHERE NOT EXISTS (SELECT 1 FROM purgatory_announcements w
            WHERE w.identifier = r.identifier AND w.pubkey = r.pubkey) LIMIT $1";
    /// Pull requests that no longer wait for their commit, although events wait with them.
    HOMELESS_PR_EVENTS = "SELECT DISTINCT r.proposal_id FROM purgatory_attached_proposals r
        WHERE NOT EXISTS (SELECT 1 FROM purgatory_proposals w
            WHERE w.event_id = r.proposal_id AND w.json IS NOT NULL) LIMIT $1";
    COUNTS = "SELECT
        (SELECT CAST(COALESCE(sum(bytes), 0) AS BIGINT) FROM purgatory_attached WHERE pubkey = $1) AS key_bytes,
        count(a.event_id) AS of_repo, CAST(COALESCE(sum(a.bytes), 0) AS BIGINT) AS repo_bytes
        FROM purgatory_attached_repos r JOIN purgatory_attached a ON a.event_id = r.event_id
        WHERE r.identifier = $3 AND r.pubkey = $2";
    COUNTS_OF_PR_EVENT = "SELECT
        (SELECT CAST(COALESCE(sum(bytes), 0) AS BIGINT) FROM purgatory_attached WHERE pubkey = $1) AS key_bytes,
        count(a.event_id) AS of_repo, CAST(COALESCE(sum(a.bytes), 0) AS BIGINT) AS repo_bytes
        FROM purgatory_attached_proposals r JOIN purgatory_attached a ON a.event_id = r.event_id
        WHERE r.proposal_id = $2";
}

/// An event that waits with an announcement or a pull request.
#[derive(Debug, Clone)]
pub struct Attached {
    pub event_id: Bytes32,
    pub pubkey: Bytes32,
    /// The event as sent.
    pub json: String,
    /// How many steps it is from a repository.
    pub steps: i64,
}

impl Attached {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            event_id: row.bytes32("event_id")?,
            pubkey: row.bytes32("pubkey")?,
            json: row.text("json")?,
            steps: row.int("steps")?,
        })
    }
}

/// An entry of purgatory that other events wait with.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Home {
    /// An announcement, by the key and identifier of its repository.
    Repo(Bytes32, String),
    /// A pull request, by its id.
    PrEvent(Bytes32),
}

/// Lets an event wait with these entries; `false` if it waits already.
pub async fn put(tx: &mut Tx, event: &Attached, homes: &[Home], address: Option<&str>) -> Result<bool, StoreError> {
    let (now, bytes) = (tx.now(), i64::try_from(event.json.len()).unwrap_or(i64::MAX));
    let values = params![&event.event_id[..], &event.pubkey[..], event.json.as_str(), bytes, address, now, event.steps];
    if tx.execute(&PUT, values).await? == 0 {
        return Ok(false);
    }
    for home in homes {
        match home {
            Home::Repo(owner, identifier) => {
                tx.execute(&LINK, params![&event.event_id[..], &owner[..], identifier.as_str()]).await?;
            }
            Home::PrEvent(id) => {
                tx.execute(&LINK_PR_EVENT, params![&event.event_id[..], &id[..]]).await?;
            }
        }
    }
    Ok(true)
}

/// The event with this id, if it waits with an announcement or a pull request.
pub async fn get(conn: &mut Conn, id: &Bytes32) -> Result<Option<Attached>, StoreError> {
    conn.one(&GET, params![&id[..]]).await?.as_ref().map(Attached::from_row).transpose()
}

/// Events that wait with an announcement, in order of arrival.
pub async fn of_repo(
    conn: &mut Conn,
    owner: &Bytes32,
    identifier: &str,
    limit: i64,
) -> Result<Vec<Attached>, StoreError> {
    conn.all(&OF_REPO, params![&owner[..], identifier, limit]).await?.iter().map(Attached::from_row).collect()
}

/// Events that wait with a pull request, in order of arrival.
pub async fn of_pr_event(conn: &mut Conn, id: &Bytes32, limit: i64) -> Result<Vec<Attached>, StoreError> {
    conn.all(&OF_PR_EVENT, params![&id[..], limit]).await?.iter().map(Attached::from_row).collect()
}

/// Removes an event; `false` if it did not wait.
pub async fn remove(tx: &mut Tx, id: &Bytes32) -> Result<bool, StoreError> {
    Ok(tx.execute(&REMOVE, params![&id[..]]).await? > 0)
}

/// Removes the events that wait only with this announcement, which ended without its git data. Returns their number.
pub async fn drop_with(tx: &mut Tx, owner: &Bytes32, identifier: &str) -> Result<u64, StoreError> {
    let unlinked = tx.all(&UNLINK, params![&owner[..], identifier]).await?;
    remove_alone(tx, &unlinked).await
}

/// Removes the events that wait only with this pull request, which ended without its commit. Returns their number.
pub async fn drop_with_pr_event(tx: &mut Tx, id: &Bytes32) -> Result<u64, StoreError> {
    let unlinked = tx.all(&UNLINK_PR_EVENT, params![&id[..]]).await?;
    remove_alone(tx, &unlinked).await
}

async fn remove_alone(tx: &mut Tx, unlinked: &[Row]) -> Result<u64, StoreError> {
    let mut gone = 0;
    for row in unlinked {
        let id = row.bytes32("event_id")?;
        gone += tx.execute(&REMOVE_ALONE, params![&id[..]]).await?;
    }
    Ok(gone)
}

fn home(row: &Row) -> Result<Home, StoreError> {
    let key = row.bytes32("pubkey")?;
    Ok(match row.opt_text("identifier")? {
        Some(identifier) => Home::Repo(key, identifier),
        None => Home::PrEvent(key),
    })
}

/// Of these repositories, those with a waiting announcement.
pub async fn waiting_repos(conn: &mut Conn, repos: &[(Bytes32, String)]) -> Result<Vec<Home>, StoreError> {
    if repos.is_empty() {
        return Ok(Vec::new());
    }
    let pair = |(owner, name): &(Bytes32, String)| json!([hex::encode(owner), name]);
    // PostgreSQL text cannot contain NUL, and no identifier does.
    let named = repos.iter().filter(|(_, name)| !name.contains('\0'));
    let list = Json::from(named.map(pair).collect::<Vec<_>>()).to_string();
    conn.all(&WAITING_REPOS, params![list]).await?.iter().map(home).collect()
}

/// Of these events, the announcements and pull requests in purgatory and the events that wait with one, each with its
/// home.
pub async fn waiting_ids(conn: &mut Conn, ids: &[Bytes32]) -> Result<Vec<(Bytes32, Home)>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = conn.all(&WAITING_IDS, params![hexadecimal_list(ids)]).await?;
    rows.iter().map(|row| Ok((row.bytes32("event_id")?, home(row)?))).collect()
}

/// How far those of these events that wait are from a repository. An announcement is one itself.
pub async fn links(conn: &mut Conn, ids: &[Bytes32]) -> Result<Vec<Link>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = conn.all(&LINKS, params![hexadecimal_list(ids)]).await?;
    rows.iter().map(|row| Ok(Link { steps: row.int("steps")?, is_repo: row.int("repo")? == 1 })).collect()
}

/// How many waiting events of an author are more than one step from a repository.
pub async fn far(conn: &mut Conn, author: &Bytes32) -> Result<i64, StoreError> {
    conn.only(&FAR, params![&author[..]]).await?.int("n")
}

/// Repositories that no longer have a waiting announcement, although events wait with it.
pub async fn homeless(conn: &mut Conn, limit: i64) -> Result<Vec<(Bytes32, String)>, StoreError> {
    let rows = conn.all(&HOMELESS, params![limit]).await?;
    rows.iter().map(|row| Ok((row.bytes32("pubkey")?, row.text("identifier")?))).collect()
}

/// Pull requests that no longer wait for their commit, although events wait with them.
pub async fn homeless_pr_events(conn: &mut Conn, limit: i64) -> Result<Vec<Bytes32>, StoreError> {
    conn.all(&HOMELESS_PR_EVENTS, params![limit]).await?.iter().map(|row| row.bytes32("proposal_id")).collect()
}

/// Usage of events that wait with announcements and pull requests.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Bytes of one author.
    pub key_bytes: i64,
    /// Events of one announcement or pull request.
    pub of_repo: i64,
    /// Bytes of those events.
    pub repo_bytes: i64,
}

/// Counts an author's waiting bytes, and the events that wait with an announcement or a pull request.
pub async fn counts(conn: &mut Conn, author: &Bytes32, home: &Home) -> Result<Counts, StoreError> {
    let row = match home {
        Home::Repo(owner, identifier) => {
            conn.only(&COUNTS, params![&author[..], &owner[..], identifier.as_str()]).await?
        }
        Home::PrEvent(id) => conn.only(&COUNTS_OF_PR_EVENT, params![&author[..], &id[..]]).await?,
    };
    Ok(Counts { key_bytes: row.int("key_bytes")?, of_repo: row.int("of_repo")?, repo_bytes: row.int("repo_bytes")? })
}
