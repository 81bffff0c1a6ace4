//! Usage of keys and networks, the input of quota decisions.
//!
//! Triggers update `nostr_keys` in the transaction that stores, replaces or removes an event, a purgatory entry or a
//! signed repository. The caller counts networks: only strangers' bytes count for them.

use crate::nostr::events::{fixed, hexadecimal_list};
use crate::nostr::purgatory::Bytes32;
use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Engine, Row, StoreError, Tx};
use abide_core::{RepoId, Timestamp};
use serde_json::{Value as Json, json};
use std::collections::HashMap;

const DAY: i64 = 86_400 * 1_000_000;

macro_rules! usage_columns {
    () => {
        "pubkey, events + waiting AS events, bytes + waiting_bytes AS bytes, repos, repo_bytes"
    };
}

statements! {
    /// Rows to lock for keys that are new.
    BEGIN = "INSERT INTO nostr_keys (pubkey) ",
        sqlite "SELECT unhex(value) FROM json_each($1) WHERE true ORDER BY 1 ON CONFLICT DO NOTHING",
        postgres "SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON)) ORDER BY 1
            ON CONFLICT DO NOTHING";
    /// In one order, so that two writers of the same keys do not deadlock.
    LOCK = concat!("SELECT ", usage_columns!(), " FROM nostr_keys WHERE pubkey "),
        sqlite "IN (SELECT unhex(value) FROM json_each($1)) ORDER BY pubkey",
        postgres "= ANY (ARRAY (SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))
            ORDER BY pubkey FOR UPDATE";
    OF_KEY = concat!("SELECT ", usage_columns!(), " FROM nostr_keys WHERE pubkey = $1");
    /// Sum over some keys.
    SUM = "SELECT CAST(COALESCE(sum(bytes + waiting_bytes + repo_bytes), 0) AS BIGINT) AS bytes,
        CAST(COALESCE(sum(repos), 0) AS BIGINT) AS repos FROM nostr_keys WHERE pubkey ",
        sqlite "IN (SELECT unhex(value) FROM json_each($1))",
        postgres "= ANY (ARRAY (SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))))";
    /// Sum over all keys, plus commits without a signed event.
    SUM_ALL = "SELECT
        (SELECT CAST(COALESCE(sum(bytes + waiting_bytes + repo_bytes), 0) AS BIGINT) FROM nostr_keys)
        + (SELECT CAST(COALESCE(sum(bytes), 0) AS BIGINT) FROM purgatory_proposals) AS bytes,
        (SELECT CAST(COALESCE(sum(repos), 0) AS BIGINT) FROM nostr_keys) AS repos";
    /// Keys of accounts with a username, by page.
    ACCOUNT_KEYS = "SELECT id, npub FROM users WHERE id > $1 AND npub IS NOT NULL AND name IS NOT NULL
        ORDER BY id LIMIT $2";
    /// Rows to lock for networks that send their first bytes of the day.
    BEGIN_ADDRESSES = "INSERT INTO nostr_addresses (address, day, bytes) ",
        sqlite "SELECT value, $1, 0 FROM json_each($2) WHERE true ORDER BY 1 ON CONFLICT DO NOTHING",
        postgres "SELECT value, $1, 0 FROM json_array_elements_text(CAST(CAST($2 AS TEXT) AS JSON)) ORDER BY 1
            ON CONFLICT DO NOTHING";
    ADDRESSES = "SELECT address, bytes, repos, refs FROM nostr_addresses WHERE day = $1 AND address ",
        sqlite "IN (SELECT value FROM json_each($2)) ORDER BY address",
        postgres "= ANY (ARRAY (SELECT value FROM json_array_elements_text(CAST(CAST($2 AS TEXT) AS JSON))))
            ORDER BY address FOR UPDATE";
    ADDRESS = "SELECT bytes, repos, refs FROM nostr_addresses WHERE address = $1 AND day = $2";
    COUNT_REPO = "INSERT INTO nostr_addresses (address, day, bytes, repos) VALUES ($1, $2, 0, 1)
        ON CONFLICT (address, day) DO UPDATE SET repos = nostr_addresses.repos + 1";
    COUNT_REFS = "INSERT INTO nostr_addresses (address, day, bytes, refs) VALUES ($1, $2, 0, $3)
        ON CONFLICT (address, day) DO UPDATE SET refs = nostr_addresses.refs + excluded.refs";
    /// Rows of network and bytes, sorted by network.
    ADD_ADDRESSES = "INSERT INTO nostr_addresses (address, day, bytes) ",
        sqlite "SELECT value ->> 0, $1, value ->> 1 FROM json_each($2) WHERE true
            ON CONFLICT (address, day) DO UPDATE SET bytes = nostr_addresses.bytes + excluded.bytes",
        postgres "SELECT value ->> 0, $1, CAST(value ->> 1 AS BIGINT)
            FROM json_array_elements(CAST(CAST($2 AS TEXT) AS JSON))
            ON CONFLICT (address, day) DO UPDATE SET bytes = nostr_addresses.bytes + excluded.bytes";
    FORGET_DAYS = "DELETE FROM nostr_addresses WHERE day < $1";
    FORGET_KEYS = "DELETE FROM nostr_keys WHERE events = 0 AND waiting = 0 AND repos = 0 AND repo_bytes = 0";
    CHARGE_REPO = "UPDATE nostr_repos SET bytes = bytes + $2 WHERE repo_id = $1";
    SHRINK_REPO = "UPDATE nostr_repos SET bytes = $2 WHERE repo_id = $1 AND bytes > $2";
    CHARGE_PR_EVENT = "INSERT INTO nostr_proposal_bytes (event_id, pubkey, bytes)
        SELECT e.event_id, e.pubkey, CAST($2 AS BIGINT) FROM nostr_events e WHERE e.event_id = $1
        ON CONFLICT (event_id) DO UPDATE SET bytes = nostr_proposal_bytes.bytes + excluded.bytes";
}

/// Usage of one key: stored and waiting events with their bytes, repositories and git data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub events: i64,
    /// Bytes of events.
    pub bytes: i64,
    /// Signed repositories, including deleted ones within their grace.
    pub repos: i64,
    /// Bytes of git data.
    pub repo_bytes: i64,
}

impl Usage {
    fn from_row(row: &Row) -> Result<(Bytes32, Self), StoreError> {
        let usage = Self {
            events: row.int("events")?,
            bytes: row.int("bytes")?,
            repos: row.int("repos")?,
            repo_bytes: row.int("repo_bytes")?,
        };
        Ok((fixed(row, "pubkey")?, usage))
    }
}

/// Usage of some keys, locked until the unit ends, so that no other writer adds to them.
pub async fn lock(tx: &mut Tx, keys: &[Bytes32]) -> Result<HashMap<Bytes32, Usage>, StoreError> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let list = hexadecimal_list(keys);
    // SQLite has a single writer, so no row locks are needed.
    if tx.engine() == Engine::Postgres {
        tx.execute(&BEGIN, params![list.as_str()]).await?;
    }
    tx.all(&LOCK, params![list]).await?.iter().map(Usage::from_row).collect()
}

/// Usage of a key.
pub async fn of_key(conn: &mut Conn, key: &Bytes32) -> Result<Usage, StoreError> {
    let row = conn.one(&OF_KEY, params![&key[..]]).await?;
    Ok(row.as_ref().map(Usage::from_row).transpose()?.map(|(_, usage)| usage).unwrap_or_default())
}

/// Sums over several keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// Bytes of events and git data.
    pub bytes: i64,
    /// Repositories that are served, deleted ones in their grace included.
    pub repos: i64,
}

impl Sum {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self { bytes: row.int("bytes")?, repos: row.int("repos")? })
    }
}

/// These keys together.
pub async fn sum(conn: &mut Conn, keys: &[Bytes32]) -> Result<Sum, StoreError> {
    Sum::from_row(&conn.only(&SUM, params![hexadecimal_list(keys)]).await?)
}

/// All keys together, and commits that nobody has signed for.
pub async fn sum_all(conn: &mut Conn) -> Result<Sum, StoreError> {
    Sum::from_row(&conn.only(&SUM_ALL, &[]).await?)
}

/// Npubs of accounts with a username, with the account ids for paging.
pub async fn account_keys(conn: &mut Conn, after: i64, limit: i64) -> Result<Vec<(i64, String)>, StoreError> {
    let rows = conn.all(&ACCOUNT_KEYS, params![after, limit]).await?;
    rows.iter().map(|row| Ok((row.int("id")?, row.text("npub")?))).collect()
}

fn day(now: Timestamp) -> i64 {
    now.micros().div_euclid(DAY)
}

/// Usage of one network by strangers on one day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Today {
    /// Bytes.
    pub bytes: i64,
    /// Repositories that they announced.
    pub repos: i64,
    /// Refs of their PR events.
    pub refs: i64,
}

impl Today {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self { bytes: row.int("bytes")?, repos: row.int("repos")?, refs: row.int("refs")? })
    }
}

/// Usage of some networks today, held until the unit ends.
pub async fn lock_addresses(tx: &mut Tx, addresses: &[String]) -> Result<HashMap<String, Today>, StoreError> {
    if addresses.is_empty() {
        return Ok(HashMap::new());
    }
    let today = day(tx.now());
    let list = Json::from(addresses.to_vec()).to_string();
    if tx.engine() == Engine::Postgres {
        tx.execute(&BEGIN_ADDRESSES, params![today, list.as_str()]).await?;
    }
    let rows = tx.all(&ADDRESSES, params![today, list]).await?;
    rows.iter().map(|row| Ok((row.text("address")?, Today::from_row(row)?))).collect()
}

/// Usage of a network today.
pub async fn address_today(conn: &mut Conn, address: &str, now: Timestamp) -> Result<Today, StoreError> {
    let row = conn.one(&ADDRESS, params![address, day(now)]).await?;
    row.as_ref().map_or(Ok(Today::default()), Today::from_row)
}

/// Counts a repository that was announced from a network.
pub async fn count_repo(tx: &mut Tx, address: &str) -> Result<(), StoreError> {
    let today = day(tx.now());
    tx.execute(&COUNT_REPO, params![address, today]).await.map(drop)
}

/// Counts refs of a PR event that came from a network.
pub async fn count_refs(tx: &mut Tx, address: &str, refs: i64) -> Result<(), StoreError> {
    let today = day(tx.now());
    tx.execute(&COUNT_REFS, params![address, today, refs]).await.map(drop)
}

/// Adds to today's bytes of some networks. Each network occurs once.
pub async fn add_addresses(tx: &mut Tx, mut added: Vec<(String, i64)>) -> Result<(), StoreError> {
    if added.is_empty() {
        return Ok(());
    }
    added.sort_unstable();
    let rows: Vec<Json> = added.into_iter().map(|(address, bytes)| json!([address, bytes])).collect();
    let today = day(tx.now());
    tx.execute(&ADD_ADDRESSES, params![today, Json::from(rows).to_string()]).await.map(drop)
}

/// Removes networks of past days, and keys without any data.
pub async fn forget(tx: &mut Tx) -> Result<(), StoreError> {
    let today = day(tx.now());
    tx.execute(&FORGET_DAYS, params![today]).await?;
    tx.execute(&FORGET_KEYS, &[]).await.map(drop)
}

/// Charges a signed repository with git data that its own states brought.
pub async fn charge_repo(tx: &mut Tx, repo: RepoId, bytes: i64) -> Result<(), StoreError> {
    tx.execute(&CHARGE_REPO, params![repo, bytes]).await.map(drop)
}

/// Reduces the charge of a signed repository to its size.
pub async fn shrink_repo(tx: &mut Tx, repo: RepoId, bytes: i64) -> Result<(), StoreError> {
    tx.execute(&SHRINK_REPO, params![repo, bytes]).await.map(drop)
}

/// Charges the author of a stored patch or pull request with the git data that it brought.
pub async fn charge_pr_event(tx: &mut Tx, event: &Bytes32, bytes: i64) -> Result<(), StoreError> {
    tx.execute(&CHARGE_PR_EVENT, params![&event[..], bytes]).await.map(drop)
}
