//! Clone URLs that were tried for an identifier, with their last outcome.

use crate::sql::statements;
use crate::value::params;
use crate::{Conn, Row, StoreError, Tx};
use abide_core::Timestamp;

/// Columns of [`Source`].
macro_rules! columns {
    () => {
        "url, domain, tried_at, outcome, detail, fetched"
    };
}

statements! {
    PUT = "INSERT INTO sync_sources (queue_id, url, domain, tried_at, outcome, detail, fetched)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (queue_id, url) DO UPDATE SET domain = excluded.domain, tried_at = excluded.tried_at,
            outcome = excluded.outcome, detail = excluded.detail, fetched = excluded.fetched";
    OF_QUEUE = concat!("SELECT ", columns!(), " FROM sync_sources WHERE queue_id = $1 ORDER BY url LIMIT $2");
    /// Keeps what is known of URLs that are still listed.
    FORGET_BEFORE = "DELETE FROM sync_sources WHERE queue_id = $1 AND tried_at < $2";
}

/// A clone URL that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub url: String,
    /// Host and port.
    pub domain: String,
    pub tried_at: Timestamp,
    /// Word of the outcome, see `forge::sync`.
    pub outcome: String,
    /// Sentence for people.
    pub detail: String,
    /// Digest of objects that came from there and completed nothing.
    pub fetched: Option<Vec<u8>>,
}

impl Source {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            url: row.text("url")?,
            domain: row.text("domain")?,
            tried_at: row.time("tried_at")?,
            outcome: row.text("outcome")?,
            detail: row.text("detail")?,
            fetched: row.opt_bytes("fetched")?,
        })
    }
}

/// Stores the outcome of an attempt.
pub async fn put(tx: &mut Tx, queue: i64, source: &Source) -> Result<(), StoreError> {
    let values = params![
        queue,
        source.url.as_str(),
        source.domain.as_str(),
        source.tried_at,
        source.outcome.as_str(),
        source.detail.as_str(),
        source.fetched.clone()
    ];
    tx.execute(&PUT, values).await.map(drop)
}

/// The URLs that were tried for an entry of the queue.
pub async fn of(conn: &mut Conn, queue: i64, limit: i64) -> Result<Vec<Source>, StoreError> {
    conn.all(&OF_QUEUE, params![queue, limit]).await?.iter().map(Source::from_row).collect()
}

/// Forgets URLs that were last tried before an instant.
pub async fn forget(tx: &mut Tx, queue: i64, before: Timestamp) -> Result<u64, StoreError> {
    tx.execute(&FORGET_BEFORE, params![queue, before]).await
}
