//! PR events that wait for their commit, and commits that wait for their PR event.

use crate::nostr::purgatory::Bytes32;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::{Oid, RepoId, Timestamp};

macro_rules! columns {
    () => {
        "p.event_id, p.pubkey, p.json, p.commit_id, p.repo_id, p.incoming, p.bytes, p.created_at, p.expires_at"
    };
}

macro_rules! listed {
    () => {
        "p.event_id, p.pubkey, p.commit_id, p.bytes, p.created_at, p.expires_at"
    };
}

statements! {
    PUT = "INSERT INTO purgatory_proposals
        (event_id, pubkey, json, commit_id, repo_id, incoming, bytes, address, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        ON CONFLICT (event_id) DO UPDATE SET pubkey = excluded.pubkey, json = excluded.json,
            commit_id = excluded.commit_id, repo_id = excluded.repo_id, incoming = excluded.incoming,
            bytes = excluded.bytes, address = excluded.address, expires_at = excluded.expires_at";
    GET = concat!("SELECT ", columns!(), " FROM purgatory_proposals p WHERE p.event_id = $1");
    LOCK = concat!("SELECT ", columns!(), " FROM purgatory_proposals p WHERE p.event_id = $1"), postgres " FOR UPDATE";
    TAKE = concat!("DELETE FROM purgatory_proposals AS p WHERE p.event_id = $1 RETURNING ", "event_id, pubkey, json,
        commit_id, repo_id, incoming, bytes, created_at, expires_at");
    OVER = concat!("SELECT ", columns!(), " FROM purgatory_proposals p WHERE p.expires_at <= $1
        ORDER BY p.expires_at LIMIT $2");
    PAGE = concat!("SELECT ", listed!(), ", r.pubkey AS owner, r.identifier FROM purgatory_proposals p
        LEFT JOIN purgatory_proposal_repos r ON r.event_id = p.event_id AND r.n = 0
        ORDER BY p.expires_at, p.event_id LIMIT $1");
    UNLINK = "DELETE FROM purgatory_proposal_repos WHERE event_id = $1";
    LINK = "INSERT INTO purgatory_proposal_repos (event_id, n, pubkey, identifier, created_at)
        VALUES ($1, $2, $3, $4, $5)";
    OF_REPO = concat!("SELECT ", listed!(), ", r.pubkey AS owner, r.identifier FROM purgatory_proposal_repos r
        JOIN purgatory_proposals p ON p.event_id = r.event_id
        WHERE r.identifier = $2 AND r.pubkey = $1 ORDER BY r.created_at DESC, r.event_id DESC LIMIT $3");
    COUNT = "SELECT count(*) AS n FROM purgatory_proposal_repos WHERE identifier = $2 AND pubkey = $1";
    RAISE = "UPDATE purgatory_proposals SET expires_at = CASE WHEN expires_at < $2 THEN $2 ELSE expires_at END
        WHERE event_id = $1";
    AREA = "SELECT event_id FROM purgatory_proposals WHERE incoming = $1 LIMIT 1";
    BYTES = "SELECT CAST(COALESCE(sum(bytes), 0) AS BIGINT) AS total,
        CAST(COALESCE(sum(CASE WHEN address = $1 THEN bytes ELSE 0 END), 0) AS BIGINT) AS of_address
        FROM purgatory_proposals WHERE bytes > 0 AND event_id <> $2";
}

/// One half of a PR event.
#[derive(Debug, Clone)]
pub struct Half {
    /// Event id, even if the event is unknown.
    pub event_id: Bytes32,
    /// Author, if the event is known.
    pub pubkey: Option<Bytes32>,
    /// The event as sent; `None` if the commit came first.
    pub json: Option<String>,
    /// The commit that the event names, or that was pushed.
    pub commit: Oid,
    /// Repository that it was pushed to.
    pub repo_id: Option<RepoId>,
    /// Key of the incoming area with the objects.
    pub incoming: Option<String>,
    /// Size of those objects.
    pub bytes: i64,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

impl Half {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            event_id: row.bytes32("event_id")?,
            pubkey: opt_bytes32(row, "pubkey")?,
            json: row.opt_text("json")?,
            commit: row.parsed("commit_id")?,
            repo_id: row.opt_int("repo_id")?.map(RepoId::new),
            incoming: row.opt_text("incoming")?,
            bytes: row.int("bytes")?,
            created_at: row.time("created_at")?,
            expires_at: row.time("expires_at")?,
        })
    }
}

/// One half of a PR event, for lists.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Event id, even if the event is unknown.
    pub event_id: Bytes32,
    /// Author; `None` if the commit came first.
    pub pubkey: Option<Bytes32>,
    /// The commit that the event names, or that was pushed.
    pub commit: Oid,
    /// Size of the objects.
    pub bytes: i64,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// Key and identifier of a target repository.
    pub repo: Option<(Bytes32, String)>,
}

impl Listed {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            event_id: row.bytes32("event_id")?,
            pubkey: opt_bytes32(row, "pubkey")?,
            commit: row.parsed("commit_id")?,
            bytes: row.int("bytes")?,
            created_at: row.time("created_at")?,
            expires_at: row.time("expires_at")?,
            repo: opt_bytes32(row, "owner")?.zip(row.opt_text("identifier")?),
        })
    }
}

fn opt_bytes32(row: &Row, column: &'static str) -> Result<Option<Bytes32>, StoreError> {
    row.opt_bytes(column)?.map(|_| row.bytes32(column)).transpose()
}

/// Stores one half for these repositories, replacing an earlier one with this id.
pub async fn put(
    tx: &mut Tx,
    half: &Half,
    repos: &[(Bytes32, String)],
    address: Option<&str>,
) -> Result<(), StoreError> {
    let now = tx.now();
    let values = params![
        &half.event_id[..],
        half.pubkey.as_ref().map(|key| &key[..]),
        half.json.as_deref(),
        half.commit.to_string(),
        half.repo_id,
        half.incoming.as_deref(),
        half.bytes,
        address,
        now,
        half.expires_at
    ];
    tx.execute(&PUT, values).await?;
    tx.execute(&UNLINK, params![&half.event_id[..]]).await?;
    for (n, (owner, identifier)) in (0_i64..).zip(repos) {
        tx.execute(&LINK, params![&half.event_id[..], n, &owner[..], identifier.as_str(), now]).await?;
    }
    Ok(())
}

/// The half that waits under an event id.
pub async fn get(conn: &mut Conn, id: &Bytes32) -> Result<Option<Half>, StoreError> {
    conn.one(&GET, params![&id[..]]).await?.as_ref().map(Half::from_row).transpose()
}

/// As [`get`], locking the row until the unit ends.
pub async fn lock(tx: &mut Tx, id: &Bytes32) -> Result<Option<Half>, StoreError> {
    tx.one(&LOCK, params![&id[..]]).await?.as_ref().map(Half::from_row).transpose()
}

/// Removes and returns the half that waits under an event id.
pub async fn take(tx: &mut Tx, id: &Bytes32) -> Result<Option<Half>, StoreError> {
    tx.one(&TAKE, params![&id[..]]).await?.as_ref().map(Half::from_row).transpose()
}

/// Expired halves.
pub async fn over(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Half>, StoreError> {
    conn.all(&OVER, params![now, limit]).await?.iter().map(Half::from_row).collect()
}

/// Halves that expire first, for the operator.
pub async fn page(conn: &mut Conn, limit: i64) -> Result<Vec<Listed>, StoreError> {
    conn.all(&PAGE, params![limit]).await?.iter().map(Listed::from_row).collect()
}

/// Halves for a key's repository, latest first, and their total number.
pub async fn of_repo(
    conn: &mut Conn,
    owner: &Bytes32,
    identifier: &str,
    limit: i64,
) -> Result<(Vec<Listed>, i64), StoreError> {
    let rows = conn.all(&OF_REPO, params![&owner[..], identifier, limit]).await?;
    let listed = rows.iter().map(Listed::from_row).collect::<Result<Vec<_>, _>>()?;
    let count = match i64::try_from(listed.len()) {
        Ok(all) if all < limit => all,
        _ => conn.only(&COUNT, params![&owner[..], identifier]).await?.int("n")?,
    };
    Ok((listed, count))
}

/// Extends the expiry to at least this instant; `false` if the half no longer waits.
pub async fn raise(tx: &mut Tx, id: &Bytes32, until: Timestamp) -> Result<bool, StoreError> {
    Ok(tx.execute(&RAISE, params![&id[..], until]).await? > 0)
}

/// Whether objects in this incoming area wait for their event.
pub async fn holds_area(conn: &mut Conn, key: &str) -> Result<bool, StoreError> {
    Ok(conn.one(&AREA, params![key]).await?.is_some())
}

/// Bytes of pushed commits without a signed event.
#[derive(Debug, Clone, Copy)]
pub struct Unsigned {
    pub total: i64,
    pub of_address: i64,
}

/// Bytes of pushed commits without a signed event, except those of one event, which another push replaces.
pub async fn unsigned(conn: &mut Conn, address: Option<&str>, except: &Bytes32) -> Result<Unsigned, StoreError> {
    let row = conn.only(&BYTES, params![address, &except[..]]).await?;
    Ok(Unsigned { total: row.int("total")?, of_address: row.int("of_address")? })
}
