//! Purgatory: announcements and states that are accepted but not served, because their git data has not arrived.
//! PR events, which can wait for either half, are in [`crate::nostr::purgatory::prs`].

pub mod attached;
pub mod prs;

use crate::nostr::events::hexadecimal_list;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{RepoId, Timestamp};

/// An event id or a public key.
pub type Bytes32 = [u8; 32];

macro_rules! announcement_columns {
    () => {
        "a.pubkey, a.identifier, a.event_id, a.event_at, a.json, a.repo_id, a.created_at, a.expires_at"
    };
}

macro_rules! state_columns {
    () => {
        "s.event_id, s.pubkey, s.identifier, s.event_at, s.json, s.created_at, s.expires_at"
    };
}

/// Announcements of an identifier, the shortest first, within a number of bytes: long ones take no room from others.
macro_rules! shortest {
    () => {
        "SELECT event_id FROM (SELECT event_id,
                sum(octet_length(json)) OVER (ORDER BY octet_length(json), event_id) AS bytes
            FROM purgatory_announcements WHERE identifier = $1 ORDER BY octet_length(json), event_id LIMIT $2) weighed
            WHERE bytes <= $3"
    };
}

/// Announcements of an identifier of some authors, those that came first at the front, with the bytes so far.
macro_rules! earliest {
    () => {
        "SELECT event_id FROM (SELECT event_id, sum(octet_length(json)) OVER (ORDER BY created_at, event_id) AS bytes
            FROM purgatory_announcements WHERE identifier = $1 AND pubkey "
    };
}

/// States of an identifier, the newest first, with the bytes so far.
macro_rules! newest {
    () => {
        "SELECT event_id FROM (SELECT event_id,
                sum(octet_length(json)) OVER (ORDER BY event_at DESC, event_id) AS bytes
            FROM purgatory_states WHERE identifier = $1"
    };
}

statements! {
    PUT_ANNOUNCEMENT = "INSERT INTO purgatory_announcements
        (pubkey, identifier, event_id, event_at, json, repo_id, address, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (identifier, pubkey) DO UPDATE SET event_id = excluded.event_id, event_at = excluded.event_at,
            json = excluded.json, repo_id = excluded.repo_id, address = excluded.address,
            expires_at = excluded.expires_at
        WHERE purgatory_announcements.event_at < excluded.event_at
            OR (purgatory_announcements.event_at = excluded.event_at
                AND purgatory_announcements.event_id >= excluded.event_id)";
    ANNOUNCEMENT = concat!("SELECT ", announcement_columns!(), " FROM purgatory_announcements a
        WHERE a.identifier = $2 AND a.pubkey = $1");
    LOCK_ANNOUNCEMENT = concat!("SELECT ", announcement_columns!(), " FROM purgatory_announcements a
        WHERE a.identifier = $2 AND a.pubkey = $1"), postgres " FOR UPDATE";
    BY_EVENT = concat!("SELECT ", announcement_columns!(), " FROM purgatory_announcements a WHERE a.event_id = $1");
    /// The shortest $2, as many of them as have no more than $3 bytes together, in the order in which they came.
    ANNOUNCEMENTS = concat!("SELECT ", announcement_columns!(), " FROM purgatory_announcements a
        WHERE a.identifier = $1 AND a.event_id "),
        sqlite concat!("IN (", shortest!(), ") ORDER BY a.created_at"),
        postgres concat!("= ANY (ARRAY (", shortest!(), ")) ORDER BY a.created_at");
    /// Of some authors, as many as have no more than $3 bytes together.
    ANNOUNCEMENTS_BY = concat!("SELECT ", announcement_columns!(), " FROM purgatory_announcements a
        WHERE a.identifier = $1 AND a.event_id "),
        sqlite concat!("IN (", earliest!(), "IN (SELECT unhex(value) FROM json_each($2))) weighed WHERE bytes <= $3)
            ORDER BY a.created_at"),
        postgres concat!("= ANY (ARRAY (", earliest!(), "= ANY (ARRAY (
                SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($2 AS TEXT) AS JSON))))) weighed
            WHERE bytes <= $3)) ORDER BY a.created_at");
    ANNOUNCEMENT_PAGE = concat!("SELECT ", announcement_columns!(), " FROM purgatory_announcements a
        ORDER BY a.expires_at, a.event_id LIMIT $1");
    ANNOUNCEMENTS_OVER = concat!("SELECT ", announcement_columns!(), " FROM purgatory_announcements a
        WHERE a.expires_at <= $1 ORDER BY a.expires_at LIMIT $2");
    /// The caller that gets the row back decides its fate: promotion, expiry and deletion cannot all have it.
    TAKE_ANNOUNCEMENT = "DELETE FROM purgatory_announcements WHERE identifier = $2 AND pubkey = $1 AND event_id = $3
        RETURNING repo_id";
    TAKE_ANNOUNCEMENT_OVER = "DELETE FROM purgatory_announcements
        WHERE identifier = $2 AND pubkey = $1 AND expires_at <= $3 RETURNING event_id";
    RAISE_ANNOUNCEMENT = "UPDATE purgatory_announcements SET expires_at = $3
        WHERE identifier = $2 AND pubkey = $1 AND expires_at < $3";
    /// Waiting events of one author.
    IDS_OF = "SELECT event_id FROM purgatory_announcements WHERE pubkey = $1
        UNION ALL SELECT event_id FROM purgatory_states WHERE pubkey = $1
        UNION ALL SELECT event_id FROM purgatory_attached WHERE pubkey = $1
        UNION ALL SELECT event_id FROM purgatory_proposals WHERE pubkey = $1 LIMIT $2";
    REPOS_OF = "SELECT count(*) AS n FROM purgatory_announcements WHERE pubkey = $1 AND repo_id IS NOT NULL";
    ANNOUNCEMENT_OF_REPO = "SELECT repo_id FROM purgatory_announcements WHERE repo_id = $1";

    PUT_STATE = "INSERT INTO purgatory_states
        (event_id, pubkey, identifier, event_at, json, address, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (event_id) DO NOTHING";
    /// The newest $2, as many of them as have no more than $3 bytes together. Bytes are counted before any text is read.
    STATES = concat!("SELECT ", state_columns!(), " FROM purgatory_states s WHERE s.event_id "),
        sqlite concat!("IN (", newest!(), " ORDER BY event_at DESC, event_id LIMIT $2) weighed WHERE bytes <= $3)
            ORDER BY s.event_at DESC, s.event_id"),
        postgres concat!("= ANY (ARRAY (", newest!(), " ORDER BY event_at DESC, event_id LIMIT $2) weighed
            WHERE bytes <= $3)) ORDER BY s.event_at DESC, s.event_id");
    /// The same of some authors.
    STATES_OF = concat!("SELECT ", state_columns!(), " FROM purgatory_states s WHERE s.event_id "),
        sqlite concat!("IN (", newest!(), " AND pubkey IN (SELECT unhex(value) FROM json_each($4))
                ORDER BY event_at DESC, event_id LIMIT $2) weighed WHERE bytes <= $3)
            ORDER BY s.event_at DESC, s.event_id"),
        postgres concat!("= ANY (ARRAY (", newest!(), " AND pubkey = ANY (ARRAY (
                    SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($4 AS TEXT) AS JSON))))
                ORDER BY event_at DESC, event_id LIMIT $2) weighed WHERE bytes <= $3))
            ORDER BY s.event_at DESC, s.event_id");
    STATE_PAGE = concat!("SELECT ", state_columns!(), " FROM purgatory_states s
        ORDER BY s.expires_at, s.event_id LIMIT $1");
    RAISE_STATE = "UPDATE purgatory_states SET expires_at = CASE WHEN expires_at < $2 THEN $2 ELSE expires_at END
        WHERE event_id = $1";
    END_OF_STATE = "SELECT expires_at FROM purgatory_states WHERE event_id = $1";
    AUTHOR_OF_STATE = "SELECT pubkey FROM purgatory_states WHERE event_id = $1";
    TAKE_STATE = "DELETE FROM purgatory_states WHERE event_id = $1 RETURNING identifier";
    /// States of one author that a newer one of theirs, or a deletion, supersedes.
    STATES_UNTIL = "SELECT event_id, event_at FROM purgatory_states WHERE identifier = $2 AND pubkey = $1 AND event_at <= $3";
    STATES_OVER = "DELETE FROM purgatory_states WHERE expires_at <= $1 RETURNING event_id";

    WAITS = "SELECT 1 AS n WHERE EXISTS (SELECT 1 FROM purgatory_announcements WHERE event_id = $1)
        OR EXISTS (SELECT 1 FROM purgatory_states WHERE event_id = $1)
        OR EXISTS (SELECT 1 FROM purgatory_proposals WHERE event_id = $1 AND json IS NOT NULL)
        OR EXISTS (SELECT 1 FROM purgatory_attached WHERE event_id = $1)";
    COUNTS = "SELECT
        (SELECT count(*) FROM purgatory_announcements WHERE pubkey = $1)
            + (SELECT count(*) FROM purgatory_states WHERE pubkey = $1)
            + (SELECT count(*) FROM purgatory_proposals WHERE pubkey = $1)
            + (SELECT count(*) FROM purgatory_attached WHERE pubkey = $1) AS of_key,
        (SELECT count(*) FROM purgatory_announcements WHERE address = $2)
            + (SELECT count(*) FROM purgatory_states WHERE address = $2)
            + (SELECT count(*) FROM purgatory_proposals WHERE address = $2)
            + (SELECT count(*) FROM purgatory_attached WHERE address = $2) AS of_address,
        (SELECT count(*) FROM purgatory_announcements) + (SELECT count(*) FROM purgatory_states)
            + (SELECT count(*) FROM purgatory_proposals) + (SELECT count(*) FROM purgatory_attached) AS total,
        (SELECT CAST(COALESCE(sum(waiting_bytes), 0) AS BIGINT) FROM nostr_keys WHERE waiting_bytes > 0) AS bytes";
    TOTALS = "SELECT (SELECT count(*) FROM purgatory_announcements) AS announcements,
        (SELECT count(*) FROM purgatory_states) AS states,
        (SELECT count(*) FROM purgatory_proposals WHERE json IS NOT NULL) AS proposals,
        (SELECT count(*) FROM purgatory_proposals WHERE json IS NULL) AS placeholders,
        (SELECT count(*) FROM purgatory_attached) AS attached,
        (SELECT CAST(COALESCE(sum(bytes), 0) AS BIGINT) FROM purgatory_proposals) AS bytes";
    REMEMBER = "INSERT INTO purgatory_expired (event_id, until) VALUES ($1, $2)
        ON CONFLICT (event_id) DO UPDATE SET until = excluded.until";
    REMEMBERED = "SELECT until FROM purgatory_expired WHERE event_id = $1";
    FORGET = "DELETE FROM purgatory_expired WHERE until <= $1";
}

/// A waiting announcement.
#[derive(Debug, Clone)]
pub struct Announcement {
    pub pubkey: Bytes32,
    pub identifier: String,
    pub event_id: Bytes32,
    /// The author's time, in seconds.
    pub event_at: i64,
    /// The event as sent.
    pub json: String,
    /// Id reserved for the repository; `None`: kept beside another maintainer's, without a repository here.
    pub repo_id: Option<RepoId>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

impl Announcement {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            pubkey: row.bytes32("pubkey")?,
            identifier: row.text("identifier")?,
            event_id: row.bytes32("event_id")?,
            event_at: row.int("event_at")?,
            json: row.text("json")?,
            repo_id: row.opt_int("repo_id")?.map(RepoId::new),
            created_at: row.time("created_at")?,
            expires_at: row.time("expires_at")?,
        })
    }
}

/// A waiting state.
#[derive(Debug, Clone)]
pub struct State {
    pub event_id: Bytes32,
    pub pubkey: Bytes32,
    pub identifier: String,
    /// The author's time, in seconds.
    pub event_at: i64,
    /// The event as sent.
    pub json: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

impl State {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            event_id: row.bytes32("event_id")?,
            pubkey: row.bytes32("pubkey")?,
            identifier: row.text("identifier")?,
            event_at: row.int("event_at")?,
            json: row.text("json")?,
            created_at: row.time("created_at")?,
            expires_at: row.time("expires_at")?,
        })
    }
}

/// An entry to put into purgatory.
#[derive(Debug, Clone)]
pub struct Entry {
    pub event_id: Bytes32,
    pub pubkey: Bytes32,
    pub identifier: String,
    /// The author's time, in seconds.
    pub event_at: i64,
    /// The event as sent.
    pub json: String,
    /// Network address of the sender.
    pub address: Option<String>,
    pub expires_at: Timestamp,
}

/// Puts an announcement into purgatory, replacing an earlier one of its author; [`StoreError::Unique`] if the waiting
/// one is newer.
pub async fn put_announcement(tx: &mut Tx, entry: &Entry, repo: Option<RepoId>) -> Result<(), StoreError> {
    let now = tx.now();
    let values = params![
        &entry.pubkey[..],
        entry.identifier.as_str(),
        &entry.event_id[..],
        entry.event_at,
        entry.json.as_str(),
        repo,
        entry.address.as_deref(),
        now,
        entry.expires_at
    ];
    match tx.execute(&PUT_ANNOUNCEMENT, values).await? {
        0 => Err(StoreError::Unique),
        _ => Ok(()),
    }
}

/// The waiting announcement of a key and identifier.
pub async fn announcement(
    conn: &mut Conn,
    pubkey: &Bytes32,
    identifier: &str,
) -> Result<Option<Announcement>, StoreError> {
    let row = conn.one(&ANNOUNCEMENT, params![&pubkey[..], identifier]).await?;
    row.as_ref().map(Announcement::from_row).transpose()
}

/// As [`announcement`], locking the row until the unit ends.
pub async fn lock_announcement(
    tx: &mut Tx,
    pubkey: &Bytes32,
    identifier: &str,
) -> Result<Option<Announcement>, StoreError> {
    let row = tx.one(&LOCK_ANNOUNCEMENT, params![&pubkey[..], identifier]).await?;
    row.as_ref().map(Announcement::from_row).transpose()
}

/// The waiting announcement with this event id.
pub async fn announcement_by_event(conn: &mut Conn, id: &Bytes32) -> Result<Option<Announcement>, StoreError> {
    conn.one(&BY_EVENT, params![&id[..]]).await?.as_ref().map(Announcement::from_row).transpose()
}

/// Author of a waiting state.
pub async fn author_of_state(conn: &mut Conn, id: &Bytes32) -> Result<Option<Bytes32>, StoreError> {
    conn.one(&AUTHOR_OF_STATE, params![&id[..]]).await?.map(|row| row.bytes32("pubkey")).transpose()
}

/// The waiting announcements of an identifier, of every author: the shortest, so many and so many bytes at the most.
pub async fn announcements(
    conn: &mut Conn,
    identifier: &str,
    limit: i64,
    bytes: i64,
) -> Result<Vec<Announcement>, StoreError> {
    conn.all(&ANNOUNCEMENTS, params![identifier, limit, bytes]).await?.iter().map(Announcement::from_row).collect()
}

/// The waiting announcements of an identifier of some authors: as many as have no more than so many bytes together.
pub async fn announcements_by(
    conn: &mut Conn,
    identifier: &str,
    authors: &[Bytes32],
    bytes: i64,
) -> Result<Vec<Announcement>, StoreError> {
    let values = params![identifier, hexadecimal_list(authors), bytes];
    conn.all(&ANNOUNCEMENTS_BY, values).await?.iter().map(Announcement::from_row).collect()
}

/// Announcements that expire first, for the operator.
pub async fn announcement_page(conn: &mut Conn, limit: i64) -> Result<Vec<Announcement>, StoreError> {
    conn.all(&ANNOUNCEMENT_PAGE, params![limit]).await?.iter().map(Announcement::from_row).collect()
}

/// Expired announcements.
pub async fn announcements_over(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Announcement>, StoreError> {
    conn.all(&ANNOUNCEMENTS_OVER, params![now, limit]).await?.iter().map(Announcement::from_row).collect()
}

/// Removes this announcement; `false` if another caller removed it or a newer one replaced it.
pub async fn take_announcement(tx: &mut Tx, entry: &Announcement) -> Result<bool, StoreError> {
    let values = params![&entry.pubkey[..], entry.identifier.as_str(), &entry.event_id[..]];
    Ok(tx.one(&TAKE_ANNOUNCEMENT, values).await?.is_some())
}

/// Removes an announcement if it has expired by now.
pub async fn take_announcement_over(tx: &mut Tx, entry: &Announcement) -> Result<bool, StoreError> {
    let now = tx.now();
    let values = params![&entry.pubkey[..], entry.identifier.as_str(), now];
    Ok(tx.one(&TAKE_ANNOUNCEMENT_OVER, values).await?.is_some())
}

/// Extends the expiry of an announcement to at least this instant.
pub async fn raise_announcement(
    tx: &mut Tx,
    pubkey: &Bytes32,
    identifier: &str,
    until: Timestamp,
) -> Result<(), StoreError> {
    tx.execute(&RAISE_ANNOUNCEMENT, params![&pubkey[..], identifier, until]).await.map(drop)
}

/// Ids of an author's waiting events, of every kind.
pub async fn ids_of(conn: &mut Conn, pubkey: &Bytes32, limit: i64) -> Result<Vec<Bytes32>, StoreError> {
    conn.all(&IDS_OF, params![&pubkey[..], limit]).await?.iter().map(|row| row.bytes32("event_id")).collect()
}

/// Number of a key's waiting announcements with a reserved repository.
pub async fn repos_of(conn: &mut Conn, pubkey: &Bytes32) -> Result<i64, StoreError> {
    conn.only(&REPOS_OF, params![&pubkey[..]]).await?.int("n")
}

/// Whether this id is reserved for a waiting announcement.
pub async fn reserves(conn: &mut Conn, repo: RepoId) -> Result<bool, StoreError> {
    Ok(conn.one(&ANNOUNCEMENT_OF_REPO, params![repo]).await?.is_some())
}

/// Adds a waiting state; states coexist.
pub async fn put_state(tx: &mut Tx, entry: &Entry) -> Result<(), StoreError> {
    let now = tx.now();
    let values = params![
        &entry.event_id[..],
        &entry.pubkey[..],
        entry.identifier.as_str(),
        entry.event_at,
        entry.json.as_str(),
        entry.address.as_deref(),
        now,
        entry.expires_at
    ];
    tx.execute(&PUT_STATE, values).await.map(drop)
}

/// The waiting states of an identifier, of every author, the newest first: so many and so many bytes at the most.
pub async fn states(conn: &mut Conn, identifier: &str, limit: i64, bytes: i64) -> Result<Vec<State>, StoreError> {
    conn.all(&STATES, params![identifier, limit, bytes]).await?.iter().map(State::from_row).collect()
}

/// The same of some authors.
pub async fn states_of(
    conn: &mut Conn,
    identifier: &str,
    authors: &[Bytes32],
    limit: i64,
    bytes: i64,
) -> Result<Vec<State>, StoreError> {
    let values = params![identifier, limit, bytes, hexadecimal_list(authors)];
    conn.all(&STATES_OF, values).await?.iter().map(State::from_row).collect()
}

/// States that expire first, for the operator.
pub async fn state_page(conn: &mut Conn, limit: i64) -> Result<Vec<State>, StoreError> {
    conn.all(&STATE_PAGE, params![limit]).await?.iter().map(State::from_row).collect()
}

/// Extends the expiry of a state to at least this instant; `false` if it no longer waits.
pub async fn raise_state(tx: &mut Tx, id: &Bytes32, until: Timestamp) -> Result<bool, StoreError> {
    Ok(tx.execute(&RAISE_STATE, params![&id[..], until]).await? > 0)
}

/// Expiry of a waiting state.
pub async fn end_of_state(conn: &mut Conn, id: &Bytes32) -> Result<Option<Timestamp>, StoreError> {
    conn.one(&END_OF_STATE, params![&id[..]]).await?.map(|row| row.time("expires_at")).transpose()
}

/// Removes a state; `false` if it did not wait.
pub async fn take_state(tx: &mut Tx, id: &Bytes32) -> Result<bool, StoreError> {
    Ok(tx.one(&TAKE_STATE, params![&id[..]]).await?.is_some())
}

/// An author's waiting states up to a time, with their times.
pub async fn states_until(
    conn: &mut Conn,
    pubkey: &Bytes32,
    identifier: &str,
    at: i64,
) -> Result<Vec<(Bytes32, i64)>, StoreError> {
    let rows = conn.all(&STATES_UNTIL, params![&pubkey[..], identifier, at]).await?;
    rows.iter().map(|row| Ok((row.bytes32("event_id")?, row.int("event_at")?))).collect()
}

/// Removes all expired states, and returns their ids.
pub async fn take_states_over(tx: &mut Tx) -> Result<Vec<Bytes32>, StoreError> {
    let now = tx.now();
    tx.all(&STATES_OVER, params![now]).await?.iter().map(|row| row.bytes32("event_id")).collect()
}

/// Whether an event is in purgatory.
pub async fn waits(conn: &mut Conn, id: &Bytes32) -> Result<bool, StoreError> {
    Ok(conn.one(&WAITS, params![&id[..]]).await?.is_some())
}

/// Number of entries of a key, from an address and in total.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    pub of_key: i64,
    pub of_address: i64,
    pub total: i64,
    /// Total bytes of events.
    pub bytes: i64,
}

/// Counts entries.
pub async fn counts(conn: &mut Conn, pubkey: &Bytes32, address: Option<&str>) -> Result<Counts, StoreError> {
    let row = conn.only(&COUNTS, params![&pubkey[..], address]).await?;
    Ok(Counts {
        of_key: row.int("of_key")?,
        of_address: row.int("of_address")?,
        total: row.int("total")?,
        bytes: row.int("bytes")?,
    })
}

/// Number of entries by kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    pub announcements: i64,
    pub states: i64,
    /// PR events without their commit.
    pub pr_events: i64,
    /// Commits without their PR event.
    pub placeholders: i64,
    /// Events that wait with an announcement.
    pub attached: i64,
    /// Bytes of those commits.
    pub bytes: i64,
}

/// Counts all entries by kind.
pub async fn totals(conn: &mut Conn) -> Result<Totals, StoreError> {
    let row = conn.only(&TOTALS, &[]).await?;
    Ok(Totals {
        announcements: row.int("announcements")?,
        states: row.int("states")?,
        pr_events: row.int("proposals")?,
        placeholders: row.int("placeholders")?,
        attached: row.int("attached")?,
        bytes: row.int("bytes")?,
    })
}

/// Records that an event expired in purgatory.
pub async fn remember(tx: &mut Tx, id: &Bytes32, until: Timestamp) -> Result<(), StoreError> {
    tx.execute(&REMEMBER, params![&id[..], until]).await.map(drop)
}

/// Time until which an expired event is remembered.
pub async fn remembered(conn: &mut Conn, id: &Bytes32) -> Result<Option<Timestamp>, StoreError> {
    conn.one(&REMEMBERED, params![&id[..]]).await?.map(|row| row.time("until")).transpose()
}

/// Removes records of expired events whose time is over.
pub async fn forget(tx: &mut Tx) -> Result<(), StoreError> {
    let now = tx.now();
    tx.execute(&FORGET, params![now]).await.map(drop)
}
